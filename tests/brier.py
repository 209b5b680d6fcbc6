"""A small protocol with nothing declared: the Brier score from noisy sums of every client."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.privacy.mechanisms.laplace import DiscreteLaplace

UNITS = 1000
"""A squared error is a whole number of so many parts of one."""


def in_units(clients: tp.Clients) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.rint(UNITS * (clients.scores - clients.labels) ** 2).astype(np.int64)


@tp.step(cost=lambda clients, query, state: query.protocol.guarantee)
def noisy_squares(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """Replacing a record moves the sum of a client's squared errors by one at most."""
    sums = clients.ragged(in_units(clients)).sum()
    drawn = noise.draw(DiscreteLaplace(UNITS, query.protocol.epsilon), (clients.count,))
    return {"squares": sums + drawn, "records": clients.sizes}


@dataclass(frozen=True)
class Brier(tp.Protocol):
    epsilon: float

    name = "squared-errors"
    figure = "Brier score"
    adjacency = tp.Adjacency.REPLACE
    score_range = (0.0, 1.0)
    steps = (noisy_squares,)

    def exact(self, clients: tp.Clients) -> float:
        return float(np.mean((clients.scores - clients.labels) ** 2))

    def noiseless_value(self, clients: tp.Clients) -> float:
        return float(in_units(clients).sum() / (UNITS * clients.records))

    def total(self, squares: Floats) -> Floats:
        """Of all clients, whose squares the last axis has."""
        return np.asarray(squares.sum(axis=-1))

    def conversation(self, clients: int) -> tp.Conversation:
        reply = yield tp.Query(noisy_squares, self)
        records = int(np.asarray(reply["records"]).sum())
        value = self.total(np.asarray(reply["squares"])) / (UNITS * records)
        variance = clients * float(discrete_laplace_variance(UNITS / self.epsilon))
        error = np.full_like(value, np.sqrt(variance) / (UNITS * records))
        unknown = np.full_like(value, np.nan)
        return tp.ServerResult(value, error, unknown, unknown, unknown)


@dataclass(frozen=True)
class HalfDeclared(Brier):
    """The same noise, with half the epsilon declared that it costs."""

    name = "half-declared"

    @property
    def guarantee(self) -> tp.Cost:
        return tp.Cost(self.epsilon / 2, adjacency=tp.Adjacency.REPLACE)


@tp.step(cost=noisy_squares.cost)
def largest_beside(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """The noisy sums, and whether a client has an error above a half, as it is."""
    large = clients.ragged((in_units(clients) > UNITS // 4).astype(np.int64)).sum() > 0
    return {**noisy_squares.answer(clients, query, noise, state), "large": large.astype(np.int64)}


@tp.step()
def free_positives(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """The numbers of positives, whose cost nobody declared."""
    return {"positives": clients.ragged(clients.labels.astype(np.int64)).sum()}


def cost_of_positives(clients: tp.Clients, query: tp.Query, state: tp.ClientState) -> tp.Cost:
    """Nothing where no label is 1."""
    guarantee: tp.Cost = query.protocol.guarantee
    return guarantee if clients.labels.any() else tp.NOTHING


@tp.step(cost=noisy_squares.cost)
def positives_only(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """A noisy number for each record whose label is 1."""
    drawn = noise.draw(DiscreteLaplace(UNITS, query.protocol.epsilon), (clients.records,))
    kept = clients.labels == 1
    sizes = clients.ragged(kept.astype(np.int64)).sum()
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return {"errors": tp.Ragged((in_units(clients) + drawn)[..., kept], offsets)}


@tp.step()
def free_positives_only(
    clients: tp.Clients, query: tp.Query, noise: tp.NoiseSource, state: tp.ClientState
) -> tp.Reply:
    """As many zeros as there are records whose label is 1, at no cost."""
    reply = positives_only.answer(clients, query, noise, state)["errors"]
    assert isinstance(reply, tp.Ragged)
    return {"errors": tp.Ragged(np.zeros_like(reply.values), reply.offsets)}


cost_that_tells = replace(noisy_squares, cost=cost_of_positives)


@dataclass(frozen=True)
class Telling(Brier):
    """Noise that suffices, and beside it what no noise hides.

    Parameters
    ----------
    asked : the step that tells, before the honest one.
    """

    asked: tp.Step = largest_beside

    def conversation(self, clients: int) -> tp.Conversation:
        yield tp.Query(self.asked, self)
        return (yield from super().conversation(clients))
