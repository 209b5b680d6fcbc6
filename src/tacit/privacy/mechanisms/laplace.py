"""Laplace and staircase noise: continuous, on the integers, and in shares that add up.

Staircase noise (Geng and Viswanath 2014): the least variance of all epsilon-private noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Flags, Floats, Integers
from tacit.privacy import distributions, exact
from tacit.privacy.cost import Adjacency, Cost, loss_distributions
from tacit.privacy.mechanisms.interface import Mechanism, Shape, in_units, single, whole_steps


def geometric(rng: np.random.Generator, rate: Floats, shape: Shape) -> Integers:
    """Fast draws of k >= 0 with probability proportional to ``exp(-rate k)``, by inversion."""
    draws = rng.standard_exponential(shape)
    draws /= rate
    return draws.astype(np.int64)  # rounds down, as no draw is negative


def _coins(rng: np.random.Generator, shape: Shape) -> Flags:
    return rng.integers(0, 2, shape, dtype=np.bool_)


def _rate(scale: Floats) -> Floats:
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / exact.checked_scale(scale, "scale")


@dataclass(frozen=True)
class _Pure(Mechanism):
    """Noise with a bounded loss.

    Parameters
    ----------
    sensitivity : how far a neighbour moves the statistic; there is no noise where it is 0.
    epsilon : what that move costs.
    """

    sensitivity: ArrayLike
    epsilon: ArrayLike

    def cost(self, adjacency: Adjacency) -> Cost:
        """The largest epsilon of a number: a record moves one number by its sensitivity."""
        known = self if single(self.sensitivity, self.epsilon) else None
        return Cost(float(np.max(self.epsilon)), adjacency=adjacency, mechanism=known)


@dataclass(frozen=True)
class _TwoSided(_Pure):
    """Noise whose probability falls with the distance from 0 as ``exp(-|z| / scale)``."""

    @property
    def scale(self) -> Floats:
        """``sensitivity / epsilon``, and 0 where the sensitivity is."""
        distance = np.asarray(self.sensitivity, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(distance == 0, 0.0, distance / np.asarray(self.epsilon))

    @property
    def unit_variance(self) -> Floats:
        """The variance for a large sensitivity, divided by its square."""
        return np.asarray(2.0 / np.asarray(self.epsilon, dtype=np.float64) ** 2)

    def loss(self, shift: ArrayLike) -> Floats:
        """``|shift| / scale``; unlimited where there is no noise."""
        return in_units(shift, self.scale)

    def scaled(self, factor: float) -> Self:
        """Noise of a larger scale."""
        return replace(self, sensitivity=np.multiply(self.sensitivity, factor))


@dataclass(frozen=True)
class Laplace(_TwoSided):
    """Laplace noise for a statistic in integers.

    The exact sampler draws on a grid ``g = min(1, 2**(floor(log2(scale)) - 20))``. The statistic
    lies on that grid, so value plus noise is an exact discrete Laplace release with ratio
    ``exp(-g/scale)`` a grid step: epsilon is ``sensitivity / scale``, as for the continuous
    distribution, and the variance agrees with it to one part in 10**12. The noise is exact as a
    float64; adding it to an integer below 2**53 rounds the exact sum once, which is
    post-processing.

    Examples
    --------
    >>> float(Laplace(sensitivity=2, epsilon=0.5).variance)
    32.0
    """

    whole, kind = False, np.float64

    @property
    def variance(self) -> Floats:
        """``2 scale**2``."""
        return np.asarray(2.0 * self.scale**2)

    def loss_distribution(self) -> Any:
        """That of the discrete Laplace noise on the grid, which is a little above the continuous.

        A statistic off the integers is rounded outwards to the grid.
        """
        grid = float(exact.power_of_two_grid(self.scale))
        steps = math.ceil(float(np.asarray(self.sensitivity)) / grid)
        return _discrete_loss(float(self.scale) / grid, steps)

    def exact(self, shape: Shape) -> Floats:
        """Noise on the grid."""
        scales = exact.checked_scale(self.scale, "scale")
        return exact.on_grid(scales, shape, exact.GRID_BITS, exact.discrete_laplace)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Floats:
        """An exponential with a random sign."""
        scales = exact.checked_scale(self.scale, "scale")
        draws = rng.standard_exponential(shape)
        np.negative(draws, out=draws, where=_coins(rng, shape))
        draws *= scales
        return draws


@dataclass(frozen=True)
class DiscreteLaplace(_TwoSided):
    """Laplace noise on the integers (Ghosh, Roughgarden and Sundararajan 2012).

    Examples
    --------
    >>> round(float(DiscreteLaplace(1, 1.0).variance), 4)
    1.8413
    """

    @property
    def variance(self) -> Floats:
        """``2b / (1-b)**2`` with ``b = exp(-1/scale)``."""
        return distributions.discrete_laplace_variance(self.scale)

    def loss_distribution(self) -> Any:
        """That of a shift by the sensitivity, rounded down to an integer as statistics are."""
        return _discrete_loss(float(self.scale), whole_steps(self.sensitivity))

    def exact(self, shape: Shape) -> Integers:
        """Noise from OpenDP (Canonne, Kamath and Steinke 2020)."""
        scales = np.broadcast_to(exact.checked_scale(self.scale, "scale"), shape)
        return exact.by_parameter(scales, exact.discrete_laplace)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """The difference of two geometric draws."""
        rate = _rate(self.scale)
        return geometric(rng, rate, shape) - geometric(rng, rate, shape)


@dataclass(frozen=True)
class PolyaShare(_TwoSided):
    """A share of discrete Laplace noise: the difference of two Polya draws.

    Shares of independent draws add up, and shares that add up to 1 make ``DiscreteLaplace`` of this
    sensitivity and epsilon (Cormode and Markov 2023, section 2.2).

    Parameters
    ----------
    sensitivity : how far a neighbour moves the sum to which all shares are added.
    epsilon : what that move costs under the whole noise.
    share : the part of the noise that is drawn, above 0.

    Examples
    --------
    >>> half = PolyaShare(1, 1.0, Fraction(1, 2))
    >>> round(float(half.variance), 4), round(float(half.loss(1)), 3)
    (0.9207, 1.675)
    """

    share: Fraction

    def __post_init__(self) -> None:
        if self.share <= 0:
            raise ValueError(f"share must be above 0, got {self.share}")

    @property
    def variance(self) -> Floats:
        """The share's part of the whole noise's variance."""
        return np.asarray(float(self.share) * distributions.discrete_laplace_variance(self.scale))

    def cost(self, adjacency: Adjacency) -> Cost:
        """What this share alone supports, which is less than the whole noise does."""
        return Cost(float(np.max(self.loss(self.sensitivity))), adjacency=adjacency)

    def loss(self, shift: ArrayLike) -> Floats:
        """``shared_laplace_epsilon`` of the scale, the share and the shift."""
        return np.asarray(np.vectorize(self._loss, otypes=[np.float64])(self.scale, np.abs(shift)))

    def _loss(self, scale: float, move: float) -> float:
        if move == 0 or scale == 0:
            return math.inf if move else 0.0
        steps = max(whole_steps(move), 1)
        return distributions.shared_laplace_epsilon(float(scale), float(self.share), steps)

    def exact(self, shape: Shape) -> Integers:
        """Exact Polya draws."""
        scales = np.broadcast_to(exact.checked_scale(self.scale, "scale"), shape)
        if self.share == 1:
            return exact.by_parameter(scales, exact.discrete_laplace)

        def polya(scale: float, size: int) -> Integers:
            return exact.polya(scale, self.share, size)

        return exact.by_parameter(scales, polya) - exact.by_parameter(scales, polya)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """Draws from NumPy's negative binomial; of a whole share those of the whole noise."""
        if self.share == 1:
            return DiscreteLaplace(self.sensitivity, self.epsilon).simulated(rng, shape)
        stops = np.broadcast_to(-np.expm1(-_rate(self.scale)), shape)
        first, second = (rng.negative_binomial(float(self.share), stops, shape) for _ in range(2))
        return first - second


