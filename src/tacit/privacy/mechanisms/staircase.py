"""Staircase noise (Geng and Viswanath 2014): the least variance of all epsilon-private noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.mechanisms.interface import Distribution, Mechanism, Shape, single
from tacit.privacy.sampling import exact, simulated
from tacit.privacy.sampling.checks import checked_epsilon, checked_scale
from tacit.privacy.sampling.distributions import (
    discrete_staircase_variance,
    staircase_inner_width,
    staircase_variance,
    whole_sensitivity,
)
from tacit.privacy.sampling.stairs import OUTER_SLACK, Stairs, exact_magnitude


@dataclass(frozen=True)
class Staircase(Mechanism):
    """Staircase noise on the integers, at the inner width of least variance.

    The probability of z drops ``exp(-epsilon)``-fold where ``|z|`` reaches the inner width, and
    again after every ``sensitivity`` integers.

    Parameters
    ----------
    sensitivity : how far a neighbour moves the statistic, an integer; no noise where it is 0.
    epsilon : what that move costs.

    Examples
    --------
    >>> round(float(Staircase(10, 2.0).variance), 2)
    42.21
    """

    sensitivity: ArrayLike
    epsilon: ArrayLike

    @property
    def variance(self) -> Floats:
        """``discrete_staircase_variance``."""
        return discrete_staircase_variance(self.sensitivity, self.epsilon)

    @property
    def unit_variance(self) -> Floats:
        """The variance for a large sensitivity, divided by its square."""
        return staircase_variance(self.epsilon)

    def cost(self, adjacency: Adjacency) -> Cost:
        """The largest epsilon of a number: a record moves one number by its sensitivity."""
        known = self if single(self.sensitivity, self.epsilon) else None
        return Cost(float(np.max(self.epsilon)), adjacency=adjacency, mechanism=known)

    def loss(self, shift: ArrayLike) -> Floats:
        """Epsilon for every begun sensitivity of the shift; unlimited where there is no noise.

        A shift by up to one sensitivity passes at most one drop of the probability.
        """
        distance = np.abs(np.asarray(shift, dtype=np.float64))
        width = np.asarray(self.sensitivity, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.ceil(distance / width - 1e-9)
            return np.where(distance == 0, 0.0, steps * np.asarray(self.epsilon))

    def log_weight(self, values: ArrayLike) -> Floats:
        """``-epsilon`` times the number of drops of the probability before ``|z|``."""
        width = np.asarray(self.sensitivity, dtype=np.int64)
        inner = staircase_inner_width(width, self.epsilon)
        drops = (np.abs(np.asarray(values, dtype=np.int64)) - inner) // width + 1
        return np.asarray(-np.asarray(self.epsilon) * drops, dtype=np.float64)

    def loss_distribution(self) -> Any:
        """That of a shift by the sensitivity, with the losses epsilon, 0 and ``-epsilon``.

        It dominates smaller shifts: the outcomes at which a shift costs epsilon are among those at
        which a larger one does, as long as neither passes two drops. With inner width r, width w
        and ``b = exp(-epsilon)``, half of the outcomes weighs ``S = (r + b (w - r)) / (1 - b)``
        with 0 and all of them ``2 S - 1``. Outcomes up to 0 have the loss epsilon, those from w on
        ``-epsilon``. Of those between, ``min(r - 1, w - r)`` on either side join them; the others
        have the loss 0.
        """
        from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415

        width, epsilon = int(whole_sensitivity(self.sensitivity)), float(np.asarray(self.epsilon))
        if width == 0:
            return privacy_loss_distribution.identity()
        inner, b = int(staircase_inner_width(width, epsilon)), math.exp(-epsilon)
        half = (inner + b * (width - inner)) / -math.expm1(-epsilon)
        sides = min(inner - 1, width - inner)
        middle = (width - 1 - 2 * sides) * (1.0 if inner - 1 > width - inner else b)
        weights = {epsilon: half + sides, 0.0: middle, -epsilon: b * (half + sides)}
        whole = math.fsum(weights.values())
        upper = {loss: math.log(weight / whole) for loss, weight in weights.items() if weight > 0}
        lower = {loss: chance - loss for loss, chance in upper.items()}
        return privacy_loss_distribution.from_two_probability_mass_functions(lower, upper)

    @property
    def loss_error(self) -> float:
        """The outer part is drawn more often by ``OUTER_SLACK``; doubled for other roundings."""
        return 2 * (OUTER_SLACK - 1)

    def exact(self, shape: Shape) -> Integers:
        """Noise from a geometric step, a part, an offset in it and a sign.

        Each is exact except the choice of the outer part, whose probability is rounded up. That
        leaves the guarantee untouched: with any weight of the outer part between ``exp(-epsilon)``
        and 1 the probabilities fall away from zero, and fall ``exp(-epsilon)``-fold over every
        ``sensitivity`` integers, which is all that epsilon-privacy needs.
        """
        stairs = Stairs.broadcast(self.sensitivity, self.epsilon, shape)
        return stairs.signed(exact_magnitude, exact.coins, shape)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """Noise from a geometric step, an offset within it, and a sign."""
        return simulated.staircase(
            rng, Stairs.broadcast(self.sensitivity, self.epsilon, shape), shape
        )

    def scaled(self, factor: float) -> Staircase:
        """Noise for a smaller epsilon."""
        return Staircase(self.sensitivity, np.divide(self.epsilon, factor))


@dataclass(frozen=True)
class ContinuousStaircase(Distribution):
    """Continuous staircase noise (Geng and Viswanath 2014, Alg. 1), for comparison only.

    It is only simulated: its low bits would betray the statistic.

    Parameters
    ----------
    sensitivity, epsilon : as for ``Staircase``.
    """

    sensitivity: ArrayLike
    epsilon: ArrayLike

    def exact(self, shape: Shape) -> Floats:
        """Refused."""
        raise ValueError("continuous staircase noise is only simulated; Staircase is for releases")

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Floats:
        """Noise from a geometric step, an offset within it, and a sign."""
        widths = checked_scale(self.sensitivity, "sensitivity")
        epsilons = checked_epsilon(self.epsilon, widths)
        return simulated.continuous_staircase(rng, widths, epsilons, shape)
