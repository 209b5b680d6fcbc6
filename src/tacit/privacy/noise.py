"""Additive noise: two sources that draw it, and one that draws none.

Every additive mechanism here perturbs a statistic that takes integer values (a count, or twice a
rank sum) of size below 2**53. ``SimulatedNoise`` draws fast, seeded floating-point samples for
experiments. ``SystemNoise`` draws exact samples from operating-system entropy (OpenDP for the
discrete Laplace and Gaussian distributions); what it calls ``laplace`` and ``gaussian`` lives on a
fine power-of-two grid that contains the integers, so that no low bit of a floating-point sample can
betray the statistic (Mironov 2012).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.privacy import exact
from tacit.privacy.checks import (
    check_probability,
    checked_bounds,
    checked_epsilon,
    checked_scale,
    checked_share,
)
from tacit.privacy.distributions import staircase_gamma
from tacit.privacy.stairs import Stairs, exact_magnitude, outer_share

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]
Shape = tuple[int, ...]

GRID_BITS = 20
"""Continuous noise of scale b is drawn on a power-of-two grid at most ``b / 2**GRID_BITS`` wide."""

GAUSSIAN_GRID_BITS = 40
"""The same for Gaussian noise, where the grid enters the guarantee through a tiny delta."""

GAUSSIAN_DISTANCE = 2.0 ** (-2 * GAUSSIAN_GRID_BITS - 2)
"""The total variation between a drawn coordinate and a normal one rounded to the grid, at most."""


class NoiseSource(ABC):
    """Draws noise of a given shape; with ``replicates`` set, a leading axis holds that many draws.

    In every method ``shape`` excludes the replicate axis, and parameters broadcast against the
    full shape ``(replicates, *shape)`` or ``shape``.
    """

    replicates: int | None = None

    def full_shape(self, shape: Shape) -> Shape:
        """The shape of a draw: ``shape``, after the replicate axis if there is one."""
        return shape if self.replicates is None else (self.replicates, *shape)

    @abstractmethod
    def laplace(self, scale: ArrayLike, shape: Shape) -> Floats:
        """Laplace noise of variance ``2 scale**2``; zero where the scale is zero."""

    @abstractmethod
    def gaussian(self, sigma: ArrayLike, shape: Shape) -> Floats:
        """Normal noise of standard deviation ``sigma``; zero where it is zero."""

    @abstractmethod
    def discrete_laplace(self, scale: ArrayLike, shape: Shape) -> Integers:
        """Integer noise with probability proportional to ``exp(-|z| / scale)``."""

    @abstractmethod
    def discrete_gaussian(self, sigma: ArrayLike, shape: Shape) -> Integers:
        """Integer noise with probability proportional to ``exp(-z**2 / (2 sigma**2))``."""

    @abstractmethod
    def discrete_staircase(
        self, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape
    ) -> Integers:
        """Staircase noise on the integers for an integer sensitivity; zero where that is zero."""

    @abstractmethod
    def polya(self, scale: ArrayLike, share: Fraction, shape: Shape) -> Integers:
        """A share of discrete Laplace noise: the difference of two Polya draws.

        Shares of independent draws add up, and shares that add up to 1 make ``discrete_laplace`` of
        this scale (paper 5, section 2.2).
        """

    @abstractmethod
    def bernoulli(self, probability: float, size: int) -> Bits:
        """Independent bits that are True with ``probability``, shape ``full_shape((size,))``."""

    @abstractmethod
    def integers(self, bounds: ArrayLike, shape: Shape) -> Integers:
        """Uniform integers, each from 0 to its bound less one."""

    @abstractmethod
    def choices(self, weights: Sequence[int], size: int) -> Integers:
        """Places in ``weights``, each chosen in proportion to its weight, shape (size,).

        They say who does what, not what is hidden: all replicates share them, so a protocol that
        samples its clients asks for one replicate at a time.
        """


class SimulatedNoise(NoiseSource):
    """Fast floating-point noise for experiments; never for a release.

    Parameters
    ----------
    seed : makes the draws repeatable; None takes fresh entropy.
    replicates : the length of the leading axis of every draw, for repeated experiments.
    """

    def __init__(self, seed: int | None = None, replicates: int | None = None) -> None:
        if replicates is not None and replicates < 1:
            raise ValueError(f"replicates must be at least 1, got {replicates}")
        self.replicates = replicates
        self._rng = np.random.default_rng(seed)

    def laplace(self, scale: ArrayLike, shape: Shape) -> Floats:
        """Laplace noise, as an exponential with a random sign."""
        scales = checked_scale(scale, "scale")
        full = self.full_shape(shape)
        draws = self._rng.standard_exponential(full)
        np.negative(draws, out=draws, where=self._coins(full))
        draws *= scales
        return draws

    def gaussian(self, sigma: ArrayLike, shape: Shape) -> Floats:
        """Normal noise."""
        sigmas = checked_scale(sigma, "sigma")
        draws = self._rng.standard_normal(self.full_shape(shape))
        draws *= sigmas
        return draws

    def staircase(self, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape) -> Floats:
        """Continuous staircase noise (Geng and Viswanath 2014, Alg. 1), for comparison only."""
        widths = checked_scale(sensitivity, "sensitivity")
        epsilons = checked_epsilon(epsilon, widths)
        full = self.full_shape(shape)
        inner = staircase_gamma(epsilons)
        step = self._geometric(epsilons, full)
        outer = self._rng.random(full) < outer_share(np.float64(1), inner, epsilons)
        place = self._rng.random(full)
        place = np.where(outer, inner + (1 - inner) * place, inner * place)
        magnitude = (step + place) * widths
        return np.where(self._coins(full), -magnitude, magnitude)

    def discrete_laplace(self, scale: ArrayLike, shape: Shape) -> Integers:
        """Discrete Laplace noise, as the difference of two geometric draws."""
        full = self.full_shape(shape)
        with np.errstate(divide="ignore", over="ignore"):
            rate = 1 / checked_scale(scale, "scale")
        return self._geometric(rate, full) - self._geometric(rate, full)

    def discrete_gaussian(self, sigma: ArrayLike, shape: Shape) -> Integers:
        """Discrete Gaussian noise, by rejection (Canonne, Kamath and Steinke 2020, Alg. 3)."""
        full = self.full_shape(shape)
        sigmas = np.broadcast_to(checked_scale(sigma, "sigma"), full).ravel()
        draws = np.zeros(sigmas.size, dtype=np.int64)
        todo = np.flatnonzero(sigmas > 0)
        while todo.size:
            own = sigmas[todo]
            envelope = np.floor(own) + 1
            proposed = self._geometric(1 / envelope, own.shape)
            proposed -= self._geometric(1 / envelope, own.shape)
            with np.errstate(over="ignore"):
                excess = (np.abs(proposed) / own - own / envelope) ** 2 / 2
            taken = self._rng.standard_exponential(todo.size) >= excess
            draws[todo[taken]] = proposed[taken]
            todo = todo[~taken]
        return draws.reshape(full)

    def discrete_staircase(
        self, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape
    ) -> Integers:
        """Integer staircase noise: a geometric step, a place within it, a sign."""
        full = self.full_shape(shape)
        stairs = Stairs.broadcast(sensitivity, epsilon, full)
        return stairs.signed(self._staircase_magnitude, lambda size: self._coins((size,)), full)

    def polya(self, scale: ArrayLike, share: Fraction, shape: Shape) -> Integers:
        """A share of discrete Laplace noise, from NumPy's negative binomial."""
        full = self.full_shape(shape)
        with np.errstate(divide="ignore", over="ignore"):
            rate = 1 / checked_scale(scale, "scale")
        if checked_share(share) == 1:
            return self._geometric(rate, full) - self._geometric(rate, full)
        stops = np.broadcast_to(-np.expm1(-rate), full)
        ours, theirs = (self._rng.negative_binomial(float(share), stops, full) for _ in range(2))
        return ours - theirs

    def bernoulli(self, probability: float, size: int) -> Bits:
        """Bits from 32-bit integers: the probability is rounded to a multiple of 2**-32."""
        check_probability(probability)
        full = self.full_shape((size,))
        threshold = round(probability * 2**32)
        if threshold == 2**32:
            return np.ones(full, dtype=np.bool_)
        draws = self._rng.integers(0, 2**32, full, dtype=np.uint32)
        return draws < np.uint32(threshold)

    def integers(self, bounds: ArrayLike, shape: Shape) -> Integers:
        """Uniform integers."""
        return self._rng.integers(0, checked_bounds(bounds), self.full_shape(shape))

    def choices(self, weights: Sequence[int], size: int) -> Integers:
        """Places in ``weights``, in proportion."""
        return _places(self._rng.integers(0, sum(weights), size), weights)

    def _coins(self, full: Shape) -> Bits:
        return self._rng.integers(0, 2, full, dtype=np.bool_)

    def _geometric(self, rate: Floats, full: Shape) -> Integers:
        """Draws of k >= 0 with probability proportional to ``exp(-rate k)``, by inversion."""
        return np.floor(self._rng.standard_exponential(full) / rate).astype(np.int64)

    def _staircase_magnitude(self, stairs: Stairs) -> Integers:
        step = self._geometric(stairs.epsilon, stairs.width.shape)
        outer = self._rng.random(step.size) < stairs.outer_share
        uniform = self._rng.random(step.size)
        place = np.where(
            outer,
            stairs.inner + np.floor(uniform * (stairs.width - stairs.inner)),
            np.floor(uniform * stairs.inner),
        )
        return step * stairs.width + place.astype(np.int64)


