"""The server of a secure sum: it carries keys and shares, adds vectors, takes masks off the sum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.arrays import Integers
from tacit.crypto import identities
from tacit.crypto.secure_sum import consistency, graph, messages, secret_sharing
from tacit.crypto.secure_sum.masking import Words, pair_mask, self_mask, word_type
from tacit.crypto.secure_sum.messages import Advert, Kind
from tacit.crypto.secure_sum.terms import SumTerms

ROUNDS = (Kind.ADVERT, Kind.SHARES, Kind.MASKED, Kind.SIGNED, Kind.REVEALED)


@dataclass(frozen=True, eq=False)
class SumResult:
    """The result of a secure sum.

    Parameters
    ----------
    total : the exact sum, int64, shape (length,).
    clients : whose vectors are in it, ascending.
    """

    total: Integers
    clients: tuple[int, ...]


class SumServer:
    """The server's side of one sum.

    Each of five rounds takes messages by ``receive`` until the caller ends it: four times by
    ``close_round``, which gives the next message for each client, and at last by ``conclude``.
    Clients whose message did not come have left, and cannot come back. A message that is refused
    changes nothing: the caller may go on without it.

    Parameters
    ----------
    terms : what was agreed.
    """

    def __init__(self, terms: SumTerms) -> None:
        self._terms = terms
        self._round = 0
        self._came: set[int] = set()
        self._members: list[int] = []
        self._sharers: list[int] = []
        self._stayed: list[int] = []
        self._adverts: dict[int, Advert] = {}
        self._transcript = b""
        self._arranged: graph.Indices = np.zeros(0, dtype=np.int64)
        self._statement = b""
        self._signed: dict[int, bytes] = {}
        self._around: dict[int, list[int]] = {}
        self._encrypted: dict[int, dict[int, bytes]] = {}
        self._words: Words = np.zeros(terms.length, dtype=word_type(terms.packing.bits))
        self._shares: dict[int, list[tuple[int, bytes]]] = {}

    def receive(self, sender: int, message: bytes) -> None:
        """Take a client's message of the present round.

        Parameters
        ----------
        sender : the client that the message came from, as the caller's connection shows.
        message : what its step returned.

        Raises
        ------
        UnknownClientError : for a sender outside the roster, that has left, or that sends another
            client's message.
        ReplayError : for a second message of the sender in this round.
        ForgedError : for keys that the sender's identity did not sign.
        SumError : for a message of another session or round, cut short, or not as agreed.
        """
        self._terms.roster.check_index(sender)
        kind = self._open_round()
        if kind != Kind.ADVERT and sender not in self._members:
            raise identities.UnknownClientError(f"client {sender} has left this sum")
        body = messages.read(message, kind, self._terms.session, sender)
        if sender in self._came:
            raise identities.ReplayError(f"client {sender} sends {kind.name.lower()} a second time")
        take = {
            Kind.ADVERT: self._take_advert,
            Kind.SHARES: self._take_shares,
            Kind.MASKED: self._take_masked,
            Kind.SIGNED: self._take_signed,
            Kind.REVEALED: self._take_revealed,
        }
        take[kind](sender, body)
        self._came.add(sender)

    def close_round(self) -> dict[int, bytes]:
        """End the round, and give the next message for each client that is still there.

        Raises
        ------
        TooFewError : when fewer clients are there than agreed, or than reconstruct every secret.
            The round stays open.
        RefusedError : when clients left that cut the ring. The round stays open.
        RoundError : when the last round is open, which ``conclude`` ends.
        """
        kind = self._open_round()
        if kind == Kind.REVEALED:
            raise identities.RoundError("the last round is ended by conclude")
        self._check_enough(kind)
        self._members = sorted(self._came)
        self._came = set()
        self._round += 1
        give = {
            Kind.ADVERT: self._give_adverts,
            Kind.SHARES: self._give_deliveries,
            Kind.MASKED: self._give_lists,
            Kind.SIGNED: self._give_certificate,
        }
        return give[kind]()

    @property
    def is_revealing(self) -> bool:
        """Whether clients may have revealed shares; there is no other attempt then."""
        return self._round >= ROUNDS.index(Kind.REVEALED)

    def conclude(self) -> SumResult:
        """The sum of all masked vectors that came, with the masks taken off.

        Raises
        ------
        TooFewError : when too few clients revealed their shares. The round stays open.
        ForgedError : when shares do not fit what their owner advertised.
        RoundError : when the last round is not open.
        """
        if self._open_round() != Kind.REVEALED:
            raise identities.RoundError(f"the sum waits for {self._open_round().name.lower()}")
        seeds, keys = self._secrets(self._stayed), self._secrets(self._left())
        words = self._words - self._self_masks(seeds) - self._pair_masks(keys)
        self._round += 1
        return SumResult(self._terms.packing.signed(words), tuple(self._stayed))

    def _open_round(self) -> Kind:
        if self._round == len(ROUNDS):
            raise identities.RoundError("this sum is concluded")
        return ROUNDS[self._round]

    def _check_enough(self, kind: Kind) -> None:
        """Check that clients will go on with who is there, before any of them has revealed."""
        if kind == Kind.SIGNED:
            consistency.check_certificate(self._terms.rule, set(self._stayed), self._came)
        elif len(self._came) < (min_clients := self._terms.neighbourhood.min_clients):
            name = kind.name.lower()
            raise identities.TooFewError(
                f"the sum cannot go on: message {name} of at least {min_clients} clients must "
                f"come, got {len(self._came)}"
            )
        if kind == Kind.MASKED:
            consistency.check_windows(self._terms.rule, self._arranged, self._came)
        if kind in (Kind.MASKED, Kind.SIGNED):
            self._check_receivers()

    def _check_receivers(self) -> None:
        threshold = self._terms.neighbourhood.threshold
        for owner in self._sharers:
            receivers = len(self._came.intersection(self._around[owner])) + (owner in self._came)
            if receivers < threshold:
                raise identities.TooFewError(
                    f"{threshold} clients that hold shares of client {owner} must be there, "
                    f"got {receivers}"
                )

    def _take_advert(self, sender: int, body: bytes) -> None:
        self._adverts[sender] = self._terms.verified(sender, body)

    def _give_adverts(self) -> dict[int, bytes]:
        records = {member: self._adverts[member].to_bytes() for member in self._members}
        body = messages.pack_records(records)
        self._transcript = self._terms.transcript(body)
        self._arranged = graph.arrange(np.array(self._members), self._transcript)
        degree = self._terms.neighbourhood.degree
        for member in self._members:
            self._around[member] = graph.neighbours(self._arranged, member, degree).tolist()
        return self._to_all(Kind.ADVERTS, body)

    def _take_shares(self, sender: int, body: bytes) -> None:
        records = messages.unpack_records(body, messages.BOX_BYTES, self._terms.clients)
        if list(records) != self._around[sender]:
            raise identities.MalformedError(
                f"client {sender} must send shares for exactly its neighbours"
            )
        self._encrypted[sender] = records

    def _give_deliveries(self) -> dict[int, bytes]:
        self._sharers = self._members
        terms = self._terms
        digest = consistency.digest_of(terms.digest, terms.attempt, self._transcript, self._sharers)
        self._statement = consistency.announced_statement(digest)
        announced = messages.pack_indices(self._sharers)
        deliveries = {}
        for receiver in self._members:
            boxes = {k: self._encrypted[k][receiver] for k in self._near(receiver, self._sharers)}
            body = announced + messages.pack_records(boxes)
            deliveries[receiver] = messages.write(Kind.DELIVERY, terms.session, receiver, body)
        return deliveries

    def _take_masked(self, sender: int, body: bytes) -> None:
        packing = self._terms.packing
        size = packing.size + messages.SIGNATURE_BYTES
        if len(body) != size:
            raise identities.MalformedError(
                f"a masked vector must have {size} bytes, got {len(body)}"
            )
        words = packing.unpack(body[: packing.size])
        self._take_signature(sender, body[packing.size :], "announcement")
        self._words += words

    def _give_lists(self) -> dict[int, bytes]:
        self._stayed, signed = self._members, self._signed
        terms, left = self._terms, self._left()
        digest = consistency.digest_of(terms.digest, terms.attempt, self._transcript, self._sharers)
        self._statement, self._signed = consistency.lists_statement(digest, self._stayed, left), {}
        stayed = messages.pack_records({member: signed[member] for member in self._stayed})
        return self._to_all(Kind.LISTS, stayed + messages.pack_indices(left))

    def _take_signed(self, sender: int, body: bytes) -> None:
        self._take_signature(sender, body, "lists")

    def _take_signature(self, sender: int, signature: bytes, what: str) -> None:
        self._terms.roster.verify(sender, self._statement, signature, what)
        self._signed[sender] = signature

    def _give_certificate(self) -> dict[int, bytes]:
        """The signatures of as many clients as are needed."""
        first = self._members[: self._terms.rule.certificate]
        records = {member: self._signed[member] for member in first}
        return self._to_all(Kind.CERTIFICATE, messages.pack_records(records))

    def _take_revealed(self, sender: int, body: bytes) -> None:
        records = messages.unpack_records(body, messages.SHARE_BYTES, self._terms.clients)
        stayed = set(self._stayed)
        owners = (*self._near(sender, self._sharers), sender)
        expected = {owner: int(owner not in stayed) for owner in owners}
        if {owner: record[0] for owner, record in records.items()} != expected:
            raise identities.MalformedError(
                f"client {sender} must reveal exactly the shares it was asked for"
            )
        for owner, record in records.items():
            self._shares.setdefault(owner, []).append((sender + 1, record[1:]))

    def _near(self, member: int, among: list[int]) -> list[int]:
        """A client's neighbours among some clients."""
        chosen = set(among)
        return [other for other in self._around[member] if other in chosen]

    def _left(self) -> list[int]:
        """Who sent shares, but no masked vector."""
        return sorted(set(self._sharers) - set(self._stayed))

    def _secrets(self, owners: list[int]) -> dict[int, bytes]:
        """Every owner's seed or key, whichever was revealed."""
        if not owners:
            return {}
        threshold = self._terms.neighbourhood.threshold
        for owner in owners:
            if (came := len(self._shares.get(owner, []))) < threshold:
                raise identities.TooFewError(
                    f"{threshold} clients must reveal a share of client {owner}, got {came}"
                )
        shares = [self._shares[owner][:threshold] for owner in owners]
        points = np.array([[point for point, _ in row] for row in shares])
        octets = np.frombuffer(b"".join(share for row in shares for _, share in row), np.uint8)
        secrets = secret_sharing.combine(points, octets.reshape(*points.shape, -1))
        return {owner: secret.tobytes() for owner, secret in zip(owners, secrets, strict=True)}

    def _self_masks(self, seeds: dict[int, bytes]) -> Words:
        """The sum of the masks that those who sent a vector added for themselves."""
        words = np.zeros_like(self._words)
        for owner, seed in seeds.items():
            commitment = self._terms.commitment(owner, seed)
            _check_revealed(owner, "seed", commitment, self._adverts[owner].commitment)
            words += self_mask(seed, self._transcript, owner, self._terms.shape)
        return words

    def _pair_masks(self, keys: dict[int, bytes]) -> Words:
        """The sum of the masks that were added for those who left."""
        words = np.zeros_like(self._words)
        for owner, key in keys.items():
            private = X25519PrivateKey.from_private_bytes(key)
            public = private.public_key().public_bytes_raw()
            _check_revealed(owner, "key", public, self._adverts[owner].masking)
            for partner in self._near(owner, self._stayed):
                public = self._adverts[partner].masking
                pair = (partner, owner)
                words += pair_mask(private, public, self._transcript, pair, self._terms.shape)
        return words

    def _to_all(self, kind: Kind, body: bytes) -> dict[int, bytes]:
        message = messages.write(kind, self._terms.session, messages.EVERYBODY, body)
        return dict.fromkeys(self._members, message)


def _check_revealed(owner: int, what: str, revealed: bytes, advertised: bytes) -> None:
    if revealed != advertised:
        raise identities.ForgedError(
            f"the shares of client {owner} do not give the {what} it advertised: "
            "one of those who revealed them sent a wrong one"
        )
