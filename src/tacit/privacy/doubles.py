"""Noise for audits, with the same choices on every draw, or with a mistake; never for a release.

An audit draws many replies to one query, and it has to notice a mechanism with a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from tacit.privacy.mechanisms.interface import Distribution, Shape
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise

NoiseMaker = Callable[[int, int | None], NoiseSource]
"""A noise source from a seed and a number of replicates."""
COIN_SEED = 0
"""The seed of the choices that all replicates share."""


class PublicCoins(SimulatedNoise):
    """Simulated noise with the same data-independent choices on every draw.

    A reply that contains the choices, for all records, is as private as it is for the worst choice;
    an attack loses nothing when many replies are drawn with one choice.

    Parameters
    ----------
    seed, replicates : as for ``SimulatedNoise``.
    """

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Draws from the generator; draws for all replicates come from the fixed coins."""
        if distribution.shared:
            return SimulatedNoise(COIN_SEED).draw(distribution, shape)
        return super().draw(distribution, shape)


class BareCoins(NoNoise):
    """No noise, but the choices of ``PublicCoins``: the effect of a record, without noise."""

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Zeros; draws for all replicates come from the coins of ``PublicCoins``."""
        if distribution.shared:
            return SimulatedNoise(COIN_SEED).draw(distribution, shape)
        return super().draw(distribution, shape)


def simulated(seed: int, replicates: int | None) -> NoiseSource:
    """Simulated noise; where many replies are drawn at once, with the same choices in all."""
    return SimulatedNoise(seed) if replicates is None else PublicCoins(seed, replicates)


class ScaledNoise(PublicCoins):
    """Noise whose scale, and whose flip probabilities, are wrong by a factor.

    Parameters
    ----------
    factor : 0.5 halves the noise.
    seed, replicates : as for ``PublicCoins``.
    """

    def __init__(self, factor: float, seed: int, replicates: int | None) -> None:
        super().__init__(seed, replicates)
        self.factor = factor

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Draws whose scale, or whose probability of a flip, is wrong."""
        return super().draw(distribution.scaled(self.factor), shape)


class RepeatedNoise(PublicCoins):
    """Noise of a generator that is started from the same seed for every draw.

    Parameters
    ----------
    seed, replicates : as for ``PublicCoins``.
    """

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """The same discrete Laplace noise every time; other draws without a mistake."""
        if isinstance(distribution, DiscreteLaplace):
            return PublicCoins(self.seed, self.replicates).draw(distribution, shape)
        return super().draw(distribution, shape)


class GridNoise(PublicCoins):
    """Laplace noise as deployed clients draw it: on a grid, from the operating system.

    Parameters
    ----------
    seed, replicates : as for ``PublicCoins``; the seed does not reach the noise.
    """

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Laplace noise on a power-of-two grid that contains the integers."""
        if isinstance(distribution, Laplace):
            return SystemNoise().draw(distribution, self.full_shape(shape))
        return super().draw(distribution, shape)
