"""Carries the messages of a secure sum between objects of one process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum import graph, messages, secret_sharing, server
from tacit.crypto.secure_sum.client import STEPS, SumClient
from tacit.crypto.secure_sum.messages import EVERYBODY, Kind
from tacit.crypto.secure_sum.terms import SumTerms, new_session

ROUNDS = len(STEPS)
HEADER = messages.HEADER.size
MANY = 50
Vectors = NDArray[np.int64]


@lru_cache(maxsize=2**17)
def once_checked(key: bytes, message: bytes, signature: bytes) -> bool:
    return Roster((key, bytes(32))).has_signed(0, message, signature)


class OnceCheckedRoster(Roster):
    """A roster for many clients in one process: each signature is checked once for all of them."""

    def has_signed(self, index: int, message: bytes, signature: bytes) -> bool:
        return once_checked(self.keys[index], message, signature)


class Federation:
    """Clients with identities, and the server of one session among them.

    ``sent`` has every client's messages, ``given`` those for the clients, by rounds.
    """

    def __init__(
        self,
        clients: int,
        length: int = 3,
        largest: int = 1000,
        around: graph.Neighbourhood | None = None,
        identities: Sequence[Identity] | None = None,
    ) -> None:
        self.identities = identities or [Identity.generate() for _ in range(clients)]
        roster = (OnceCheckedRoster if clients > MANY else Roster)(
            tuple(identity.public for identity in self.identities)
        )
        around = around or graph.Neighbourhood.complete(clients)
        self.begin(SumTerms(new_session(), roster, length, largest, around))

    def begin(self, terms: SumTerms, clients: Sequence[SumClient] | None = None) -> None:
        """A sum under these terms, of new clients or these."""
        self.terms, self.server = terms, server.SumServer(terms)
        self.clients = clients or [SumClient(identity, terms) for identity in self.identities]
        self.sent: dict[int, list[bytes]] = {index: [] for index in range(terms.clients)}
        self.given: list[dict[int, bytes]] = [dict.fromkeys(range(terms.clients), b"")]

    def answer(self, index: int, vector: Any = None, message: bytes | None = None) -> bytes:
        """A client's answer to what it was given last, or to another message in its place."""
        step, given = STEPS[len(self.given) - 1], message or self.given[-1][index]
        vector = np.ones(self.terms.length, dtype=np.int64) if vector is None else vector
        arguments = {"advertise": (), "mask": (given, vector)}.get(step, (given,))
        made: bytes = getattr(self.clients[index], step)(*arguments)
        return made

    def round(self, vectors: Vectors, staying: Sequence[int] | None = None) -> None:
        """Carry one round: every message that was given, answered by those who stay."""
        number = len(self.given) - 1
        for index in self.given[-1]:
            if staying is None or staying[index] > number:
                self.sent[index].append(self.answer(index, vectors[index]))
                self.server.receive(index, self.sent[index][-1])
        if number < ROUNDS - 1:
            self.given.append(self.server.close_round())

    def carry(
        self,
        vectors: Vectors | None = None,
        staying: Sequence[int] | None = None,
        rounds: int = ROUNDS,
    ) -> Self:
        """After the next rounds; ``staying`` says how many rounds each client answers."""
        ones = np.ones((self.terms.clients, self.terms.length), dtype=np.int64)
        for _ in range(rounds):
            self.round(ones if vectors is None else vectors, staying)
        return self

    def sum(self, vectors: Vectors, staying: Sequence[int] | None = None) -> server.SumResult:
        """The whole session."""
        return self.carry(vectors, staying).server.conclude()

    @property
    def ring(self) -> list[int]:
        """Everybody in the order of the ring."""
        return [int(index) for index in self.server._arranged]

    def written(
        self, kind: Kind, *parts: Mapping[int, bytes] | Collection[int], index: int = EVERYBODY
    ) -> bytes:
        """A message of this session from records, and lists of clients."""
        body = b"".join(
            messages.pack_records(part)
            if isinstance(part, Mapping)
            else messages.pack_indices(part)
            for part in parts
        )
        return messages.write(kind, self.terms.session, index, body)

    def lists(self, stayed: Iterable[int], left: Collection[int]) -> bytes:
        """Lists with the signatures that clients sent beside their masked vectors."""
        signed = {index: self.sent[index][2][-messages.SIGNATURE_BYTES :] for index in stayed}
        return self.written(Kind.LISTS, signed, left)

    def boxes(self, index: int) -> dict[int, bytes]:
        """The encrypted shares in a client's delivery, by owner."""
        clients = self.terms.clients
        _, rest = messages.take_indices(self.given[2][index][HEADER:], clients)
        return messages.unpack_records(rest, messages.BOX_BYTES, clients)

    def delivery(self, index: int, boxes: Mapping[int, bytes]) -> bytes:
        """A delivery to a client that announces the owners of these boxes, and itself."""
        return self.written(Kind.DELIVERY, {index, *boxes}, boxes, index=index)

    def masked(self, index: int) -> NDArray[Any]:
        """The masked vector that a client sent."""
        return self.terms.packing.unpack(self.sent[index][2][HEADER : -messages.SIGNATURE_BYTES])


def revealed(message: bytes, clients: int) -> dict[int, bytes]:
    """By owner: which kind of share, and the share."""
    return messages.unpack_records(message[HEADER:], messages.SHARE_BYTES, clients)


def combined(shares: Mapping[int, bytes]) -> bytes:
    """The secret of shares, by the client that holds each."""
    octets = np.array([[list(share) for share in shares.values()]], dtype=np.uint8)
    return secret_sharing.combine(np.array([[index + 1 for index in shares]]), octets)[0].tobytes()


def flipped(message: bytes, place: int) -> bytes:
    """A message with one bit changed."""
    changed = bytearray(message)
    changed[place] ^= 1
    return bytes(changed)


def uniform(octets: bytes) -> float:
    """The p-value of the chi-square test that bytes are uniform."""
    counts = np.bincount(np.frombuffer(octets, dtype=np.uint8), minlength=256)
    return float(stats.chisquare(counts).pvalue)
