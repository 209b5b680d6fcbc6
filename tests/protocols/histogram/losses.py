"""The privacy loss of a step, computed exactly from the noise that it asks for."""

from __future__ import annotations

from collections.abc import Callable

from tacit import Clients
from tacit.protocol import Adjacency, ClientState, NoiseSource, Query, Reply
from tacit.testing.recording import Recorder, loss_between, neighbours

HEIGHT = 3
CELLS = 2**HEIGHT


def hospital() -> Clients:
    return Clients.from_arrays([0.03, 0.2, 0.51, 0.52, 0.99, 1.0], [0, 1, 0, 1, 1, 0])


def answer(query: Query, clients: Clients, noise: NoiseSource) -> Reply:
    return query.step.answer(clients, query, noise, ClientState())


def worst_loss(
    query: Query, clients: Clients, recorder: Callable[[], Recorder] = Recorder
) -> float:
    """The largest loss over all neighbours."""
    noise = recorder()
    ours = answer(query, clients, noise)
    return max(
        loss_between(ours, answer(query, other, recorder()), noise).epsilon
        for other in neighbours(clients, Adjacency(query.protocol.adjacency))
    )
