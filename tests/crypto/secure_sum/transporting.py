"""Carries the messages of a secure sum between objects of one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.messages import Kind
from tacit.crypto.secure_sum.server import SumResult, SumServer
from tacit.crypto.secure_sum.terms import SumTerms, new_session

ROUNDS = 5
HEADER = messages.HEADER.size


MANY = 50


@lru_cache(maxsize=2**17)
def once_checked(key: bytes, message: bytes, signature: bytes) -> bool:
    return Roster((key, bytes(32))).has_signed(0, message, signature)


class OnceCheckedRoster(Roster):
    """A roster for many clients in one process: each signature is checked once for all of them."""

    def has_signed(self, index: int, message: bytes, signature: bytes) -> bool:
        return once_checked(self.keys[index], message, signature)


class Federation:
    """Clients with identities, and the server of one session among them."""

    def __init__(
        self,
        clients: int,
        length: int = 3,
        largest: int = 1000,
        around: Neighbourhood | None = None,
        identities: Sequence[Identity] | None = None,
        session: bytes | None = None,
    ) -> None:
        self.identities = identities or [Identity.generate() for _ in range(clients)]
        kind = OnceCheckedRoster if clients > MANY else Roster
        self.terms = SumTerms(
            session or new_session(),
            kind(tuple(identity.public for identity in self.identities)),
            length,
            largest,
            around or Neighbourhood.complete(clients),
        )
        self.clients = [SumClient(identity, self.terms) for identity in self.identities]
        self.server = SumServer(self.terms)
        self.sent: dict[int, list[bytes]] = {index: [] for index in range(clients)}
        self.given: list[dict[int, bytes]] = [dict.fromkeys(range(clients), b"")]

    def again(self) -> Federation:
        """A fresh session among the same clients, under the same name."""
        terms = self.terms
        return Federation(
            terms.clients,
            terms.length,
            terms.largest,
            terms.neighbourhood,
            self.identities,
            terms.session,
        )

    def round(self, vectors: NDArray[np.int64], staying: Sequence[int] | None = None) -> None:
        """Carry one round: every message that was given, answered by those who stay."""
        number = len(self.given) - 1
        for index, message in self.given[-1].items():
            if staying is None or staying[index] > number:
                client = self.clients[index]
                steps: list[Callable[[], bytes]] = [
                    client.advertise,
                    lambda c=client, m=message: c.share(m),  # type: ignore[misc]
                    lambda c=client, m=message, v=vectors[index]: c.mask(m, v),  # type: ignore[misc]
                    lambda c=client, m=message: c.certify(m),  # type: ignore[misc]
                    lambda c=client, m=message: c.reveal(m),  # type: ignore[misc]
                ]
                answer = steps[number]()
                self.sent[index].append(answer)
                self.server.receive(index, answer)
        if number < ROUNDS - 1:
            self.given.append(self.server.close_round())

    def carry(
        self, vectors: NDArray[np.int64], staying: Sequence[int] | None = None, rounds: int = ROUNDS
    ) -> None:
        """Carry the first rounds; ``staying`` says how many rounds each client answers."""
        for _ in range(rounds):
            self.round(vectors, staying)

    def sum(self, vectors: NDArray[np.int64], staying: Sequence[int] | None = None) -> SumResult:
        """The whole session."""
        self.carry(vectors, staying)
        return self.server.conclude()


def started(clients: int = 3) -> Federation:
    """After the first round."""
    federation = Federation(clients)
    federation.carry(np.zeros((clients, 3), dtype=np.int64), rounds=1)
    return federation


def before_lists(clients: int, around: Neighbourhood | None = None) -> Federation:
    """After the third round, with nobody gone."""
    federation = Federation(clients, around=around)
    federation.carry(np.ones((clients, 3), dtype=np.int64), rounds=3)
    return federation


def answered(
    federation: Federation, index: int, vector: NDArray[np.int64], message: bytes | None = None
) -> bytes:
    """A client's answer to what it was given last, or to another message in its place."""
    client, number = federation.clients[index], len(federation.given) - 1
    inputs = federation.given[-1][index] if message is None else message
    if number == 0:
        return client.advertise()
    steps = (client.share, lambda m: client.mask(m, vector), client.certify, client.reveal)
    return steps[number - 1](inputs)


def revealed(message: bytes, clients: int) -> dict[int, bytes]:
    """By owner: which kind of share, and the share."""
    return messages.unpack_records(message[HEADER:], messages.SHARE_BYTES, clients)


def boxes_of(federation: Federation, index: int) -> dict[int, bytes]:
    """The encrypted shares in a client's delivery, by owner."""
    clients = federation.terms.clients
    _, rest = messages.take_indices(federation.given[2][index][HEADER:], clients)
    return messages.unpack_records(rest, messages.BOX_BYTES, clients)


def delivery_of(federation: Federation, index: int, boxes: dict[int, bytes]) -> bytes:
    """A delivery to a client that announces the owners of these boxes, and itself."""
    body = messages.pack_indices({index, *boxes}) + messages.pack_records(boxes)
    return messages.write(Kind.DELIVERY, federation.terms.session, index, body)
