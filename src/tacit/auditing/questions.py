"""What an attack asks: the queries of a conversation, about neighbouring data sets.

The queries of a conversation; an attack repeats each and draws one client's reply again.

Neighbouring data sets that an attack may be able to distinguish.

Guarantees are about the worst neighbours. For sums, counts, ranks and cells, the worst neighbours
move a record from one end of the scores to the other, or change a record at an end. So only such
neighbours are tried. Of a client with two records either one is changed: each may be the only one
of its label, or the largest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.auditing.distinguishing import lowest_bits
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.ragged import Ragged
from tacit.privacy import doubles
from tacit.privacy.cost import Adjacency, Cost
from tacit.privacy.noise import NoiseSource
from tacit.protocol.conversation import Protocol
from tacit.protocol.steps import ClientState, Query, Reply, View, stack

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
        reply = self.reply(self.clients, doubles.PublicCoins(0, None))
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
    replies = [
        query.step.answer(clients.part(*span), query.part(*span), noise, state.part(*span))
        for span in ends
    ]
    return stack(replies)


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


def neighbours(clients: Clients, adjacency: Adjacency, client: int = 0) -> Iterator[Clients]:
    """Data sets that differ in one record of a client.

    A changed score becomes the lowest, the middle or the highest of all scores; a replaced record
    gets the lowest or the highest, and any class or group.

    Parameters
    ----------
    clients : the data set to start from.
    adjacency : what may be changed.
    client : whose record it is.

    Examples
    --------
    >>> from tacit.data.splitting import federation
    >>> [other.labels.tolist() for other in neighbours(federation(3, False), Adjacency.LABEL)]
    [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    """
    start, stop = (int(offset) for offset in clients.offsets[client : client + 2])
    scores, labels = clients.scores, clients.labels
    ends = sorted({start, (start + stop) // 2, stop - 1})
    replaced = ends if stop - start == 2 else [start]
    if adjacency is Adjacency.LABEL:
        yield from (changed(clients, k, scores[k], 1 - labels[k]) for k in ends)
    elif adjacency is Adjacency.RECORD:
        yield from (removed(clients, client, k) for k in ends)
    elif adjacency is Adjacency.SCORE:
        quantiles = {*np.quantile(scores, (0, 0.5, 1), method="nearest")}
        for k in replaced:
            for other in sorted(quantiles - {scores[k]}):
                yield changed(clients, k, other, labels[k])
    else:
        for k in replaced:
            both = (1 - labels[k], labels[k])
            for pair in itertools.product((scores.max(), scores.min()), both):
                made = changed(clients, k, *pair)
                if pair != (scores[k], labels[k]):
                    yield made
                if clients.categories is not None:
                    yield from _recategorised(made, clients.categories, k)


def changed(clients: Clients, record: int, score: float, label: int) -> Clients:
    """The clients with another score and label of one record."""
    scores, labels = clients.scores.copy(), clients.labels.copy()
    scores[record], labels[record] = score, label
    return replace(clients, scores=scores, labels=labels)


def _recategorised(clients: Clients, known: Categories, record: int) -> Iterator[Clients]:
    """The clients with another class or group of a record; scores by class at opposite ends.

    The new class has the largest score of all and the others the smallest, or the other way round.
    """
    for category in range(len(known.names)):
        of_record = known.of_record.copy()
        of_record[record] = category
        if known.scores is None:
            made = Categories(known.names, of_record)
            yield replace(clients, categories=made)
            continue
        for category_score, other_scores in itertools.permutations(
            (known.scores.max(), known.scores.min())
        ):
            scores = known.scores.copy()
            scores[record] = other_scores
            scores[record, category] = category_score
            yield replace(clients, categories=Categories(known.names, of_record, scores))


def removed(clients: Clients, client: int, record: int) -> Clients:
    """The clients without one record of a client."""
    offsets = clients.offsets - (np.arange(clients.count + 1) > client)
    return clients.taken(np.arange(clients.records) != record, offsets)
