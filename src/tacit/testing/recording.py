"""Noise sources that record or distort, and the privacy loss between two replies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

import tacit.protocol as tp
from tacit.arrays import Integers
from tacit.auditing.questions import changed, removed
from tacit.privacy import doubles
from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.interface import Distribution, Mechanism
from tacit.privacy.mechanisms.laplace import PolyaShare
from tacit.privacy.mechanisms.response import Bits


def values_of(value: tp.Field) -> np.ndarray[Any, Any]:
    """A field's numbers, without their cuts by client."""
    return value.values if isinstance(value, tp.Ragged) else np.asarray(value)


@dataclass
class Recorder(tp.NoNoise):
    """No noise, but a record of the noise that was asked for, and flips on demand.

    ``shares`` are the shares of a sum's noise, each as a multiple of the whole.
    """

    draws: list[tuple[Mechanism, tuple[int, ...]]] = field(default_factory=list)
    flipped: Integers | None = None
    flips: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    replicates: int | None = None

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
        """No noise, and a record of what was asked for."""
        drawn = super().draw(distribution, shape)
        if isinstance(distribution, tp.RandomisedResponse | Bits):
            self.flips.append(distribution.probability)
            if self.flipped is not None:
                drawn.reshape(-1)[self.flipped] = True
        elif isinstance(distribution, Mechanism):
            self.draws.append((distribution, shape))
            if isinstance(distribution, PolyaShare):
                self.shares.append(float(distribution.share))
        return drawn


@dataclass(frozen=True)
class Loss:
    """Privacy loss to a neighbour: pure epsilon, and the Gaussian mechanism's squared mu."""

    epsilon: float = 0.0
    squared_mu: float = 0.0

    def delta(self, epsilon: float) -> float:
        """Delta of the Gaussian part at what the pure part leaves (Balle and Wang, Eq. 6)."""
        if self.squared_mu == 0:
            return 0.0 if self.epsilon <= epsilon * (1 + 1e-9) else 1.0
        mu, rest = math.sqrt(self.squared_mu), epsilon - self.epsilon
        return float(ndtr(mu / 2 - rest / mu) - math.exp(rest) * ndtr(-mu / 2 - rest / mu))


def loss_between(first_reply: tp.Reply, second_reply: tp.Reply, noise: Recorder) -> Loss:
    """Privacy loss between two noiseless replies of one client, entry by entry.

    The draws, in order, belong to the entries of the fields, in order; entries without a draw must
    be equal. Draws beyond the last entry add noise to noise, and reveal nothing.
    """
    check_sizes(first_reply, second_reply)
    assert all(share == 1 for share in noise.shares), "one client draws all of the noise"
    differences = [
        np.abs(values_of(value) - values_of(second_reply[name])).astype(float).ravel()
        for name, value in first_reply.items()
    ]
    moved = np.concatenate(differences)
    epsilon, squared, start = 0.0, 0.0, 0
    for mechanism, shape in noise.draws:
        stop = start + math.prod(shape)
        part = moved[start:stop]
        shift = np.pad(part, (0, stop - start - part.size)).reshape(shape)
        if isinstance(mechanism, Gaussian):
            squared += float(mechanism.squared_loss(shift).sum())
        else:
            epsilon += float(mechanism.loss(shift).sum())
        start = stop
    assert not moved[start:].any(), "a private value was sent without noise"
    assert math.isfinite(epsilon + squared), "a private value was sent without noise"
    return Loss(epsilon, squared)


def check_sizes(first_reply: tp.Reply, second_reply: tp.Reply) -> None:
    """Replies of neighbours have the same fields, with the same numbers of values."""
    sizes = [
        {name: values_of(value).shape for name, value in reply.items()}
        for reply in (first_reply, second_reply)
    ]
    assert sizes[0] == sizes[1], f"the size of a reply depends on the records: {sizes}"


REPLACED = ((0.0, 0), (0.5, 1), (1.0, 1), (1.0, 0))
"""Scores and labels of a record in another's place."""


def neighbours(clients: tp.Clients, adjacency: tp.Adjacency) -> Iterator[tp.Clients]:
    """Every data set of one client that differs from this in one record, on a grid of scores."""
    for record, (score, label) in enumerate(zip(clients.scores, clients.labels, strict=True)):
        others = {
            tp.Adjacency.LABEL: [(score, 1 - label)],
            tp.Adjacency.REPLACE: REPLACED,
            tp.Adjacency.SCORE: [(0.0, label), (1.0, label)],
        }
        yield from (changed(clients, record, *other) for other in others.get(adjacency, ()))
        if adjacency is tp.Adjacency.RECORD and clients.records > 1:
            yield removed(clients, 0, record)


def without_person(clients: tp.Clients, adjacency: tp.Adjacency | None) -> Iterator[tp.Clients]:
    """Data sets in which all records of one person changed as far as an adjacency lets them."""
    if clients.persons is None:
        raise ValueError("nothing says whose records these are")
    for person in np.unique(clients.persons):
        of_person = clients.persons == person
        if adjacency is tp.Adjacency.RECORD:
            kept = ~of_person
            yield clients.taken(kept, np.array([0, np.count_nonzero(kept)]))
        if adjacency is tp.Adjacency.LABEL:
            yield replace(clients, labels=np.where(of_person, 1 - clients.labels, clients.labels))
        for score, label in ((0.0, 0), (1.0, 1), (1.0, 0)):
            scores = np.where(of_person, score, clients.scores)
            labels = np.where(of_person, label, clients.labels).astype(np.int8)
            if adjacency is tp.Adjacency.REPLACE:
                yield replace(clients, scores=scores, labels=labels)
            if adjacency is tp.Adjacency.SCORE:
                yield replace(clients, scores=scores)


class Rescaled(doubles.ScaledNoise):
    """Noise whose scale is wrong by a factor; bits as they should be."""

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
        """Noise of the wrong scale; bits as they should be."""
        if isinstance(distribution, tp.RandomisedResponse | Bits):
            return doubles.PublicCoins.draw(self, distribution, shape)
        return super().draw(distribution, shape)
