"""What a noise source can draw, and what a mechanism says about its privacy.

A ``Distribution`` knows how it is drawn: exactly from operating-system entropy, fast from a
generator, or not at all. A ``Mechanism`` is a distribution of noise that also states its cost, its
variance and its privacy loss. Parameters may be arrays, which broadcast against the shape of a
draw: then every number has its own noise.

Several mechanisms in one release about the same records.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.privacy.cost import NOTHING, Adjacency, Cost, NoisyRelease

Shape = tuple[int, ...]


class Distribution(ABC):
    """A distribution that a noise source draws from. Parameters are checked before a draw."""

    shared: ClassVar[bool] = False
    """Whether all replicates have the same draw: it is a choice, and hides nothing."""
    kind: ClassVar[type[np.generic]] = np.int64
    """The type of what is drawn."""

    @abstractmethod
    def exact(self, shape: Shape) -> NDArray[Any]:
        """Exact draws from operating-system entropy."""

    @abstractmethod
    def simulated(self, rng: np.random.Generator, shape: Shape) -> NDArray[Any]:
        """Fast draws from a generator, for experiments; never for a release."""

    def silent(self, shape: Shape) -> NDArray[Any]:
        """The value of a draw without noise: zeros."""
        return np.zeros(shape, dtype=self.kind)

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


def in_units(shift: ArrayLike, unit: ArrayLike) -> Floats:
    """``|shift| / unit``: 0 for no shift, and infinity for any other where the unit is 0."""
    distance = np.abs(np.asarray(shift, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / np.asarray(unit, dtype=np.float64))


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


@dataclass(frozen=True)
class Together(NoisyRelease):
    """Independent noise on several numbers, all of which one record may move.

    Parameters
    ----------
    parts : the mechanisms; a record moves the number of each by its sensitivity.
    times : how often the release holds all of them.

    Examples
    --------
    >>> from tacit.privacy.mechanisms.laplace import DiscreteLaplace
    >>> pair = Together((DiscreteLaplace(1, 0.25), DiscreteLaplace(9, 0.75)))
    >>> pair.cost(Adjacency.LABEL).epsilon
    1.0
    """

    parts: tuple[NoisyRelease, ...]
    times: int = 1

    def cost(self, adjacency: Adjacency) -> Cost:
        """The sum of all costs, by basic composition."""
        costs = [part.cost(adjacency) for part in self.parts]
        total = sum(costs, NOTHING)
        rho = None if total.rho is None else total.rho * self.times
        known = self if all(cost.mechanism is not None for cost in costs) else None
        return Cost(total.epsilon * self.times, total.delta * self.times, adjacency, rho, known)

    def loss_distribution(self) -> Any:
        """The convolution of the parts' distributions, or None where one is not known."""
        known = [part.loss_distribution() for part in self.parts]
        if not known or any(part is None for part in known):
            return None
        whole = reduce(lambda some, part: some.compose(part), known)
        return whole.self_compose(self.times) if self.times > 1 else whole

    @property
    def loss_error(self) -> float:
        """The sum of the parts'."""
        return self.times * sum(part.loss_error for part in self.parts)
