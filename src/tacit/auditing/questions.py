"""The asks of a conversation as an attack repeats them: one client's reply, over and over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.evidence import lowest_bits
from tacit.data.clients import Clients, Ragged
from tacit.privacy.cost import Cost
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise
from tacit.protocols.conversation import Ask, Memory, Protocol, Reply, View, stack
from tacit.protocols.tree_steps import RANK_UNITS
from tacit.protocols.two_round_auc import NOTE, Turns

Floats = NDArray[np.float64]
Parts = Mapping[str, NDArray[Any]]

PER_REPLICATE = "ranks"
"""What is published for all clients on every replicate by itself."""

LARGEST_REPLY = 2**12
"""A longer reply is looked at by the number and the sum of the numbers of each field."""


class PublicCoins(SimulatedNoise):
    """Simulated noise whose choices of who does what are the same on every draw.

    A reply that says what was chosen, whatever the records hold, is as private as it is for the
    worst choice; to draw many replies with one choice takes nothing from an attack.

    Parameters
    ----------
    seed, replicates : as for ``SimulatedNoise``.
    coins : the seed of the choices.
    """

    def __init__(self, seed: int, replicates: int | None, coins: int = 0) -> None:
        super().__init__(seed, replicates)
        self._coin_seed = coins

    def choices(self, weights: Sequence[int], size: int) -> NDArray[np.int64]:
        """Places in ``weights``, in proportion, by the fixed coins."""
        return SimulatedNoise(self._coin_seed).choices(weights, size)


class BareCoins(NoNoise):
    """No noise, but the choices of ``PublicCoins``: what a record moves, apart from noise."""

    def choices(self, weights: Sequence[int], size: int) -> NDArray[np.int64]:
        """Places in ``weights``, by the coins that fall where none are named."""
        return PublicCoins(0, None).choices(weights, size)


@dataclass(frozen=True, eq=False)
class Question:
    """An ask as it stood in one conversation.

    Parameters
    ----------
    ask : what all clients were asked.
    clients : all clients.
    client : the one whose reply is attacked; of sums and joint replies, all there is.
    memory : all clients' notebook just before the ask.
    """

    ask: Ask
    clients: Clients
    client: int
    memory: Memory

    @property
    def name(self) -> str:
        """The step that answers."""
        return self.ask.step.name

    @property
    def cost(self) -> Cost:
        """What the step declares to spend."""
        return self.ask.step.spends(*self._own(self.clients))

    def reply(self, clients: Clients, noise: NoiseSource) -> Reply:
        """What the attacker sees if these were the clients; the notebook stays as it is."""
        batch, ask, memory = self._own(clients)
        if noise.replicates is not None and PER_REPLICATE in ask.shared:
            ranks = ask.shared[PER_REPLICATE]
            several = np.broadcast_to(ranks, (noise.replicates, *ranks.shape))
            ask = replace(ask, shared={**ask.shared, PER_REPLICATE: several})
        return ask.step.answer(batch, ask, noise, memory)

    def parts(self, clients: Clients, noise: NoiseSource) -> Parts:
        """The reply's fields, shape (R, numbers) each; R is 1 for a single draw.

        A field on which the noise has no influence is repeated.
        """
        several = 1 if noise.replicates is None else noise.replicates
        found = {}
        for name, field in self.reply(clients, noise).items():
            values = field.values if isinstance(field, Ragged) else np.asarray(field)
            if noise.replicates is None or values.ndim == self._axes[name]:
                values = np.broadcast_to(values.ravel(), (several, values.size))
            found[name] = values.reshape(several, -1)
        return found

    @cached_property
    def _axes(self) -> Mapping[str, int]:
        """How many axes every field has without replicates."""
        reply = self.reply(self.clients, PublicCoins(0, None))
        return {
            name: (field.values if isinstance(field, Ragged) else np.asarray(field)).ndim
            for name, field in reply.items()
        }

    def _own(self, clients: Clients) -> tuple[Clients, Ask, Memory]:
        ask, memory = self.ask, copied(self.memory, self.client)
        if _apart(ask, clients):
            ends = self.client, self.client + 1
            clients, ask, memory = clients.part(*ends), ask.part(*ends), memory.part(*ends)
        _write_for(clients, memory)
        return clients, ask, memory


def _write_for(clients: Clients, memory: Memory) -> None:
    """Make a notebook that of a neighbour: its turns, drawn without a look at the records.

    A client answers only for the records that drew the turns of its note.
    """
    note: Turns | None = memory.recall(NOTE)
    if note is not None:
        memory.keep(NOTE, Turns.of(clients, note.drawn, note.rounds, note.first))


def copied(memory: Memory, client: int) -> Memory:
    """A copy of all clients' notebook, with one client's own notes."""
    made = Memory()
    ends = client, client + 1
    for source, page in ((memory, made), (memory.part(*ends), made.part(*ends))):
        for key, note in source.notes.items():
            page.keep(key, note)
    return made


def hostile(ask: Ask) -> Ask:
    """The ask of a server that wants to learn most, as far as clients answer it.

    Published ranks go to the end of their range that is farther from the pivot, where one record
    moves the sums most. Other asks hold nothing that changes how much a step reveals, or what they
    hold is checked by the step.
    """
    if PER_REPLICATE not in ask.shared:
        return ask
    ranks, pivot = ask.shared[PER_REPLICATE], int(ask.shared["pivot"])
    end = max(-pivot, RANK_UNITS - pivot, key=abs)
    return replace(ask, shared={**ask.shared, PER_REPLICATE: np.full_like(ranks, end)})


def questions_of(protocol: Protocol, clients: Clients, noise: NoiseSource) -> list[Question]:
    """All asks of one conversation, each about the first client that it concerns.

    A conversation that ends because the noise left nothing to conclude from is as good as another.
    """
    memory, found = Memory(), []
    conversation = protocol.conversation(clients.count)
    ask = next(conversation)
    while True:
        speaking = np.flatnonzero(ask.step.speaks(clients, ask))
        client = 0
        if ask.view is View.EACH and speaking.size:
            client = int(clients.client_of_record[speaking[0]])
        found.append(Question(hostile(ask), clients, client, copied(memory, client)))
        try:
            ask = conversation.send(_answered(ask, clients, noise, memory))
        except (StopIteration, ValueError):
            return found


def _answered(ask: Ask, clients: Clients, noise: NoiseSource, memory: Memory) -> Reply:
    """The reply of all clients, each from its own notebook where replies are told apart."""
    if not _apart(ask, clients):
        return ask.step.answer(clients, ask, noise, memory)
    ends = [(k, k + 1) for k in range(clients.count)]
    return stack(
        [
            ask.step.answer(clients.part(*own), ask.part(*own), noise, memory.part(*own))
            for own in ends
        ]
    )


def _apart(ask: Ask, clients: Clients) -> bool:
    return ask.view is View.EACH and clients.count > 1


def observe(
    questions: Sequence[Question], clients: Clients, noise: NoiseSource, low_bits: bool = False
) -> Floats:
    """Everything the attacker computes with, in one row a draw: shape (R, D).

    These are the numbers of all replies, or their bits where those are packed, and the differences
    of equally named fields of two replies, which noise that was used twice leaves bare.

    Parameters
    ----------
    questions : the asks that are answered.
    clients : the data set.
    noise : where the noise comes from; with replicates R is their number, else 1.
    low_bits : whether the exponent of the lowest set bit of every number is looked at as well.
    """
    replies = [_short(question.parts(clients, noise)) for question in questions]
    columns = [values for reply in replies for values in reply.values()]
    for place, reply in enumerate(replies):
        for earlier in replies[:place]:
            columns += [
                reply[name] - earlier[name]
                for name in reply.keys() & earlier.keys()
                if reply[name].shape == earlier[name].shape
            ]
    rows = np.concatenate([np.asarray(own, dtype=np.float64) for own in columns], axis=-1)
    return np.concatenate([rows, lowest_bits(rows)], axis=-1) if low_bits else rows


def packed(values: NDArray[Any]) -> bool:
    """Whether numbers are taken for packed bits: bytes, and more than one of them."""
    return values.dtype == np.uint8 and values.shape[-1] > 1


def _short(reply: Parts) -> Parts:
    """The fields, several bytes as bits, or what is left of those that are too long to look at."""
    if sum(values.shape[-1] for values in reply.values()) <= LARGEST_REPLY:
        return {
            name: np.unpackbits(own, axis=-1) if packed(own) else own for name, own in reply.items()
        }
    return {
        name: np.stack([np.full(len(own), own.shape[-1]), own.sum(axis=-1)], axis=-1)
        for name, own in reply.items()
    }
