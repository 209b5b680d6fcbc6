"""The noises of Sun et al. 2022b, as choices of the setting ``mechanism``."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from tacit.privacy.mechanisms import gaussian, laplace
from tacit.protocol.settings.choices import Choice

ACCOUNTINGS = ("tight", "paper")
POINTS = ("clamped", "plain")


@dataclass(frozen=True)
class OnCounts(Choice):
    """Noise on the four confusion counts of every threshold.

    Parameters
    ----------
    accounting : ``"tight"``, or ``"paper"``, which charges every count apart.
    points : ``"clamped"`` clamps noisy counts at 0 and orders the points as the paper does, which
        biases the area downwards when noise is large; ``"plain"`` leaves both out and pools the
        class totals.

    Raises
    ------
    ValueError : for another word.
    """

    accounting: str = "tight"
    points: str = "clamped"

    def __post_init__(self) -> None:
        for name, words in (("accounting", ACCOUNTINGS), ("points", POINTS)):
            if getattr(self, name) not in words:
                raise ValueError(f"{name} must be one of {words}, got {getattr(self, name)!r}")

    @property
    def clamps(self) -> bool:
        """Whether counts are clamped and points ordered."""
        return self.points == "clamped"

    def distance(self, thresholds: int, adjacency: str) -> int:
        """The L1 distance of the counts between neighbours; also their squared L2 distance."""
        if self.accounting == "paper":
            return 4 * thresholds
        return (1 if adjacency == "record" else 2) * thresholds

    @abstractmethod
    def drawn(
        self, thresholds: int, adjacency: str, epsilon: float
    ) -> laplace.Laplace | gaussian.Gaussian:
        """The mechanism of all counts together."""


@dataclass(frozen=True)
class Laplace(OnCounts):
    """Laplace noise.

    Examples
    --------
    >>> str(Laplace(accounting="paper"))
    'laplace(accounting=paper)'
    """

    word = "laplace"

    def drawn(self, thresholds: int, adjacency: str, epsilon: float) -> laplace.Laplace:
        """Of scale ``distance / epsilon``."""
        return laplace.Laplace(self.distance(thresholds, adjacency), epsilon)


@dataclass(frozen=True)
class Gaussian(OnCounts):
    """Gaussian noise.

    Parameters
    ----------
    delta : the chance that epsilon fails, above 0 and below 1; it has to be given.
    """

    delta: float = 0.0

    word = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.delta < 1:
            raise ValueError(
                f"gaussian needs a delta between 0 and 1, such as gaussian(delta=1e-6), got "
                f"{self.delta}"
            )

    def drawn(self, thresholds: int, adjacency: str, epsilon: float) -> gaussian.Gaussian:
        """Of the analytic calibration for the L2 distance."""
        distance = math.sqrt(self.distance(thresholds, adjacency))
        return gaussian.Gaussian(distance, epsilon, self.delta, 4 * thresholds)


@dataclass(frozen=True)
class RandomisedResponse(Choice):
    """Every label is flipped once, by a chance that epsilon gives."""

    word = "randomised-response"
