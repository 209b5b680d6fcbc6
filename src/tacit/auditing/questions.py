"""The queries of a conversation; an attack repeats each and draws one client's reply again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.auditing.evidence import lowest_bits
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.privacy.cost import Cost
from tacit.privacy.sampling.doubles import PublicCoins
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Protocol, Query, Reply, View, stack

Parts = Mapping[str, NDArray[Any]]

MAX_REPLY = 2**13
"""Largest number of values in a reply of which an attack sees more than lengths and sums."""


@dataclass(frozen=True, eq=False)
class Question:
    """A query of one conversation.

    Parameters
    ----------
    query : what all clients were asked.
    clients : all clients.
    client : the client whose reply is attacked; for sums and joint replies the attack sees only
        the whole.
    state : the state of all clients just before the query.
    protocol : the protocol of the conversation.
    """

    query: Query
    clients: Clients
    client: int
    state: ClientState
    protocol: Protocol

    @property
    def name(self) -> str:
        """The step that answers."""
        return self.query.step.name

    @property
    def cost(self) -> Cost:
        """What the step declares to spend."""
        return self.cost_on(self.clients)

    def cost_on(self, clients: Clients) -> Cost:
        """What the step declares to spend if these are the clients."""
        return self.query.step.cost(*self._of_client(clients))

    def reply(self, clients: Clients, noise: NoiseSource) -> Reply:
        """What the attacker sees if these are the clients; ``state`` does not change."""
        batch, query, state = self._of_client(clients)
        if noise.replicates is not None:
            query = self.protocol.replicated_query(query, noise.replicates)
        return query.step.answer(batch, query, noise, state)

    def parts(self, clients: Clients, noise: NoiseSource) -> Parts:
        """The reply's fields, shape (R, numbers) each; R is 1 for a single draw.

        A field that does not depend on the noise is repeated.
        """
        several = 1 if noise.replicates is None else noise.replicates
        fields = {}
        for name, field in self.reply(clients, noise).items():
            values = field.values if isinstance(field, Ragged) else np.asarray(field)
            if noise.replicates is None or values.ndim == self._axes[name]:
                values = np.broadcast_to(values.ravel(), (several, values.size))
            fields[name] = values.reshape(several, -1)
        return fields

    @cached_property
    def _axes(self) -> Mapping[str, int]:
        """The number of axes of every field without replicates."""
        reply = self.reply(self.clients, PublicCoins(0, None))
        return {
            name: (field.values if isinstance(field, Ragged) else np.asarray(field)).ndim
            for name, field in reply.items()
        }

    def _of_client(self, clients: Clients) -> tuple[Clients, Query, ClientState]:
        query, state = self.query, copied(self.state, self.client)
        if _apart(query, clients):
            ends = self.client, self.client + 1
            clients, query, state = clients.part(*ends), query.part(*ends), state.part(*ends)
        self.protocol.renew_state(clients, state)
        return clients, query, state


def copied(state: ClientState, client: int) -> ClientState:
    """A copy of the state of all clients, with the entries of one client."""
    made = ClientState()
    ends = client, client + 1
    for source, page in ((state, made), (state.part(*ends), made.part(*ends))):
        for key, note in source.notes.items():
            page.keep(key, note)
    return made


def questions_of(protocol: Protocol, clients: Clients, noise: NoiseSource) -> list[Question]:
    """All queries of one conversation, each for the first client that participates in it.

    A conversation may end early, when the noise leaves no data for a result; it is used as well.
    """
    state, questions = ClientState(), []
    conversation = protocol.conversation(clients.count)
    query = next(conversation)
    while True:
        speaking = np.flatnonzero(query.step.participates(clients, query))
        client = 0
        if query.view is View.EACH and speaking.size:
            client = int(clients.client_of_record[speaking[0]])
        hostile = protocol.hostile_query(query)
        questions.append(Question(hostile, clients, client, copied(state, client), protocol))
        try:
            query = conversation.send(_answered(query, clients, noise, state))
        except (StopIteration, ValueError):
            return questions


def _answered(query: Query, clients: Clients, noise: NoiseSource, state: ClientState) -> Reply:
    """The reply of all clients; each uses its own state where the server sees each reply."""
    if not _apart(query, clients):
        return query.step.answer(clients, query, noise, state)
    ends = [(k, k + 1) for k in range(clients.count)]
    return stack(
        [
            query.step.answer(clients.part(*span), query.part(*span), noise, state.part(*span))
            for span in ends
        ]
    )


def _apart(query: Query, clients: Clients) -> bool:
    return query.view is View.EACH and clients.count > 1


def observe(
    questions: Sequence[Question], clients: Clients, noise: NoiseSource, low_bits: bool = False
) -> Floats:
    """All numbers that the attacker uses, one row for each draw: shape (R, D).

    These are the numbers of all replies, or their bits where bits are packed, and the differences
    of fields with the same name in two replies: noise that was used twice cancels there.

    Parameters
    ----------
    questions : the queries that are answered.
    clients : the data set.
    noise : the source of the noise; R is its number of replicates, or 1 without replicates.
    low_bits : whether the attacker also sees the exponent of the lowest set bit of every number.
    """
    replies = [_short(question.parts(clients, noise)) for question in questions]
    columns = [values for reply in replies for values in reply.values()]
    for index, reply in enumerate(replies):
        for earlier in replies[:index]:
            columns += [
                reply[name] - earlier[name]
                for name in reply.keys() & earlier.keys()
                if reply[name].shape == earlier[name].shape
            ]
    rows = np.concatenate([np.asarray(block, dtype=np.float64) for block in columns], axis=-1)
    return np.concatenate([rows, lowest_bits(rows)], axis=-1) if low_bits else rows


def packed(values: NDArray[Any]) -> bool:
    """Whether the numbers count as packed bits: they do if they are at least two bytes."""
    return values.dtype == np.uint8 and values.shape[-1] > 1


def _short(reply: Parts) -> Parts:
    """The fields, several bytes as bits; of a reply that is too long, only lengths and sums."""
    if sum(values.shape[-1] for values in reply.values()) <= MAX_REPLY:
        return {
            name: np.unpackbits(field, axis=-1) if packed(field) else field
            for name, field in reply.items()
        }
    return {
        name: np.stack([np.full(len(field), field.shape[-1]), field.sum(axis=-1)], axis=-1)
        for name, field in reply.items()
    }
