"""Noise for a client's pair (count of positives, residual rank sum), and its variance.

The residual is ``2 * sum((rank - pivot) * label)``, an integer, whose sensitivity to one label is
``max |2 rank - 2 pivot|``; the count's is 1. A *fraction* of the privacy budget protects the count
and the rest the residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.metrics import errors
from tacit.privacy.cost import Adjacency, Cost, check_delta, check_epsilon
from tacit.privacy.distributions import staircase_inner_width
from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace, Staircase
from tacit.privacy.mechanisms.response import RandomisedResponse

Numbers = NDArray[Any]

WHOLE_SUMS = 2**62
"""Bound of sums with noise of whole numbers: below it, sums and their noise fit 64 bits."""
ROUNDED_SUMS = 2**53
"""Bound of sums with continuous noise: below it, whole numbers are exact in the floating-point
numbers to which noise is added (``privacy.noise``)."""

LEAST_FRACTION = 1e-9
"""Of the budget, for a number without noise."""

PAIR = 2
"""Number of values that a client releases with noise: the count and the residual."""

RESPONSE = "randomised-response"
STAIRCASE = "staircase"

SumMechanism = Staircase | DiscreteLaplace | Laplace | Gaussian
SUM_MECHANISMS: dict[str, type[SumMechanism]] = {
    STAIRCASE: Staircase,
    "discrete-laplace": DiscreteLaplace,
    "laplace": Laplace,
    "gaussian": Gaussian,
}
"""The mechanisms for the pair, by their words."""

MECHANISMS = (*SUM_MECHANISMS, RESPONSE)
"""All mechanisms, that for single labels included."""


@dataclass(frozen=True)
class RankNoise:
    """A mechanism for the pair at a total (epsilon, delta).

    For the pure mechanisms the count costs ``fraction * epsilon`` and the residual the rest:
    epsilon by basic composition, and in parallel over clients, which hold different records. For
    ``gaussian`` the pair is one Gaussian mechanism: with ``mu = 1 / sigma`` of the analytic
    calibration, the squared ratios of sensitivity to noise add up to ``mu**2``, of which
    ``fraction`` is the count's.
    """

    mechanism: str
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"mechanism must be one of {MECHANISMS}, got {self.mechanism!r}")
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    def part(self, fraction: float) -> RankNoise:
        """The same mechanism at a fraction of the budget."""
        return RankNoise(self.mechanism, fraction * self.epsilon, fraction * self.delta)

    def rest(self, fraction: float) -> RankNoise:
        """The same mechanism at the budget that is left when a fraction was spent."""
        epsilon, delta = fraction * self.epsilon, fraction * self.delta
        return RankNoise(self.mechanism, self.epsilon - epsilon, self.delta - delta)

    @property
    def kind(self) -> type[SumMechanism | RandomisedResponse]:
        """The class of the mechanism."""
        return SUM_MECHANISMS.get(self.mechanism, RandomisedResponse)

    @property
    def largest_sum(self) -> int:
        """The bound below which a residual and its noise are added without rounding."""
        return WHOLE_SUMS if self.kind.whole else ROUNDED_SUMS

    @property
    def cost(self) -> Cost:
        """The guarantee of releasing the noisy pair."""
        if self.kind.needs_delta:
            return self.drawn(1, 1.0).cost(Adjacency.LABEL)
        return Cost(self.epsilon, adjacency=Adjacency.LABEL)

    def drawn(self, sensitivity: Numbers | int, fraction: ArrayLike) -> SumMechanism:
        """The mechanism of one number of the pair, at its fraction of the budget.

        A number that no label moves gets no noise: it is then 0.

        Parameters
        ----------
        sensitivity : 1 for the count.
        fraction : for the residual what the count leaves, 1 less the count's.
        """
        kind = SUM_MECHANISMS[self.mechanism]
        if issubclass(kind, Gaussian):
            return Gaussian(sensitivity, self.epsilon, self.delta, PAIR, fraction)
        return kind(sensitivity, np.asarray(fraction) * self.epsilon)

    def stairs(
        self, weights: Floats, sensitivity: Numbers | int, fraction: ArrayLike
    ) -> errors.StaircaseDraws | None:
        """The law of a weighted sum of noises of one number each; None for another mechanism.

        Parameters
        ----------
        weights : shape (..., K); 0 where a number has no noise.
        sensitivity, fraction : of each number, and its fraction of the budget.
        """
        if self.kind is not Staircase:
            return None
        width = np.maximum(np.asarray(sensitivity, dtype=np.int64), 1)
        epsilon = np.maximum(np.asarray(fraction, dtype=np.float64), LEAST_FRACTION) * self.epsilon
        width, epsilon = (np.broadcast_to(each, weights.shape).copy() for each in (width, epsilon))
        return errors.StaircaseDraws(weights, width, staircase_inner_width(width, epsilon), epsilon)
