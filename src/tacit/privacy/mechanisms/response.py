"""What steps draw besides noise: randomised response, bits, integers and choices.

Randomised response (Warner 1965): a bit is flipped, or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Flags, Floats, Integers
from tacit.privacy import exact
from tacit.privacy.cost import Adjacency, Cost, check_epsilon
from tacit.privacy.mechanisms.interface import Distribution, Mechanism, Shape


class _BitDraws(Distribution):
    """Independent bits, each True with a ``probability``."""

    kind = np.bool_
    probability: Any

    @property
    def threshold(self) -> int:
        """How many of the ``2**64`` words give the rarer of both bits, at most half of them.

        It is rounded towards one half, where a flipped bit says least, and never past it.
        """
        rarer = min(self.probability, 1.0 - self.probability)
        return min(math.ceil(rarer * exact.SCALE_SLACK * 2.0**64), 2**63)

    def exact(self, shape: Shape) -> Flags:
        """Bits from 64-bit words; the probability is rounded to a multiple of 2**-64."""
        rarer = (exact.words(math.prod(shape)) < np.uint64(self.threshold)).reshape(shape)
        return ~rarer if self.probability > 0.5 else rarer

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Flags:
        """Bits from 32-bit integers: the probability is rounded to a multiple of 2**-32."""
        threshold = round(self.probability * 2**32)
        if threshold == 2**32:
            return np.ones(shape, dtype=np.bool_)
        return rng.integers(0, 2**32, shape, dtype=np.uint32) < np.uint32(threshold)

    def scaled(self, factor: float) -> Bits:
        """Bits whose probability is larger by a factor."""
        return Bits(self.probability * factor)


@dataclass(frozen=True)
class Bits(_BitDraws):
    """Independent bits.

    Parameters
    ----------
    probability : of True.
    """

    probability: float

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability must be from 0 to 1, got {self.probability}")


@dataclass(frozen=True)
class UniformIntegers(Distribution):
    """Uniform integers, each from 0 to its bound less one.

    Parameters
    ----------
    bounds : at least 1 each.
    """

    bounds: ArrayLike

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.bounds) < 1):
            raise ValueError(f"bounds must be at least 1, got {np.min(self.bounds)}")

    def exact(self, shape: Shape) -> Integers:
        """Integers without modulo bias."""
        limits = np.broadcast_to(self.bounds, shape)
        drawn = exact.uniform_below(limits.ravel().astype(np.uint64))
        return drawn.astype(np.int64).reshape(shape)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """Integers from NumPy."""
        return rng.integers(0, np.asarray(self.bounds, dtype=np.int64), shape)


@dataclass(frozen=True)
class Choices(Distribution):
    """Indices of ``weights``, each chosen in proportion to its weight.

    They choose and do not hide: all replicates have the same draw, so a protocol that
    samples its clients asks for one replicate at a time.
    """

    weights: Sequence[int]
    shared = True

    def exact(self, shape: Shape) -> Integers:
        """Choices in exact proportion."""
        return self._chosen(UniformIntegers(sum(self.weights)).exact(shape))

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Integers:
        """Choices from NumPy's integers."""
        return self._chosen(rng.integers(0, sum(self.weights), shape))

    def silent(self, shape: Shape) -> Integers:
        """The first index with a weight."""
        return np.full(shape, np.flatnonzero(self.weights)[0], dtype=np.int64)

    def _chosen(self, drawn: Integers) -> Integers:
        return np.searchsorted(np.cumsum(self.weights), drawn, side="right").astype(np.int64)


def flip_probability(epsilon: float) -> float:
    """``1 / (1 + exp(epsilon))`` (Sun et al. 2022a, Eq. 2), never rounded to zero.

    Examples
    --------
    >>> round(flip_probability(1.0), 4)
    0.2689
    """
    check_epsilon(epsilon)
    ratio = math.exp(-epsilon)
    return max(ratio / (1 + ratio), math.ulp(0.0))


def response_variance(epsilon: float) -> float:
    """Variance of one debiased label, ``e^epsilon / (e^epsilon - 1)^2``.

    Equal to ``rho (1 - rho) / (1 - 2 rho)^2`` with the flip probability rho.

    Examples
    --------
    >>> round(response_variance(1.0), 4)
    0.9207
    """
    check_epsilon(epsilon)
    gap = math.expm1(-epsilon)
    return math.exp(-epsilon) / gap / gap


@dataclass(frozen=True)
class RandomisedResponse(_BitDraws, Mechanism):
    """Flips of bits: a draw of True flips the bit that it belongs to.

    Parameters
    ----------
    epsilon : of each bit.

    Examples
    --------
    >>> round(RandomisedResponse(1.0).probability, 4)
    0.2689
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def probability(self) -> float:
        """The probability that a bit is flipped."""
        return flip_probability(self.epsilon)

    @property
    def variance(self) -> Floats:
        """The variance of one debiased bit."""
        return np.asarray(response_variance(self.epsilon))

    def cost(self, adjacency: Adjacency) -> Cost:
        """Epsilon, where neighbouring data sets change one bit."""
        return Cost(self.epsilon, adjacency=adjacency)

    def loss(self, shift: ArrayLike) -> Floats:
        """Epsilon for a changed bit, nothing for the same."""
        return np.where(np.asarray(shift) != 0, self.epsilon, 0.0)
