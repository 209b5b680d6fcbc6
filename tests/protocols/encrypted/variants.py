"""Every form of an AUC of hidden counts, by name, and parties of their own that compute it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from tacit import EncryptedAUC, FheAUC
from tacit.crypto import masking
from tacit.crypto.identities import Identity, Roster
from tacit.protocol import Clients, NoNoise
from tacit.protocol.steps import ClientState, Query, Reply, Step, stack
from tacit.protocols.encrypted.sessions import pin
from tests.federations import binormal_clients

CHECKED = "bfv(adversary=malicious)"

VARIANTS: Mapping[str, Callable[..., Any]] = {
    "masked": EncryptedAUC,
    "masked, malicious": partial(EncryptedAUC, adversary="malicious"),
    "bfv": partial(FheAUC, scheme="bfv"),
    "malicious": partial(FheAUC, scheme=CHECKED),
    "ckks": partial(FheAUC, scheme="ckks"),
}
EXACT = ("masked", "masked, malicious", "malicious")
"""Forms of whole numbers, with and without checks."""


def federation(records: int = 2000, clients: int = 4, seed: int = 0) -> Clients:
    return binormal_clients(records // 4, records - records // 4, clients, 0.75, seed=seed)


class Parties:
    """Parties of their own in a conversation, which a test carries as an aggregator may."""

    def __init__(
        self, protocol: Any, clients: Clients, states: Sequence[ClientState] | None = None
    ) -> None:
        self.protocol = protocol
        self.parts = [clients.part(index, index + 1) for index in range(clients.count)]
        self.states = states or [ClientState() for _ in self.parts]
        self.conversation = protocol.conversation(clients.count)
        self.query: Query = next(self.conversation)

    def answer(self, index: int, query: Query | None = None) -> Reply:
        """A party's answer to the present query, or to another one."""
        asked = (query or self.query).part(index, index + 1)
        return asked.step.answer(self.parts[index], asked, NoNoise(), self.states[index])

    def replies(self) -> Reply:
        """The answers of all parties."""
        return stack([self.answer(index) for index in range(len(self.parts))])

    def until(self, step: Step) -> Query:
        """The query of this step, after all before it were answered."""
        while self.query.step is not step:
            self.query = self.conversation.send(self.replies())
        return self.query


def restored(notes: Mapping[tuple[Any, ...], Any]) -> ClientState:
    """A state with these notes."""
    state = ClientState()
    for key, note in notes.items():
        state.keep(key, note)
    return state


def pinned(parties: int) -> ClientState:
    """A batch's state that knows the identities of all parties."""
    state, identities = ClientState(), [Identity.generate() for _ in range(parties)]
    pin(state, identities, Roster(tuple(identity.public for identity in identities)))
    return state


def recorded_masks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """A list that fills with the key and the first words of every mask that is drawn."""
    drawn: list[tuple[bytes, bytes]] = []
    real = masking.mask

    def recorded(key: bytes, count: int, field: masking.Field) -> Any:
        made = real(key, count, field)
        drawn.append((key, made[:2].tobytes()))
        return made

    monkeypatch.setattr(masking, "mask", recorded)
    return drawn
