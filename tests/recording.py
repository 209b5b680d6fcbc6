"""Noise sources that record or distort, and the privacy loss between two replies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import norm

from tacit import Clients
from tacit.data.clients import Ragged
from tacit.privacy.cost import Adjacency
from tacit.privacy.noise import NoNoise, SimulatedNoise
from tacit.protocols.conversation import Field, Reply


def values_of(value: Field) -> np.ndarray[Any, Any]:
    return value.values if isinstance(value, Ragged) else np.asarray(value)


@dataclass
class Recorder(NoNoise):
    """No noise, but a record of the noise that was asked for, and flips on demand."""

    draws: list[tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any]]] = field(
        default_factory=list
    )
    flipped: int | None = None
    flips: list[float] = field(default_factory=list)
    replicates: int | None = None

    def _log(self, kind: str, first: Any, second: Any, shape: tuple[int, ...]) -> None:
        parameters = (np.broadcast_to(np.asarray(p, dtype=float), shape) for p in (first, second))
        self.draws.append((kind, *(p.ravel() for p in parameters)))  # type: ignore[arg-type]

    def laplace(self, scale: Any, shape: tuple[int, ...]) -> Any:
        self._log("laplace", scale, 0, shape)
        return super().laplace(scale, shape)

    def discrete_laplace(self, scale: Any, shape: tuple[int, ...]) -> Any:
        self._log("laplace", scale, 0, shape)
        return super().discrete_laplace(scale, shape)

    def gaussian(self, sigma: Any, shape: tuple[int, ...]) -> Any:
        self._log("gaussian", sigma, 0, shape)
        return super().gaussian(sigma, shape)

    def polya(self, scale: Any, share: Fraction, shape: tuple[int, ...]) -> Any:
        assert share == 1, "one client draws all of the noise"
        self._log("laplace", scale, 0, shape)
        return super().polya(scale, share, shape)

    def discrete_staircase(self, sensitivity: Any, epsilon: Any, shape: tuple[int, ...]) -> Any:
        self._log("staircase", sensitivity, epsilon, shape)
        return super().discrete_staircase(sensitivity, epsilon, shape)

    def bernoulli(self, probability: float, size: int) -> Any:
        self.flips.append(probability)
        bits = np.zeros(size, dtype=np.bool_)
        if self.flipped is not None:
            bits[self.flipped] = True
        return bits


@dataclass(frozen=True)
class Loss:
    """What a neighbour costs: pure epsilon, and the Gaussian mechanism's squared mu."""

    epsilon: float = 0.0
    squared_mu: float = 0.0

    def delta(self, epsilon: float) -> float:
        """Delta of the Gaussian part at what the pure part leaves (Balle and Wang, Eq. 6)."""
        if self.squared_mu == 0:
            return 0.0 if self.epsilon <= epsilon * (1 + 1e-9) else 1.0
        mu, rest = math.sqrt(self.squared_mu), epsilon - self.epsilon
        return float(norm.cdf(mu / 2 - rest / mu) - math.exp(rest) * norm.cdf(-mu / 2 - rest / mu))


def loss_between(ours: Reply, theirs: Reply, noise: Recorder) -> Loss:
    """Privacy loss between two noiseless replies of one client, entry by entry.

    Draws are taken in order for the entries of the fields in order; entries that no noise was drawn
    for must be equal.
    """
    moved = np.concatenate(
        [
            np.abs(values_of(ours[name]) - values_of(theirs[name])).astype(float).ravel()
            for name in ours
        ]
    )
    kinds = np.concatenate([np.repeat(kind, first.size) for kind, first, _ in noise.draws] or [[]])
    first = np.concatenate([first for _, first, _ in noise.draws] or [np.zeros(0)])
    second = np.concatenate([second for _, _, second in noise.draws] or [np.zeros(0)])
    assert not moved[kinds.size :].any(), "a private value was sent without noise"
    epsilon = squared = 0.0
    for distance, kind, one, two in zip(moved, kinds, first, second, strict=False):
        if distance == 0:
            continue
        assert one > 0, "a private value was sent without noise"
        if kind == "laplace":
            epsilon += distance / one
        elif kind == "staircase":
            epsilon += math.ceil(distance / one - 1e-9) * two
        else:
            squared += (distance / one) ** 2
    return Loss(epsilon, squared)


def neighbours(clients: Clients, adjacency: Adjacency) -> Iterator[Clients]:
    """Every data set of one client that differs from this in one record, on a grid of scores."""
    for record in range(clients.records):
        if adjacency is Adjacency.LABEL:
            labels = clients.labels.copy()
            labels[record] = 1 - labels[record]
            yield replace(clients, labels=labels)
        if adjacency is Adjacency.RECORD and clients.records > 1:
            yield Clients.from_arrays(
                np.delete(clients.scores, record), np.delete(clients.labels, record)
            )
        if adjacency is Adjacency.REPLACE:
            for score, label in ((0.0, 0), (0.5, 1), (1.0, 1), (1.0, 0)):
                scores, labels = clients.scores.copy(), clients.labels.copy()
                scores[record], labels[record] = score, label
                yield Clients.from_arrays(scores, labels)
        if adjacency is Adjacency.SCORE:
            for score in (0.0, 1.0):
                scores = clients.scores.copy()
                scores[record] = score
                yield Clients.from_arrays(scores, clients.labels)


class Rescaled(SimulatedNoise):
    """Noise whose scale is wrong by a factor."""

    def __init__(self, factor: float, seed: int, replicates: int) -> None:
        super().__init__(seed, replicates)
        self.factor = factor

    def laplace(self, scale: Any, shape: tuple[int, ...]) -> Any:
        return super().laplace(np.multiply(scale, self.factor), shape)

    def gaussian(self, sigma: Any, shape: tuple[int, ...]) -> Any:
        return super().gaussian(np.multiply(sigma, self.factor), shape)

    def discrete_laplace(self, scale: Any, shape: tuple[int, ...]) -> Any:
        return super().discrete_laplace(np.multiply(scale, self.factor), shape)

    def polya(self, scale: Any, share: Fraction, shape: tuple[int, ...]) -> Any:
        return super().polya(np.multiply(scale, self.factor), share, shape)

    def discrete_staircase(self, sensitivity: Any, epsilon: Any, shape: tuple[int, ...]) -> Any:
        return super().discrete_staircase(sensitivity, np.divide(epsilon, self.factor), shape)
