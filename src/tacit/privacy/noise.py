"""Where noise comes from: a simulation's generator, the operating system, or nowhere.

Every additive mechanism here perturbs a statistic that takes integer values (a count, or twice a
rank sum) of size below 2**53. ``SimulatedNoise`` draws fast, seeded floating-point samples for
experiments. ``SystemNoise`` draws exact samples from operating-system entropy (OpenDP for the
discrete Laplace and Gaussian distributions); continuous noise lives on a fine power-of-two grid
that contains the integers, so that no low bit of a floating-point sample can betray the statistic
(Mironov 2012). Each mechanism has its samplers: see ``tacit.privacy.mechanisms``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.mechanisms.interface import Distribution, Shape


class NoiseSource(ABC):
    """Draws a mechanism for a shape; with ``replicates`` set, a leading axis holds that many draws.

    ``shape`` excludes the replicate axis. A mechanism's parameters broadcast against the full shape
    ``(replicates, *shape)`` or ``shape``.
    """

    replicates: int | None = None

    def full_shape(self, shape: Shape) -> Shape:
        """The shape of a draw: ``shape``, after the replicate axis if there is one."""
        return shape if self.replicates is None else (self.replicates, *shape)

    def drawn_shape(self, distribution: Distribution, shape: Shape) -> Shape:
        """``full_shape``, or ``shape`` for a draw that is the same in all replicates."""
        return shape if distribution.shared else self.full_shape(shape)

    @abstractmethod
    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Independent draws of a mechanism, or of another distribution, of a shape."""


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
        self.seed, self.replicates = seed, replicates
        self._rng = np.random.default_rng(seed)

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Draws from the generator."""
        return distribution.simulated(self._rng, self.drawn_shape(distribution, shape))


class SystemNoise(NoiseSource):
    """Exact noise from operating-system entropy, for releases. It takes no seed."""

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Exact draws."""
        return distribution.exact(shape)


class NoNoise(NoiseSource):
    """No noise at all: to check a protocol's arithmetic, never to release anything."""

    def __init__(self, replicates: int | None = None) -> None:
        self.replicates = replicates

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """The value without noise: zeros, and the first of several choices."""
        return distribution.silent(self.drawn_shape(distribution, shape))
