"""What a noise source can draw, and what a mechanism says about its privacy.

A ``Distribution`` knows how it is drawn: exactly from operating-system entropy, fast from a
generator, or not at all. A ``Mechanism`` is a distribution of noise that also states its cost, its
variance and its privacy loss. Parameters may be arrays, which broadcast against the shape of a
draw: then every number has its own noise.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.privacy.cost import NoisyRelease

Shape = tuple[int, ...]


class Distribution(ABC):
    """A distribution that a noise source draws from. Parameters are checked by each draw."""

    shared: ClassVar[bool] = False
    """Whether all replicates have the same draw: it is a choice, and hides nothing."""

    @abstractmethod
    def exact(self, shape: Shape) -> NDArray[Any]:
        """Exact draws from operating-system entropy."""

    @abstractmethod
    def simulated(self, rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
        """Fast draws from a generator, for experiments; never for a release."""

    def silent(self, shape: Shape) -> NDArray[Any]:
        """The value of a draw without noise: zeros."""
        return np.zeros(shape, dtype=np.int64)

    def scaled(self, factor: float) -> Distribution:
        """The same noise, larger by a factor, for audits and tests that must notice the mistake.

        A distribution that hides nothing is returned as it is.
        """
        return self


class Mechanism(Distribution, NoisyRelease):
    """Noise that hides how a statistic moves by up to a sensitivity."""

    whole: ClassVar[bool] = True
    """Whether the noise is in integers."""
    needs_delta: ClassVar[bool] = False
    """Whether the guarantee has a delta above 0."""
    variance_order: ClassVar[int] = 2
    """With a part p of the budget the variance is in proportion to ``p**-variance_order``."""

    @property
    @abstractmethod
    def variance(self) -> Floats:
        """The variance of the noise, of the parameters' shape."""

    @abstractmethod
    def loss(self, shift: ArrayLike) -> Floats:
        """The largest ``|log(p(z) / p(z - shift))|`` over all outcomes z."""

    @abstractmethod
    def log_weight(self, values: ArrayLike) -> Floats:
        """The logarithm of the probability of each value, up to a constant."""


def single(*parameters: ArrayLike) -> bool:
    """Whether these are plain numbers, so that their mechanism can be part of a cost."""
    return all(isinstance(value, int | float | np.number) for value in parameters)


ROUNDING = 2.0**-40
"""Largest relative error of a sensitivity that is computed in floating point and is an integer."""


def whole_steps(shift: ArrayLike) -> int:
    """By how many integers a statistic in integers moves at most, where it moves by up to a shift.

    What falls short of an integer by a rounding counts as that integer.

    Examples
    --------
    >>> whole_steps(2.5), whole_steps(0.1 * 3 * 10), whole_steps(3 - 2**-50)
    (2, 3, 3)
    """
    return math.floor(float(np.asarray(shift)) * (1 + ROUNDING))
