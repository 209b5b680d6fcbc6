"""Dry runs: what one conversation asks, what answers, and from what the answers draw."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.privacy.cost import Cost
from tacit.privacy.mechanisms.interface import Distribution, Shape
from tacit.privacy.noise import NoiseSource, SimulatedNoise
from tacit.protocol.conversation import ONE_REPLICATE
from tacit.protocol.steps import ClientState, Query, Reply

CLIENTS, MOST_RECORDS, LONE_RECORDS = 10, 2**16, 64
"""The most clients and records of a run that is drawn, and the records where each is a client."""

MOST_NUMBERS = 2**24
"""Numbers in memory above which nothing is run to be drawn."""


@dataclass(frozen=True)
class Exchange:
    """A query of a dry run with its reply.

    Parameters
    ----------
    query : of the server.
    reply : of a batch of all clients.
    cost : the largest cost of a record, before the step ran.
    drawn : every distribution from which the step drew.
    """

    query: Query
    reply: Reply
    cost: Cost
    drawn: tuple[Distribution, ...]


class _NotingNoise(NoiseSource):
    """Another source, whose draws are noted."""

    def __init__(self, source: NoiseSource) -> None:
        self.drawn: list[Distribution] = []
        self._source = source

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        """Draws from the other source."""
        self.drawn.append(distribution)
        return self._source.draw(distribution, shape)


def exchanges(protocol: Any, clients: Clients, noise: NoiseSource) -> Iterator[Exchange]:
    """The exchanges of one conversation, which these clients answer.

    Raises
    ------
    ValueError : where a step or the server refuses these records.
    """
    clients, state = protocol.fitted(clients), ClientState()
    conversation = protocol.conversation(clients.count)
    reply = None
    while True:
        try:
            query = next(conversation) if reply is None else conversation.send(reply)
        except StopIteration:
            return
        noting = _NotingNoise(noise)
        cost = query.step.cost(clients, query, state)
        with np.errstate(all="ignore"):
            reply = query.step.answer(clients, query, noting, state)
        yield Exchange(query, reply, cost, tuple(noting.drawn))


def small_run(protocol: Any, clients: int, records: float) -> Iterator[Exchange]:
    """The exchanges of a run with simulated noise over synthetic records, to be drawn.

    Parameters
    ----------
    protocol : the protocol.
    clients, records : how many there are, on which rounds may depend; NaN for an unknown number.
        At most ``CLIENTS`` and ``MOST_RECORDS`` are made; a protocol's own bound of records, which
        must be near their number, is then ``MOST_RECORDS`` too.

    Raises
    ------
    ValueError : for settings that would need much memory, or refuse these records.
    """
    few, most = max(1, min(clients, CLIENTS)), MOST_RECORDS
    bound = getattr(protocol, "most_records", most)
    if bound > most:
        protocol = replace(protocol, most_records=most)
    most = min(most, bound)
    count = max(2 * few, min(round(records), most) if math.isfinite(records) else most)
    batch = protocol.audit_federation(LONE_RECORDS if protocol.lone_records else count, apart=True)
    if not protocol.lone_records:
        batch = batch.taken(slice(None), np.linspace(0, count, few + 1).astype(np.int64))
    if MOST_NUMBERS < protocol.replicate_size(batch) != ONE_REPLICATE:
        raise ValueError(f"a run of {protocol.title} is too large to be drawn")
    yield from exchanges(protocol, batch, SimulatedNoise(0))
