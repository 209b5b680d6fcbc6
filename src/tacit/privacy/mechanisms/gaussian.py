"""Gaussian noise: continuous, calibrated to epsilon and delta, and on the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.privacy import exact
from tacit.privacy.cost import Adjacency, Cost, analytic_gaussian_sigma, loss_distributions
from tacit.privacy.mechanisms import interface
from tacit.privacy.mechanisms.laplace import geometric

WIDE_SIGMA = 8.0
"""Least sigma at which the variance of the discrete Gaussian is ``sigma**2`` in double
precision."""


class _NormalDraws(interface.Distribution):
    """Normal noise of a standard deviation ``sigma``."""

    kind = np.float64
    sigma: Any

    def exact(self, shape: interface.Shape) -> Floats:
        """Noise on the grid."""
        sigmas = exact.checked_scale(self.sigma, "sigma")
        return exact.on_grid(sigmas, shape, exact.GAUSSIAN_GRID_BITS, exact.discrete_gaussian)

    def simulated(self, rng: np.random.Generator, shape: interface.Shape) -> Floats:
        """NumPy's normal draws."""
        sigmas = exact.checked_scale(self.sigma, "sigma")
        draws = rng.standard_normal(shape)
        draws *= sigmas
        return draws

    def scaled(self, factor: float) -> Normal:
        """Noise of a larger standard deviation."""
        return Normal(np.multiply(self.sigma, factor))


@dataclass(frozen=True)
class Normal(_NormalDraws):
    """Normal noise of a given standard deviation, 0 where that is 0.

    The exact sampler draws on a grid ``g = min(1, 2**(floor(log2(sigma)) - 40))``. A continuous
    normal draw rounded to the grid is post-processing of the Gaussian mechanism (the statistic lies
    on the grid). The discrete Gaussian that is drawn is within total variation ``(g/sigma)**2 / 4
    <= 2**-82`` of it, which ``gaussian_delta`` covers.

    Parameters
    ----------
    sigma : the standard deviation.
    """

    sigma: ArrayLike


class _Concentrated(interface.Mechanism):
    """Noise whose loss is unlimited at any shift, and whose guarantee is stated by rho."""

    needs_delta = True
    variance_order = 1
    sigma: Any

    def loss(self, shift: ArrayLike) -> Floats:
        """Unlimited for any shift: only a delta above 0 bounds it."""
        return np.where(np.asarray(shift) != 0, math.inf, 0.0)

    def squared_loss(self, shift: ArrayLike) -> Floats:
        """``mu**2 = (shift / sigma)**2`` of Gaussian differential privacy; such squares add up."""
        return np.asarray(interface.in_units(shift, self.sigma) ** 2)


@dataclass(frozen=True)
class Gaussian(_Concentrated, _NormalDraws):
    """Normal noise of the smallest standard deviation for (epsilon, delta).

    ``Normal`` draws it. What the exact sampler's grid adds to delta is subtracted from ``delta``
    before.

    Parameters
    ----------
    sensitivity : how far a neighbour moves the statistic in the Euclidean norm.
    epsilon, delta : what that move costs.
    coordinates : how many numbers get noise in one release.
    part : the part of the squared ratio of sensitivity to noise that this number has; the parts of
        all numbers that one record moves add up to 1.

    Examples
    --------
    >>> round(float(Gaussian(1, 1.0, 1e-6).sigma), 4)
    4.2247
    """

    sensitivity: ArrayLike
    epsilon: float
    delta: float
    coordinates: int = 1
    part: ArrayLike = 1.0
    whole = False

    @property
    def sigma(self) -> Floats:
        """The analytic calibration (Balle and Wang 2018) over the root of the part."""
        distance = np.asarray(self.sensitivity)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(distance > 0, self._unit * distance / np.sqrt(self.part), 0.0)

    @property
    def variance(self) -> Floats:
        """``sigma**2``."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            squared = (self._unit * np.asarray(self.sensitivity)) ** 2 / np.asarray(self.part)
        return np.where(np.asarray(self.sensitivity) > 0, squared, 0.0)

    @property
    def unit_variance(self) -> Floats:
        """The variance divided by the squared sensitivity."""
        return np.asarray(self._unit**2 / np.asarray(self.part))

    @property
    def rho(self) -> float:
        """The zero-concentrated guarantee of all parts, ``1 / (2 sigma**2)`` for sensitivity 1."""
        return 0.5 / self._unit**2

    def cost(self, adjacency: Adjacency) -> Cost:
        """(Epsilon, delta), which covers all parts together."""
        known = self if interface.single(self.sensitivity, self.part) else None
        return Cost(self.epsilon, self.delta, adjacency, self.rho, known)

    def loss_distribution(self) -> Any:
        """That of the normal distribution of all parts."""
        return loss_distributions().from_gaussian_mechanism(self._unit)

    @property
    def loss_error(self) -> float:
        """The grid's distance, once for each number."""
        return self.coordinates * exact.GAUSSIAN_DISTANCE

    @property
    def _unit(self) -> float:
        """The standard deviation at sensitivity 1 for all parts together."""
        delta = exact.gaussian_delta(self.epsilon, self.delta, self.coordinates)
        return analytic_gaussian_sigma(self.epsilon, delta)


