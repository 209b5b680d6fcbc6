"""Distributions written out from their definitions, tests of draws against them, and the
probabilities of every mechanism's noise, which its variance and its loss follow from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from tacit.privacy import exact
from tacit.privacy.distributions import staircase_inner_width
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace, PolyaShare, Staircase
from tacit.privacy.mechanisms.response import Bits, RandomisedResponse, UniformIntegers
from tacit.protocol import Adjacency, Cost, NoNoise, SystemNoise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

UNSEEDED_LEVEL = 1e-8
"""Nominal level of tests on unseeded draws; with 40 expected draws a cell the approximation keeps
the false-alarm probability of each below 1e-6."""

SEEDED_LEVEL = 1e-4
"""False-alarm probability of tests on seeded draws, over the choice of the seed."""


class Discrete:
    """Probabilities proportional to the weights on the integers ``-reach..reach``."""

    def __init__(self, reach: int, weight: Callable[[Integers], Floats]) -> None:
        self.support = np.arange(-reach, reach + 1)
        weights = weight(self.support)
        self.pmf = weights / weights.sum()

    @property
    def variance(self) -> float:
        return float(np.sum(self.support.astype(np.float64) ** 2 * self.pmf))

    def p_value(self, draws: Integers) -> float:
        """The chi-square test on runs of integers of at least 40 expected draws each."""
        cell, count = self._cells(draws.size)
        low = int(self.support[0])
        places = np.clip(draws.ravel() - low, 0, self.support.size - 1)
        observed = np.bincount(cell[places], minlength=count)
        expected = np.bincount(cell, weights=self.pmf, minlength=count) * draws.size
        return float(stats.chisquare(observed, expected).pvalue)

    def _cells(self, size: int) -> tuple[Integers, int]:
        enough = 40 / size
        cell, current, mass = np.zeros(self.pmf.size, dtype=np.int64), 0, 0.0
        for place, probability in enumerate(self.pmf.tolist()):
            cell[place] = current
            mass += probability
            if mass >= enough:
                current, mass = current + 1, 0.0
        return np.minimum(cell, current - 1), current


def law_of(mechanism: Any) -> Discrete:
    """The noise of a mechanism, on the integers that have all but a part in 10**12 of it."""
    if isinstance(mechanism, DiscreteGaussian):
        reach = 10 * float(np.asarray(mechanism.sigma)) + 10
    else:
        steps = 40 / float(mechanism.epsilon) * (1 + float(getattr(mechanism, "share", 0)))
        reach = (steps + 3) * float(mechanism.sensitivity)
    return Discrete(int(reach), lambda z: np.exp(log_weight(mechanism, z)))


def discrete_staircase(width: int, inner: int, epsilon: float) -> Discrete:
    """Weight ``exp(-epsilon)`` to the power of the number of drops before ``|z|``.

    The weight drops at ``inner``, ``inner + width``, ``inner + 2 width``, ... or, where the inner
    part fills the step, at ``width``, ``2 width``, ...
    """
    reach = width * (int(36 / epsilon) + 2)
    return Discrete(
        reach, lambda z: np.exp(-epsilon * ((np.abs(z) - inner) // width + 1).astype(np.float64))
    )


def continuous_p_value(draws: Floats, cdf: Callable[[Floats], Floats]) -> float:
    """The chi-square test of ``cdf(draws)`` against the uniform distribution, on 20 cells."""
    observed = np.histogram(cdf(draws.ravel()), bins=20, range=(0, 1))[0]
    return float(stats.chisquare(observed).pvalue)


@dataclass
class Scripted(NoNoise):
    """Draws the integers and bits that it is told, and multiplies up how likely they were."""

    integers: list[list[int]]
    bits: list[bool]
    chance: float = 1.0
    replicates: int | None = None

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> NDArray[Any]:
        if isinstance(distribution, RandomisedResponse | Bits):
            size, probability = math.prod(shape), distribution.probability
            drawn, self.bits = self.bits[:size], self.bits[size:]
            self.chance *= math.prod(probability if bit else 1 - probability for bit in drawn)
            return np.array(drawn, dtype=np.bool_).reshape(shape)
        assert isinstance(distribution, UniformIntegers)
        integers = np.array(self.integers.pop(0), dtype=np.int64).reshape(shape)
        limits = np.broadcast_to(distribution.bounds, shape)
        self.chance *= float(np.prod(np.where(integers < limits, 1 / limits, 0.0)))
        return integers


def drawn_probability(asked: float) -> Fraction:
    """How often the exact ``Bits`` are True, by bisection for the word at which the bit turns."""

    def turned(word: int) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(exact, "words", lambda size: np.full(size, word, dtype=np.uint64))
            return bool(SystemNoise().draw(Bits(asked), (1,))[0])

    first = turned(0)
    low, high = 0, 2**64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if turned(middle) == first else (low, middle)
    share = Fraction(high, 2**64)
    return share if first else 1 - share


def pure(epsilon: float, adjacency: Adjacency = Adjacency.LABEL) -> Cost:
    return Cost(epsilon, adjacency=adjacency)


def composed_delta(times: int, each: float, epsilon: float) -> float:
    """The least delta at ``epsilon`` of ``times`` pure releases (Kairouz, Oh, Viswanath 2015).

    The worst case is that many randomised responses, ``unflipped`` of them unchanged: a privacy
    loss of ``(2 unflipped - times) each``.
    """
    unflipped = np.arange(times + 1)
    log_choices = scipy.special.gammaln(times + 1) - scipy.special.gammaln(unflipped + 1)
    log_choices -= scipy.special.gammaln(times - unflipped + 1)
    log_here = log_choices + unflipped * each - times * np.logaddexp(0.0, each)
    excess = -np.expm1(epsilon - (2 * unflipped - times) * each)
    return float(np.sum(np.exp(log_here) * np.maximum(excess, 0.0)))


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """``Phi(1/(2 sigma) - epsilon sigma) - e^epsilon Phi(-1/(2 sigma) - epsilon sigma)``."""
    half = 1 / (2 * sigma)
    upper = scipy.special.log_ndtr(half - epsilon * sigma)
    lower = epsilon + scipy.special.log_ndtr(-half - epsilon * sigma)
    return float(np.exp(upper) * -np.expm1(lower - upper))


def categories(*weights: float) -> Callable[[NDArray[Any]], float]:
    """The chi-square test of indices with these weights; none has an index without a weight."""
    chances = np.array(weights) / sum(weights)

    def p_value(draws: NDArray[Any]) -> float:
        counts = np.bincount(draws.astype(np.int64), minlength=chances.size)
        assert not counts[chances == 0].any()
        used = chances > 0
        return float(stats.chisquare(counts[used], draws.size * chances[used]).pvalue)

    return p_value


@singledispatch
def log_weight(mechanism: Any, values: ArrayLike) -> Floats:
    """The logarithm of the probability of each value, up to a constant."""
    raise TypeError(f"the probabilities of {mechanism} are not known")


@log_weight.register
def _(mechanism: Laplace | DiscreteLaplace, values: ArrayLike) -> Floats:
    return -np.abs(np.asarray(values, dtype=np.float64)) / mechanism.scale


@log_weight.register
def _(mechanism: PolyaShare, values: ArrayLike) -> Floats:
    """``b^z (r)_z / z! 2F1(r, r+z; z+1; b^2)`` with the share r and ``b = exp(-1/scale)``."""
    size = np.abs(np.asarray(values, dtype=np.float64))
    r, rate = float(mechanism.share), 1 / mechanism.scale
    ways = scipy.special.gammaln(size + r) - scipy.special.gammaln(size + 1)
    series = scipy.special.hyp2f1(r, r + size, size + 1, np.exp(-2 * rate))
    return np.asarray(ways + np.log(series) - size * rate)


@log_weight.register
def _(mechanism: Staircase, values: ArrayLike) -> Floats:
    """``-epsilon`` times the number of drops of the probability before ``|z|``."""
    width = np.asarray(mechanism.sensitivity, dtype=np.int64)
    inner = staircase_inner_width(width, mechanism.epsilon)
    drops = (np.abs(np.asarray(values, dtype=np.int64)) - inner) // width + 1
    return np.asarray(-np.asarray(mechanism.epsilon) * drops, dtype=np.float64)


@log_weight.register
def _(mechanism: DiscreteGaussian, values: ArrayLike) -> Floats:
    return -np.square(np.asarray(values, dtype=np.float64) / np.asarray(mechanism.sigma)) / 2


@log_weight.register
def _(mechanism: RandomisedResponse, values: ArrayLike) -> Floats:
    """Of a flip (odd) and of none (even): a bit is added modulo 2."""
    return np.where(np.asarray(values) % 2 != 0, -mechanism.epsilon, 0.0)