def _discrete_loss(scale: float, steps: int) -> Any:
    """That of discrete Laplace noise under a shift by so many steps, whose scale is in steps."""
    losses = loss_distributions()
    return losses.from_discrete_laplace_mechanism(1 / scale, steps) if steps else losses.identity()


@dataclass(frozen=True)
class Staircase(_Pure):
    """Staircase noise on the integers, at the inner width of least variance.

    The probability of z drops ``exp(-epsilon)``-fold where ``|z|`` reaches the inner width, and
    again after every ``sensitivity`` integers, a whole number.

    Examples
    --------
    >>> round(float(Staircase(10, 2.0).variance), 2)
    42.21
    """

    loss_error = 2 * (exact.OUTER_SLACK - 1)
    """The outer part is drawn more often by ``OUTER_SLACK``; doubled for other roundings."""

    @property
    def variance(self) -> Floats:
        """``discrete_staircase_variance``."""
        return distributions.discrete_staircase_variance(self.sensitivity, self.epsilon)

    @property
    def unit_variance(self) -> Floats:
        """The variance for a large sensitivity, divided by its square."""
        return distributions.staircase_variance(self.epsilon)

    def loss(self, shift: ArrayLike) -> Floats:
        """Epsilon for every begun sensitivity of the shift; unlimited where there is no noise.

        A shift by up to one sensitivity passes at most one drop of the probability.
        """
        steps = np.ceil(in_units(shift, self.sensitivity) - 1e-9)
        return np.asarray(np.maximum(steps, 0.0) * np.asarray(self.epsilon))

    def loss_distribution(self) -> Any:
        """That of a shift by the sensitivity, with the losses epsilon, 0 and ``-epsilon``.

        It dominates smaller shifts: the outcomes at which a shift costs epsilon are among those at
        which a larger one does, as long as neither passes two drops. With inner width r, width w
        and ``b = exp(-epsilon)``, half of the outcomes weighs ``S = (r + b (w - r)) / (1 - b)``
        with 0 and all of them ``2 S - 1``. Outcomes up to 0 have the loss epsilon, those from w on
        ``-epsilon``. Of those between, ``min(r - 1, w - r)`` on either side join them; the others
        have the loss 0.
        """
        width = int(distributions.whole_sensitivity(self.sensitivity))
        epsilon = float(np.asarray(self.epsilon))
        if width == 0:
            return loss_distributions().identity()
        inner, b = int(distributions.staircase_inner_width(width, epsilon)), math.exp(-epsilon)
        half = (inner + b * (width - inner)) / -math.expm1(-epsilon)
        sides = min(inner - 1, width - inner)
        middle = (width - 1 - 2 * sides) * (1.0 if inner - 1 > width - inner else b)
        weights = {epsilon: half + sides, 0.0: middle, -epsilon: b * (half + sides)}
        whole = math.fsum(weights.values())
        upper = {loss: math.log(weight / whole) for loss, weight in weights.items() if weight > 0}
        lower = {loss: chance - loss for loss, chance in upper.items()}
        return loss_distributions().from_two_probability_mass_functions(lower, upper)

    def exact(self, shape: Shape) -> Integers:
        """Noise from a geometric step, a part, an offset in it and a sign.

        Each is exact except the choice of the outer part, whose probability is rounded up. That
        leaves the guarantee untouched: with any weight of the outer part between ``exp(-epsilon)``
        and 1 the probabilities fall away from zero, and fall ``exp(-epsilon)``-fold over every
        ``sensitivity`` integers, which is all that epsilon-privacy needs.
        """
        stairs = exact.Stairs.broadcast(self.sensitivity, self.epsilon, shape)
        return stairs.signed(exact.exact_magnitude, exact.coins, shape)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """Noise from a geometric step, an offset within it, and a sign."""

        def magnitude(some: exact.Stairs) -> Integers:
            step = geometric(rng, some.epsilon, some.width.shape)
            outer = rng.random(step.size) < some.outer_probability
            width = np.where(outer, some.width - some.inner, some.inner)
            offset = np.floor(rng.random(step.size) * width).astype(np.int64)
            return step * some.width + np.where(outer, some.inner, 0) + offset

        stairs = exact.Stairs.broadcast(self.sensitivity, self.epsilon, shape)
        return stairs.signed(magnitude, lambda size: _coins(rng, (size,)), shape)

    def scaled(self, factor: float) -> Staircase:
        """Noise for a smaller epsilon."""
        return Staircase(self.sensitivity, np.divide(self.epsilon, factor))
