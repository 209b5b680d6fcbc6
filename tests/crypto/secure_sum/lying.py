"""A server of a secure sum that tells each client another story, and opens what it is given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.crypto.identities import SumError
from tacit.crypto.secure_sum import consistency, graph, masking, messages
from tacit.crypto.secure_sum.client import SumClient
from tests.crypto.secure_sum.transporting import HEADER, Federation, Vectors, combined, revealed

LENGTH = 41
Story = tuple[frozenset[int], frozenset[int]]
"""Who is said to have stayed, and who to have left."""


def vectors_of(clients: int) -> Vectors:
    return np.random.default_rng(clients).integers(-1000, 1001, (clients, LENGTH))


@dataclass
class LyingServer:
    """After the round in which clients sent their masked vectors.

    Parameters
    ----------
    federation : the clients, carried so far.
    colluders : clients who tell the server all they know and sign whatever it likes.
    mask_keys : their private mask keys.
    shares : what clients revealed: by owner and kind, the shares by receiver.
    refusals : what clients said instead of answering, by client.
    """

    federation: Federation
    colluders: Collection[int] = ()
    mask_keys: Mapping[int, bytes] = field(default_factory=dict)
    shares: dict[tuple[int, int], dict[int, bytes]] = field(default_factory=dict)
    refusals: dict[int, SumError] = field(default_factory=dict)

    @classmethod
    def started(
        cls,
        clients: int,
        around: graph.Neighbourhood,
        announced: Callable[[Federation], Mapping[int, Collection[int]]] = lambda _: {},
        colluders: Sequence[int] = (),
    ) -> LyingServer:
        """Up to the masked vectors; ``announced`` says whom to announce to some clients instead."""
        vectors = vectors_of(clients)
        federation = Federation(clients, LENGTH, around=around).carry(vectors, rounds=2)
        for client, others in announced(federation).items():
            told = {owner: federation.boxes(client)[owner] for owner in others}
            federation.given[-1][client] = federation.delivery(client, told)
        keys = {index: federation.clients[index]._masking for index in colluders}
        for index in federation.given[-1]:
            federation.sent[index].append(federation.answer(index, vectors[index]))
        return cls(federation, colluders, keys)

    def around(self, client: int) -> set[int]:
        """A client's neighbours."""
        return set(self.federation.server._around[client])

    def tell(self, stories: Mapping[int, Story]) -> None:
        """Tell clients their lists, give each all signatures of the same, keep what they reveal.

        The clients stay as they were, so that another world can be tried.
        """
        self.refusals.clear()
        self.shares.clear()
        clients = {index: copy(self.federation.clients[index]) for index in stories}
        signed: dict[bytes, dict[int, bytes]] = {}
        for index, (stayed, left) in stories.items():
            try:
                answer = clients[index].certify(self.federation.lists(stayed, left))
            except SumError as error:
                self.refusals[index] = error
                continue
            statement = consistency.lists_statement(clients[index]._digest, stayed, left)
            signed.setdefault(statement, self._forged(statement))[index] = answer[HEADER:]
        for index in stories.keys() - self.refusals.keys():
            self._reveal(clients[index], signed)

    def _reveal(self, client: SumClient, signed: Mapping[bytes, dict[int, bytes]]) -> None:
        statement = consistency.lists_statement(client._digest, client._stayed, client._left)
        records = {k: part for k, part in signed[statement].items() if k in client._stayed}
        try:
            answer = client.reveal(self.federation.written(messages.Kind.CERTIFICATE, records))
        except SumError as error:
            self.refusals[client.index] = error
            return
        for owner, share in revealed(answer, self.federation.terms.clients).items():
            self.shares.setdefault((owner, share[0]), {})[client.index] = share[1:]

    def _forged(self, statement: bytes) -> dict[int, bytes]:
        identities = self.federation.identities
        return {index: identities[index].sign(statement) for index in self.colluders}

    def unmasked(
        self, group: Collection[int], masked_with: Mapping[int, Collection[int]] | None = None
    ) -> Any:
        """The sum of a group's vectors, as far as the server can take their masks off.

        None where a secret stays closed: a seed of the group, or the key of somebody outside it
        with whom a member masked: its neighbours, if ``masked_with`` does not name others.
        """
        server, terms = self.federation.server, self.federation.terms
        shape, transcript = terms.shape, server._transcript
        partners = masked_with or {member: self.around(member) for member in group}
        words = np.zeros(terms.length, dtype=f"<u{shape[1] // 8}")
        for member in group:
            seed = self._reconstructed(member, kind=0)
            if seed is None:
                return None
            words += self.federation.masked(member)
            words -= masking.self_mask(seed, transcript, member, shape)
            for partner in set(partners[member]) - set(group):
                key = self.mask_keys.get(partner) or self._reconstructed(partner, kind=1)
                if key is None:
                    return None
                private = X25519PrivateKey.from_private_bytes(key)
                public = server._adverts[member].masking
                words -= masking.pair_mask(private, public, transcript, (member, partner), shape)
        return terms.packing.signed(words)

    def _reconstructed(self, owner: int, kind: int) -> bytes | None:
        threshold = self.federation.terms.neighbourhood.threshold
        shares = list(self.shares.get((owner, kind), {}).items())[:threshold]
        return combined(dict(shares)) if len(shares) == threshold else None


def balanced_lies(server: LyingServer, leavers: Collection[int]) -> dict[int, Story]:
    """To every client that some of the leavers have left, so that enough receivers of each hear it.

    Nobody hears that it left itself, or that more clients did than may.
    """
    terms, count = server.federation.terms, dict.fromkeys(leavers, 0)
    around, everybody = terms.neighbourhood, frozenset(range(terms.clients))
    stories: dict[int, Story] = {}
    for client in sorted(everybody, key=lambda one: len(server.around(one) & count.keys())):
        heard = sorted(server.around(client) & count.keys(), key=lambda one: count[one])
        open_still = [one for one in heard if count[one] < around.threshold]
        left = frozenset(open_still[: terms.clients - around.min_clients])
        for one in left:
            count[one] += 1
        stories[client] = (everybody - left, left)
    return stories