class SystemNoise(NoiseSource):
    """Exact noise from operating-system entropy, for releases. It takes no seed."""

    def laplace(self, scale: ArrayLike, shape: Shape) -> Floats:
        """Laplace noise on a grid ``g = min(1, 2**(floor(log2(scale)) - 20))``.

        A statistic that takes integer values lies on that grid, so value plus noise is an exact
        discrete Laplace release with ratio ``exp(-g/scale)`` a grid step: epsilon is
        ``sensitivity / scale``, as for the continuous distribution, and the variance agrees with
        it to one part in 10**12. The noise is exact as a float64; adding it to an integer below
        2**53 rounds the exact sum once, which is post-processing.
        """
        return self._on_grid(
            checked_scale(scale, "scale"), shape, GRID_BITS, exact.discrete_laplace
        )

    def gaussian(self, sigma: ArrayLike, shape: Shape) -> Floats:
        """Normal noise on a grid ``g = min(1, 2**(floor(log2(sigma)) - 40))``.

        A continuous normal draw rounded to the grid is post-processing of the Gaussian mechanism
        (the statistic lies on the grid). The discrete Gaussian drawn here is within total variation
        ``(g/sigma)**2 / 4 <= 2**-82`` of it, which ``gaussian_delta`` covers.
        """
        return self._on_grid(
            checked_scale(sigma, "sigma"), shape, GAUSSIAN_GRID_BITS, exact.discrete_gaussian
        )

    def discrete_laplace(self, scale: ArrayLike, shape: Shape) -> Integers:
        """Discrete Laplace noise (Canonne, Kamath and Steinke 2020), from OpenDP."""
        scales = np.broadcast_to(checked_scale(scale, "scale"), shape)
        return exact.by_parameter(scales, exact.discrete_laplace)

    def discrete_gaussian(self, sigma: ArrayLike, shape: Shape) -> Integers:
        """Discrete Gaussian noise (Canonne, Kamath and Steinke 2020), from OpenDP."""
        sigmas = np.broadcast_to(checked_scale(sigma, "sigma"), shape)
        return exact.by_parameter(sigmas, exact.discrete_gaussian)

    def discrete_staircase(
        self, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape
    ) -> Integers:
        """Integer staircase noise from a geometric step, a part, a place in it and a sign.

        Each is exact but the choice of the outer part, whose probability is rounded up. That leaves
        the guarantee untouched: with any weight of the outer part between ``exp(-epsilon)`` and 1
        the probabilities fall away from zero, and fall ``exp(-epsilon)``-fold over every
        ``sensitivity`` integers, which is all that epsilon-privacy needs.
        """
        stairs = Stairs.broadcast(sensitivity, epsilon, shape)
        return stairs.signed(exact_magnitude, exact.coins, shape)

    def polya(self, scale: ArrayLike, share: Fraction, shape: Shape) -> Integers:
        """A share of discrete Laplace noise, from exact Polya draws."""
        scales = np.broadcast_to(checked_scale(scale, "scale"), shape)
        own = checked_share(share)
        if own == 1:
            return exact.by_parameter(scales, exact.discrete_laplace)
        return exact.by_parameter(
            scales, lambda value, size: exact.polya(value, own, size)
        ) - exact.by_parameter(scales, lambda value, size: exact.polya(value, own, size))

    def bernoulli(self, probability: float, size: int) -> Bits:
        """Bits from 64-bit words; the probability is rounded to a multiple of 2**-64.

        The rounding is towards one half, where a flipped bit says least, and never past it.
        """
        check_probability(probability)
        if probability > 0.5:
            return ~self.bernoulli(1.0 - probability, size)
        threshold = min(math.ceil(probability * exact.SCALE_SLACK * 2.0**64), 2**63)
        return exact.words(size) < np.uint64(threshold)

    def integers(self, bounds: ArrayLike, shape: Shape) -> Integers:
        """Uniform integers, without modulo bias."""
        limits = np.broadcast_to(checked_bounds(bounds), shape)
        drawn = exact.uniform_below(limits.ravel().astype(np.uint64))
        return drawn.astype(np.int64).reshape(shape)

    def choices(self, weights: Sequence[int], size: int) -> Integers:
        """Places in ``weights``, in exact proportion."""
        return _places(self.integers(sum(weights), (size,)), weights)

    def _on_grid(self, scale: Floats, shape: Shape, bits: int, sampler: exact.Sampler) -> Floats:
        grid = power_of_two_grid(scale, bits)
        steps = exact.by_parameter(np.broadcast_to(scale / grid, shape), sampler)
        return steps * grid


