"""Fast floating-point draws from a generator, for experiments; never for a release.

Parameters are checked before; they broadcast against the full shape of a draw.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tacit.arrays import Flags, Floats, Integers
from tacit.privacy.exact import Shape, Stairs


def coins(rng: np.random.Generator, shape: Shape) -> Flags:
    """Independent fair bits."""
    return rng.integers(0, 2, shape, dtype=np.bool_)


def geometric(rng: np.random.Generator, rate: Floats, shape: Shape) -> Integers:
    """Draws of k >= 0 with probability proportional to ``exp(-rate k)``, by inversion."""
    draws = rng.standard_exponential(shape)
    draws /= rate
    return draws.astype(np.int64)  # rounds down, as no draw is negative


def laplace(rng: np.random.Generator, scale: Floats, shape: Shape) -> Floats:
    """Laplace noise, as an exponential with a random sign."""
    draws = rng.standard_exponential(shape)
    np.negative(draws, out=draws, where=coins(rng, shape))
    draws *= scale
    return draws


def gaussian(rng: np.random.Generator, sigma: Floats, shape: Shape) -> Floats:
    """Normal noise."""
    draws = rng.standard_normal(shape)
    draws *= sigma
    return draws


def discrete_laplace(rng: np.random.Generator, scale: Floats, shape: Shape) -> Integers:
    """Discrete Laplace noise, as the difference of two geometric draws."""
    rate = _rate(scale)
    return geometric(rng, rate, shape) - geometric(rng, rate, shape)


def discrete_gaussian(rng: np.random.Generator, sigma: Floats, shape: Shape) -> Integers:
    """Discrete Gaussian noise, by rejection (Canonne, Kamath and Steinke 2020, Alg. 3)."""
    sigmas = np.broadcast_to(sigma, shape).ravel()
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


def polya(rng: np.random.Generator, scale: Floats, share: Fraction, shape: Shape) -> Integers:
    """A share of discrete Laplace noise, from NumPy's negative binomial."""
    if share == 1:
        return discrete_laplace(rng, scale, shape)
    stops = np.broadcast_to(-np.expm1(-_rate(scale)), shape)
    first, second = (rng.negative_binomial(float(share), stops, shape) for _ in range(2))
    return first - second


def staircase(rng: np.random.Generator, stairs: Stairs, shape: Shape) -> Integers:
    """Integer staircase noise: a geometric step, an offset within it, a sign."""

    def magnitude(some: Stairs) -> Integers:
        step = geometric(rng, some.epsilon, some.width.shape)
        outer = rng.random(step.size) < some.outer_probability
        uniform = rng.random(step.size)
        offset = np.where(
            outer,
            some.inner + np.floor(uniform * (some.width - some.inner)),
            np.floor(uniform * some.inner),
        )
        return step * some.width + offset.astype(np.int64)

    return stairs.signed(magnitude, lambda size: coins(rng, (size,)), shape)


def _rate(scale: Floats) -> Floats:
    with np.errstate(divide="ignore", over="ignore"):
        return 1 / scale