@dataclass(frozen=True)
class DiscreteGaussian(_Concentrated):
    """Normal noise on the integers (Canonne, Kamath and Steinke 2020).

    Parameters
    ----------
    sensitivity : how far a neighbour moves the statistic, in integers.
    sigma : the parameter; there is no noise where it is 0.
    delta : the delta at which the cost is stated.

    Examples
    --------
    >>> round(DiscreteGaussian(1, 2.0).rho, 3)
    0.125
    """

    sensitivity: ArrayLike
    sigma: ArrayLike
    delta: float = 1e-6

    @property
    def variance(self) -> Floats:
        """``sum z^2 exp(-z^2 / (2 sigma^2)) / sum exp(-z^2 / (2 sigma^2))`` over all integers.

        From a sigma of 8 on the sums are the integrals to double precision, and it is ``sigma^2``.
        """
        sigmas = np.asarray(self.sigma, dtype=np.float64)[..., np.newaxis]
        squares = np.arange(1, 100, dtype=np.float64) ** 2
        with np.errstate(divide="ignore"):
            weights = np.exp(-squares / (2 * sigmas**2))
        summed = 2 * (squares * weights).sum(axis=-1) / (1 + 2 * weights.sum(axis=-1))
        return np.where(sigmas[..., 0] < WIDE_SIGMA, summed, sigmas[..., 0] ** 2)

    @property
    def rho(self) -> float:
        """The zero-concentrated guarantee, ``sensitivity^2 / (2 sigma^2)`` (Theorem 4)."""
        return float(np.max(self.squared_loss(self.sensitivity))) / 2

    def cost(self, adjacency: Adjacency) -> Cost:
        """``rho + 2 sqrt(rho log(1 / delta))`` (Bun and Steinke 2016, Prop. 1.3)."""
        rho = self.rho
        epsilon = rho + 2 * math.sqrt(rho * math.log(1 / self.delta))
        known = self if interface.single(self.sensitivity, self.sigma) else None
        return Cost(epsilon, self.delta, adjacency, rho, known)

    def loss_distribution(self) -> Any:
        """That of a shift by the sensitivity, rounded down to an integer as statistics are."""
        steps, losses = interface.whole_steps(self.sensitivity), loss_distributions()
        sigma = float(np.asarray(self.sigma))
        whole = losses.from_discrete_gaussian_mechanism
        return whole(sigma, steps) if steps else losses.identity()

    def exact(self, shape: interface.Shape) -> Integers:
        """Noise from OpenDP."""
        sigmas = np.broadcast_to(exact.checked_scale(self.sigma, "sigma"), shape)
        return exact.by_parameter(sigmas, exact.discrete_gaussian)

    def simulated(self, rng: np.random.Generator, shape: interface.Shape) -> Integers:
        """Noise by rejection (Canonne, Kamath and Steinke 2020, Alg. 3)."""
        sigmas = np.broadcast_to(exact.checked_scale(self.sigma, "sigma"), shape).ravel()
        draws = np.zeros(sigmas.size, dtype=np.int64)
        todo = np.flatnonzero(sigmas > 0)
        while todo.size:
            sigma = sigmas[todo]
            envelope = np.floor(sigma) + 1
            proposed = geometric(rng, 1 / envelope, sigma.shape)
            proposed -= geometric(rng, 1 / envelope, sigma.shape)
            with np.errstate(over="ignore"):
                excess = (np.abs(proposed) / sigma - sigma / envelope) ** 2 / 2
            taken = rng.standard_exponential(todo.size) >= excess
            draws[todo[taken]] = proposed[taken]
            todo = todo[~taken]
        return draws.reshape(shape)

    def scaled(self, factor: float) -> DiscreteGaussian:
        """Noise of a larger parameter."""
        return DiscreteGaussian(self.sensitivity, np.multiply(self.sigma, factor), self.delta)