class NoNoise(NoiseSource):
    """No noise at all: to check a protocol's arithmetic, never to release anything."""

    def __init__(self, replicates: int | None = None) -> None:
        self.replicates = replicates

    def laplace(self, scale: ArrayLike, shape: Shape) -> Floats:
        """Zeros."""
        return np.zeros(self.full_shape(shape))

    def gaussian(self, sigma: ArrayLike, shape: Shape) -> Floats:
        """Zeros."""
        return np.zeros(self.full_shape(shape))

    def discrete_laplace(self, scale: ArrayLike, shape: Shape) -> Integers:
        """Zeros."""
        return np.zeros(self.full_shape(shape), dtype=np.int64)

    def discrete_gaussian(self, sigma: ArrayLike, shape: Shape) -> Integers:
        """Zeros."""
        return np.zeros(self.full_shape(shape), dtype=np.int64)

    def discrete_staircase(
        self, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape
    ) -> Integers:
        """Zeros."""
        return np.zeros(self.full_shape(shape), dtype=np.int64)

    def polya(self, scale: ArrayLike, share: Fraction, shape: Shape) -> Integers:
        """Zeros."""
        return np.zeros(self.full_shape(shape), dtype=np.int64)

    def bernoulli(self, probability: float, size: int) -> Bits:
        """All False."""
        return np.zeros(self.full_shape((size,)), dtype=np.bool_)

    def integers(self, bounds: ArrayLike, shape: Shape) -> Integers:
        """Zeros."""
        return np.zeros(self.full_shape(shape), dtype=np.int64)

    def choices(self, weights: Sequence[int], size: int) -> Integers:
        """The first place with a weight."""
        return np.full(size, np.flatnonzero(weights)[0], dtype=np.int64)


