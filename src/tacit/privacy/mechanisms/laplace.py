"""Laplace noise: continuous, on the integers, and shares of it that add up to a whole draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.mechanisms.interface import Mechanism, Shape, single, whole_steps
from tacit.privacy.sampling import exact, simulated
from tacit.privacy.sampling.checks import checked_scale, checked_share
from tacit.privacy.sampling.distributions import discrete_laplace_variance, shared_laplace_epsilon
from tacit.privacy.sampling.grids import GRID_BITS, on_grid, power_of_two_grid


@dataclass(frozen=True)
class _TwoSided(Mechanism):
    """Noise whose probability falls with the distance from 0 as ``exp(-|z| / scale)``.

    Parameters
    ----------
    sensitivity : how far a neighbour moves the statistic; there is no noise where it is 0.
    epsilon : what that move costs.
    """

    sensitivity: ArrayLike
    epsilon: ArrayLike

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

    def cost(self, adjacency: Adjacency) -> Cost:
        """The largest epsilon of a number: a record moves one number by its sensitivity."""
        known = self if single(self.sensitivity, self.epsilon) else None
        return Cost(float(np.max(self.epsilon)), adjacency=adjacency, mechanism=known)

    def loss(self, shift: ArrayLike) -> Floats:
        """``|shift| / scale``; unlimited where there is no noise."""
        return _ratio(np.abs(np.asarray(shift, dtype=np.float64)), self.scale)

    def log_weight(self, values: ArrayLike) -> Floats:
        """``-|z| / scale``."""
        return -_ratio(np.abs(np.asarray(values, dtype=np.float64)), self.scale)


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

    whole = False

    @property
    def variance(self) -> Floats:
        """``2 scale**2``."""
        return np.asarray(2.0 * self.scale**2)

    def loss_distribution(self) -> Any:
        """That of the discrete Laplace noise on the grid, which is a little above the continuous.

        A statistic off the integers is rounded outwards to the grid.
        """
        grid = float(power_of_two_grid(self.scale))
        steps = math.ceil(float(np.asarray(self.sensitivity)) / grid)
        return _discrete_loss(float(self.scale) / grid, steps)

    def exact(self, shape: Shape) -> Floats:
        """Noise on the grid."""
        return on_grid(checked_scale(self.scale, "scale"), shape, GRID_BITS, exact.discrete_laplace)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Floats:
        """An exponential with a random sign."""
        return simulated.laplace(rng, checked_scale(self.scale, "scale"), shape)

    def silent(self, shape: Shape) -> Floats:
        """Zeros."""
        return np.zeros(shape)

    def scaled(self, factor: float) -> Laplace:
        """Noise of a larger scale."""
        return Laplace(np.multiply(self.sensitivity, factor), self.epsilon)


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
        return discrete_laplace_variance(self.scale)

    def loss_distribution(self) -> Any:
        """That of a shift by the sensitivity, rounded down to an integer as statistics are."""
        return _discrete_loss(float(self.scale), whole_steps(self.sensitivity))

    def exact(self, shape: Shape) -> Integers:
        """Noise from OpenDP (Canonne, Kamath and Steinke 2020)."""
        scales = np.broadcast_to(checked_scale(self.scale, "scale"), shape)
        return exact.by_parameter(scales, exact.discrete_laplace)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """The difference of two geometric draws."""
        return simulated.discrete_laplace(rng, checked_scale(self.scale, "scale"), shape)

    def scaled(self, factor: float) -> DiscreteLaplace:
        """Noise of a larger scale."""
        return DiscreteLaplace(np.multiply(self.sensitivity, factor), self.epsilon)


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

    @property
    def variance(self) -> Floats:
        """The share's part of the whole noise's variance."""
        return np.asarray(float(self.share) * discrete_laplace_variance(self.scale))

    def cost(self, adjacency: Adjacency) -> Cost:
        """What this share alone supports, which is less than the whole noise does."""
        return Cost(float(np.max(self.loss(self.sensitivity))), adjacency=adjacency)

    def loss(self, shift: ArrayLike) -> Floats:
        """``shared_laplace_epsilon`` of the scale, the share and the shift."""
        scales, shifts = np.broadcast_arrays(self.scale, np.abs(np.asarray(shift)))
        flat = [
            0.0 if move == 0 else math.inf if scale == 0 else self._loss(float(scale), move)
            for scale, move in zip(scales.ravel(), shifts.ravel(), strict=True)
        ]
        return np.array(flat).reshape(shifts.shape)

    def _loss(self, scale: float, move: float) -> float:
        return shared_laplace_epsilon(scale, float(self.share), max(whole_steps(move), 1))

    def log_weight(self, values: ArrayLike) -> Floats:
        """``b^z (r)_z / z! 2F1(r, r+z; z+1; b^2)`` with the share r and ``b = exp(-1/scale)``."""
        size = np.abs(np.asarray(values, dtype=np.float64))
        r, rate = float(self.share), 1 / self.scale
        ways = scipy.special.gammaln(size + r) - scipy.special.gammaln(size + 1)
        series = scipy.special.hyp2f1(r, r + size, size + 1, np.exp(-2 * rate))
        return np.asarray(ways + np.log(series) - size * rate)

    def exact(self, shape: Shape) -> Integers:
        """Exact Polya draws."""
        scales = np.broadcast_to(checked_scale(self.scale, "scale"), shape)
        share = checked_share(self.share)
        if share == 1:
            return exact.by_parameter(scales, exact.discrete_laplace)

        def polya(scale: float, size: int) -> Integers:
            return exact.polya(scale, share, size)

        return exact.by_parameter(scales, polya) - exact.by_parameter(scales, polya)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """Draws from NumPy's negative binomial."""
        scales = checked_scale(self.scale, "scale")
        return simulated.polya(rng, scales, checked_share(self.share), shape)

    def scaled(self, factor: float) -> PolyaShare:
        """A share of noise of a larger scale."""
        return PolyaShare(np.multiply(self.sensitivity, factor), self.epsilon, self.share)


def _ratio(distance: Floats, scale: Floats) -> Floats:
    """``distance / scale``, 0 at no distance whatever the scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / scale)


def _discrete_loss(scale: float, steps: int) -> Any:
    """That of discrete Laplace noise under a shift by so many steps, whose scale is in steps."""
    from dp_accounting.pld import privacy_loss_distribution  # noqa: PLC0415 (a second to import)

    if steps == 0:
        return privacy_loss_distribution.identity()
    return privacy_loss_distribution.from_discrete_laplace_mechanism(1 / scale, steps)
