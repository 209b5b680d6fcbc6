"""Mechanisms with a mistake, which an audit has to notice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.auditing.questions import PublicCoins
from tacit.data.clients import Clients
from tacit.privacy.cost import Cost
from tacit.privacy.noise import SystemNoise
from tacit.protocols.conversation import Ask, Conversation, Memory, Step
from tacit.protocols.dpauc import DPAUC, noisy_histograms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]
Shape = tuple[int, ...]


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

    def laplace(self, scale: ArrayLike, shape: Shape) -> Floats:
        """Laplace noise of the wrong scale."""
        return super().laplace(np.multiply(scale, self.factor), shape)

    def gaussian(self, sigma: ArrayLike, shape: Shape) -> Floats:
        """Normal noise of the wrong standard deviation."""
        return super().gaussian(np.multiply(sigma, self.factor), shape)

    def discrete_laplace(self, scale: ArrayLike, shape: Shape) -> Integers:
        """Discrete Laplace noise of the wrong scale."""
        return super().discrete_laplace(np.multiply(scale, self.factor), shape)

    def discrete_staircase(
        self, sensitivity: ArrayLike, epsilon: ArrayLike, shape: Shape
    ) -> Integers:
        """Staircase noise for the wrong epsilon."""
        return super().discrete_staircase(sensitivity, np.divide(epsilon, self.factor), shape)

    def polya(self, scale: ArrayLike, share: Fraction, shape: Shape) -> Integers:
        """A share of discrete Laplace noise of the wrong scale."""
        return super().polya(np.multiply(scale, self.factor), share, shape)

    def bernoulli(self, probability: float, size: int) -> Bits:
        """Bits of the wrong probability."""
        return super().bernoulli(probability * self.factor, size)


class RepeatedNoise(PublicCoins):
    """Noise of a generator that is started from the same seed for every draw.

    Parameters
    ----------
    seed, replicates : as for ``PublicCoins``.
    """

    def __init__(self, seed: int, replicates: int | None) -> None:
        super().__init__(seed, replicates)
        self._seed = seed

    def discrete_laplace(self, scale: ArrayLike, shape: Shape) -> Integers:
        """The same discrete Laplace noise every time."""
        return PublicCoins(self._seed, self.replicates).discrete_laplace(scale, shape)


class GridNoise(PublicCoins):
    """Laplace noise as deployed clients draw it: on a grid, from the operating system.

    Parameters
    ----------
    seed, replicates : as for ``PublicCoins``; the seed does not reach the noise.
    """

    def laplace(self, scale: ArrayLike, shape: Shape) -> Floats:
        """Laplace noise on a power-of-two grid that contains the integers."""
        return SystemNoise().laplace(scale, self.full_shape(shape))


def _claimed(clients: Clients, ask: Ask, memory: Memory) -> Cost:
    cost: Cost = ask.settings.claim
    return cost


_HISTOGRAMS = Step("noisy_histograms", noisy_histograms.answer, _claimed, noisy_histograms.speaks)


@dataclass(frozen=True)
class TwoReleases(DPAUC):
    """Two histograms of the same records, in cells that are shifted against each other.

    Parameters
    ----------
    declared : what the run declares, as a multiple of epsilon: 2 is true, as both releases cost
        epsilon, and 1 counts the same budget twice.
    shifted : whether cells are half as wide but for the last one.
    """

    declared: float = 2.0
    shifted: bool = False

    @property
    def edges(self) -> Floats:
        """The lower edges of the cells."""
        return super().edges / 2 if self.shifted else super().edges

    @property
    def claim(self) -> Cost:
        """What each release costs."""
        return Cost(self.epsilon, adjacency=super().guarantee.adjacency)

    @property
    def guarantee(self) -> Cost:
        """What is declared of both releases together."""
        return Cost(self.declared * self.epsilon, adjacency=super().guarantee.adjacency)

    def conversation(self, clients: int) -> Conversation:
        """Two rounds: counts in both divisions of the scores."""
        for settings in (self, replace(self, shifted=True)):
            reply = yield Ask(_HISTOGRAMS, settings, shared={"thresholds": settings.edges})
        raise ValueError(f"an audit draws no conclusion from {len(reply)} fields")


@dataclass(frozen=True)
class SmallSensitivity(DPAUC):
    """Histograms with noise for one changed count, where a replaced record changes two."""

    @property
    def record_distance(self) -> float:
        """One, whatever the adjacency."""
        return 1.0