def gaussian_delta(epsilon: float, delta: float, coordinates: int) -> float:
    """The delta at which to calibrate normal noise, so that its grid stays within ``delta``.

    Each coordinate's distance from a rounded normal enters delta ``1 + exp(epsilon)`` times.

    Raises
    ------
    ValueError : when that is more than a millionth of delta.
    """
    grid = coordinates * GAUSSIAN_DISTANCE * (1 + np.exp(min(epsilon, 700.0)))
    if grid > delta * 1e-6:
        raise ValueError(
            f"delta must be at least {grid * 1e6:.1e} for gaussian noise at epsilon {epsilon} on "
            f"{coordinates} numbers, got {delta}"
        )
    return float(delta - grid)


def power_of_two_grid(scale: ArrayLike, bits: int = GRID_BITS) -> Floats:
    """The grid that ``SystemNoise`` uses for noise of this scale: at most 1, and a power of two.

    Examples
    --------
    >>> float(power_of_two_grid(1.5)) == 2.0**-20
    True
    """
    scales = np.asarray(scale, dtype=np.float64)
    exponent = np.frexp(scales)[1] - 1 - bits
    return np.where(scales > 0, np.ldexp(1.0, np.clip(exponent, -1022, 0)), 1.0)


def _places(drawn: Integers, weights: Sequence[int]) -> Integers:
    return np.searchsorted(np.cumsum(weights), drawn, side="right").astype(np.int64)
