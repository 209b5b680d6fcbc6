"""The privacy loss of a step, computed exactly from the noise that it asks for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from tacit import Clients
from tacit.privacy.cost import Adjacency
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.mechanisms.response import Choices
from tacit.privacy.noise import NoiseSource, NoNoise
from tacit.protocol.conversation import ClientState, Query, Reply

HEIGHT = 3
CELLS = 2**HEIGHT


@dataclass
class Recorder(NoNoise):
    """No noise, but the scales and shares that were asked for; levels as the test says."""

    levels: tuple[int, ...] = ()
    scales: list[float] = field(default_factory=list)
    shares: list[Fraction] = field(default_factory=list)
    replicates: int | None = None

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
        if isinstance(distribution, Choices):
            assert (len(self.levels),) == shape
            return np.array(self.levels, dtype=np.int64)
        if isinstance(distribution, PolyaShare):
            self.scales += np.broadcast_to(distribution.scale, shape).ravel().tolist()
            self.shares.append(distribution.share)
        return super().draw(distribution, shape)


def hospital() -> Clients:
    return Clients.from_arrays([0.03, 0.2, 0.51, 0.52, 0.99, 1.0], [0, 1, 0, 1, 1, 0])


def answer(query: Query, clients: Clients, noise: NoiseSource) -> Reply:
    return query.step.answer(clients, query, noise, ClientState())


def loss(ours: Reply, theirs: Reply, noise: Recorder) -> float:
    """The privacy loss of the recorded noise, entry by entry in the order of the draws."""
    assert ours.keys() == theirs.keys()
    moved = np.concatenate(
        [np.abs(np.subtract(ours[name], theirs[name])).ravel() for name in ours]  # type: ignore[arg-type]
    )
    noisy = len(noise.scales)
    assert not moved[noisy:].any(), "a private value was sent without noise"
    return math.fsum(
        float(distance) / scale
        for distance, scale in zip(moved[:noisy], noise.scales, strict=True)
        if distance
    )


def neighbours(clients: Clients, adjacency: Adjacency) -> Iterator[tuple[int | None, Clients]]:
    """Every other data set of one client, with the record that is missing from it, if one is."""
    for record in range(clients.records):
        if adjacency is Adjacency.RECORD:
            yield (
                record,
                Clients.from_arrays(
                    np.delete(clients.scores, record), np.delete(clients.labels, record)
                ),
            )
            continue
        for cell, label in product(range(CELLS), (0, 1)):
            scores, labels = clients.scores.copy(), clients.labels.copy()
            scores[record], labels[record] = (cell + 0.5) / CELLS, label
            yield None, Clients.from_arrays(scores, labels)


def worst_loss(query: Query, clients: Clients, levels: tuple[int, ...] = ()) -> float:
    """The largest loss over all neighbours; a record's level is its own, whatever it holds."""
    noise = Recorder(levels)
    ours = answer(query, clients, noise)
    assert set(noise.shares) == {Fraction(1)}
    found = []
    for gone, other in neighbours(clients, Adjacency(query.protocol.adjacency)):
        kept = tuple(level for place, level in enumerate(levels) if place != gone)
        found.append(loss(ours, answer(query, other, Recorder(kept)), noise))
    return max(found)
