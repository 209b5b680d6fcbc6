"""Randomised response (Warner 1965): a bit is flipped, or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.privacy.cost import Adjacency, Cost, check_epsilon
from tacit.privacy.mechanisms.choices import Bits
from tacit.privacy.mechanisms.interface import Mechanism, Shape

Booleans = NDArray[np.bool_]


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
class RandomisedResponse(Mechanism):
    """Flips of bits: a draw of True flips the bit that it belongs to.

    Parameters
    ----------
    epsilon : of each bit.

    Examples
    --------
    >>> round(RandomisedResponse(1.0).flip_probability, 4)
    0.2689
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def flip_probability(self) -> float:
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

    def log_weight(self, values: ArrayLike) -> Floats:
        """Of a flip (odd) and of none (even): a bit is added modulo 2."""
        return np.where(np.asarray(values) % 2 != 0, -self.epsilon, 0.0)

    def exact(self, shape: Shape) -> Booleans:
        """Flips whose probability is rounded towards one half."""
        return Bits(self.flip_probability).exact(shape)

    def simulated(self, rng: np.random.Generator, shape: Shape) -> Booleans:
        """Flips from 32-bit integers."""
        return Bits(self.flip_probability).simulated(rng, shape)

    def silent(self, shape: Shape) -> Booleans:
        """No flips."""
        return np.zeros(shape, dtype=np.bool_)

    def scaled(self, factor: float) -> Bits:
        """Flips that are more frequent by a factor."""
        return Bits(self.flip_probability * factor)
