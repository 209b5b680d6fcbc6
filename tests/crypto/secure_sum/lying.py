"""A server of a secure sum that tells each client another story, and opens what it is given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from numpy.typing import NDArray

from tacit.crypto.identities import SumError
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.consistency import lists_statement
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.masking import pair_mask, self_mask
from tacit.crypto.secure_sum.messages import EVERYBODY, Kind
from tacit.crypto.secure_sum.secret_sharing import combine
from tests.crypto.secure_sum.transporting import HEADER, Federation, revealed

LENGTH = 41
Story = tuple[frozenset[int], frozenset[int]]
"""Who is said to have stayed, and who to have left."""


def vectors_of(clients: int) -> NDArray[np.int64]:
    return np.random.default_rng(clients).integers(-1000, 1001, (clients, LENGTH))


@dataclass
class LyingServer:
    """After the round in which clients sent their masked vectors.

    Parameters
    ----------
    federation : the clients, carried so far.
    colluders : clients who tell the server all they know and sign whatever it likes.
    mask_keys : their private mask keys.
    shares : what clients revealed: by owner and kind, receivers' points and shares.
    refusals : what clients said instead of answering, by client.
    """

    federation: Federation
    colluders: Collection[int] = ()
    mask_keys: Mapping[int, bytes] = field(default_factory=dict)
    shares: dict[tuple[int, int], list[tuple[int, bytes]]] = field(default_factory=dict)
    refusals: dict[int, SumError] = field(default_factory=dict)

    @classmethod
    def started(
        cls,
        clients: int,
        around: Neighbourhood,
        announced: Callable[[Federation], Mapping[int, Collection[int]]] = lambda _: {},
        colluders: Sequence[int] = (),
    ) -> LyingServer:
        """Up to the masked vectors; ``announced`` says whom to announce to some clients instead."""
        federation = Federation(clients, LENGTH, around=around)
        vectors = vectors_of(clients)
        federation.carry(vectors, rounds=2)
        for client, others in announced(federation).items():
            deliveries = federation.given[-1]
            deliveries[client] = shortened(federation, deliveries[client], client, others)
        keys = {index: federation.clients[index]._masking for index in colluders}
        for index, message in federation.given[-1].items():
            federation.sent[index].append(federation.clients[index].mask(message, vectors[index]))
        return cls(federation, colluders, keys)

    @property
    def ring(self) -> list[int]:
        """Everybody in the order of the ring."""
        return [int(index) for index in self.federation.server._arranged]

    def around(self, client: int) -> set[int]:
        """A client's neighbours."""
        return set(self.federation.server._around[client])

    def tell(self, stories: Mapping[int, Story]) -> None:
        """Tell clients their lists, give each all signatures of the same, keep what they reveal.

        The clients stay as they were, so that another world can be tried.
        """
        clients = {index: copy(self.federation.clients[index]) for index in stories}
        signed: dict[bytes, dict[int, bytes]] = {}
        for index, (stayed, left) in stories.items():
            try:
                answer = clients[index].certify(self._lists(stayed, left))
            except SumError as error:
                self.refusals[index] = error
                continue
            statement = lists_statement(clients[index]._digest, stayed, left)
            signed.setdefault(statement, self._forged(statement))[index] = answer[HEADER:]
        for index in stories.keys() - self.refusals.keys():
            self._reveal(clients[index], signed)

    def _reveal(self, client: SumClient, signed: Mapping[bytes, dict[int, bytes]]) -> None:
        statement = lists_statement(client._digest, client._stayed, client._left)
        records = {k: part for k, part in signed[statement].items() if k in client._stayed}
        body = messages.pack_records(records)
        session = self.federation.terms.session
        try:
            answer = client.reveal(messages.write(Kind.CERTIFICATE, session, EVERYBODY, body))
        except SumError as error:
            self.refusals[client.index] = error
            return
        for owner, share in revealed(answer, self.federation.terms.clients).items():
            result = self.shares.setdefault((owner, share[0]), [])
            result.append((client.index + 1, share[1:]))

    def _forged(self, statement: bytes) -> dict[int, bytes]:
        identities = self.federation.identities
        return {index: identities[index].sign(statement) for index in self.colluders}

    def _lists(self, stayed: Collection[int], left: Collection[int]) -> bytes:
        size = messages.SIGNATURE_BYTES
        records = {index: self.federation.sent[index][2][-size:] for index in stayed}
        body = messages.pack_records(records) + messages.pack_indices(left)
        return messages.write(Kind.LISTS, self.federation.terms.session, EVERYBODY, body)

    def unmasked(self, group: Collection[int], masked_with: Mapping[int, Collection[int]]) -> Any:
        """The sum of a group's vectors, as far as the server can take their masks off.

        None where a secret stays closed: a seed of the group, or the key of somebody outside it
        with whom a member masked.
        """
        server, terms = self.federation.server, self.federation.terms
        shape, transcript = (terms.length, terms.bits), server._transcript
        outside = {one for member in group for one in masked_with[member]} - set(group)
        keys = {one: self.mask_keys.get(one) or self._reconstructed(one, kind=1) for one in outside}
        words = np.zeros(terms.length, dtype=f"<u{terms.bits // 8}")
        for member in group:
            sent = self.federation.sent[member][2][HEADER : -messages.SIGNATURE_BYTES]
            seed = self._reconstructed(member, kind=0)
            if seed is None:
                return None
            words += terms.packing.unpack(sent)
            words -= self_mask(seed, transcript, member, shape)
            for partner in set(masked_with[member]) - set(group):
                key = keys[partner]
                if key is None:
                    return None
                private = X25519PrivateKey.from_private_bytes(key)
                public = server._adverts[member].masking
                words -= pair_mask(private, public, transcript, (member, partner), shape)
        return terms.packing.signed(words)

    def _reconstructed(self, owner: int, kind: int) -> bytes | None:
        threshold = self.federation.terms.neighbourhood.threshold
        rows = self.shares.get((owner, kind), [])[:threshold]
        if len(rows) < threshold:
            return None
        points = np.array([[point for point, _ in rows]])
        octets = np.array([[list(share) for _, share in rows]], dtype=np.uint8)
        return combine(points, octets)[0].tobytes()


def shortened(
    federation: Federation, delivery: bytes, client: int, others: Collection[int]
) -> bytes:
    """A delivery that announces, and holds the shares of, some of those who shared."""
    clients = federation.terms.clients
    _, rest = messages.take_indices(delivery[HEADER:], clients)
    boxes = messages.unpack_records(rest, messages.BOX_BYTES, clients)
    body = messages.pack_indices({client, *others})
    body += messages.pack_records({owner: box for owner, box in boxes.items() if owner in others})
    return messages.write(Kind.DELIVERY, federation.terms.session, client, body)


def balanced_lies(
    server: LyingServer, leavers: Collection[int], most: int, enough: int
) -> dict[int, Story]:
    """To every client that some of the leavers have left, so that enough receivers of each hear it.

    Nobody hears that it left itself, or that more than ``most`` clients did.
    """
    clients = server.federation.terms.clients
    count = dict.fromkeys(leavers, 0)
    everybody = frozenset(range(clients))
    stories: dict[int, Story] = {}
    for client in sorted(everybody, key=lambda one: len(server.around(one) & count.keys())):
        heard = sorted(server.around(client) & count.keys(), key=lambda one: count[one])
        left = frozenset([one for one in heard if count[one] < enough][:most])
        for one in left:
            count[one] += 1
        stories[client] = (everybody - left, left)
    return stories
