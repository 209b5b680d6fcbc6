"""A client of a secure sum: four steps, each taken once."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tacit.crypto import sum_messages as messages
from tacit.crypto.identities import Identity
from tacit.crypto.masking import Integers, agree, derive, pair_mask, self_mask, to_words
from tacit.crypto.neighbours import arrange, neighbours
from tacit.crypto.secret_sharing import split
from tacit.crypto.secure_sum import SumTerms
from tacit.crypto.sum_errors import ForgedError, RefusedError, RoundError, TooFewError
from tacit.crypto.sum_messages import Advert, Kind

SEED_BYTES = 32
STEPS = ("advertise", "share", "mask", "reveal")
NONCE = bytes(12)
"""A sealing key seals one message, so the nonce may be fixed."""


class SumClient:
    """A client's side of one sum, whose secrets live in this object only and are never reused.

    A step that raises has told nobody anything and may be taken again with another message.

    Parameters
    ----------
    identity : the client's signing key, which is in the roster.
    terms : what the client agreed to, from a source that it trusts.

    Raises
    ------
    UnknownClientError : when the roster does not hold the identity.
    """

    def __init__(self, identity: Identity, terms: SumTerms) -> None:
        self.index = terms.roster.index_of(identity)
        self._identity, self._terms = identity, terms
        self._taken = 0
        self._sealing = X25519PrivateKey.generate()
        self._masking = X25519PrivateKey.generate()
        self._seed = os.urandom(SEED_BYTES)
        self._own = b""
        self._transcript = b""
        self._adverts: dict[int, Advert] = {}
        self._secrets: dict[int, bytes] = {}
        self._held: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return f"SumClient(index={self.index}, steps taken={STEPS[: self._taken]})"

    @property
    def state(self) -> dict[str, Any]:
        """All that the client holds, its secrets too: to be kept where nobody else can read."""
        return {
            "taken": self._taken,
            "sealing": self._sealing.private_bytes_raw(),
            "masking": self._masking.private_bytes_raw(),
            "seed": self._seed,
            "own": self._own,
            "transcript": self._transcript,
            "adverts": {index: advert.to_bytes() for index, advert in self._adverts.items()},
            "secrets": dict(self._secrets),
            "held": dict(self._held),
        }

    @classmethod
    def resumed(cls, identity: Identity, terms: SumTerms, state: Mapping[str, Any]) -> SumClient:
        """The client as it was when it gave its ``state``, for one that was stopped since.

        A state may be taken up once: a client that goes on twice from one state could answer one
        round in two ways.
        """
        client = cls(identity, terms)
        client._taken, client._own = state["taken"], state["own"]
        client._sealing = X25519PrivateKey.from_private_bytes(state["sealing"])
        client._masking = X25519PrivateKey.from_private_bytes(state["masking"])
        client._seed, client._transcript = state["seed"], state["transcript"]
        client._adverts = {k: Advert.from_bytes(own) for k, own in state["adverts"].items()}
        client._secrets, client._held = dict(state["secrets"]), dict(state["held"])
        return client

    def advertise(self) -> bytes:
        """Two fresh public keys and a commitment to the seed, signed. It spends nothing.

        Raises
        ------
        RoundError : when the step is out of turn.
        """
        self._check_turn("advertise")
        keys = (
            self._sealing.public_key().public_bytes_raw()
            + self._masking.public_key().public_bytes_raw()
            + self._terms.commitment(self.index, self._seed)
        )
        self._own = keys + self._identity.sign(self._terms.signed_part(self.index, keys))
        self._taken += 1
        return self._write(Kind.ADVERT, self._own)

    def share(self, adverts: bytes) -> bytes:
        """Shares of the seed and of the mask key, sealed for each neighbour. It spends nothing.

        The server learns who the neighbours are, which it can work out itself.

        Parameters
        ----------
        adverts : the server's message with everybody's keys.

        Raises
        ------
        ForgedError : when a neighbour's keys are not signed by its identity for these terms.
        RefusedError : when this client's own keys are missing or were changed.
        TooFewError : when fewer clients than agreed take part.
        SumError : for any other message, or when the step is out of turn.
        """
        self._check_turn("share")
        body = self._read(Kind.ADVERTS, adverts, messages.EVERYBODY)
        records = messages.unpack_records(body, messages.ADVERT_BYTES, self._terms.clients)
        self._check_adverts(records)
        transcript = self._terms.transcript(body)
        arranged = arrange(np.array(list(records)), transcript)
        around = neighbours(arranged, self.index, self._terms.neighbourhood.degree).tolist()
        found = {index: self._verified(index, records[index]) for index in around}
        secrets = {index: agree(self._sealing, found[index].sealing) for index in around}
        holders = np.array([*around, self.index])
        secret = self._seed + self._masking.private_bytes_raw()
        shares = split(secret, holders + 1, self._terms.neighbourhood.threshold)
        sealed = {
            holder: _box(secrets[holder], transcript, owner=self.index, holder=holder).encrypt(
                NONCE, share.tobytes(), None
            )
            for holder, share in zip(around, shares[:-1], strict=True)
        }
        self._adverts, self._secrets, self._transcript = found, secrets, transcript
        self._held = {self.index: shares[-1].tobytes()}
        self._taken += 1
        return self._write(Kind.SHARES, messages.pack_records(sealed))

    def mask(self, delivery: bytes, vector: Integers) -> bytes:
        """The vector plus its masks, modulo a power of two. It spends nothing.

        The server receives uniformly random words: it can take the masks away from the sum of all
        masked vectors only (Bonawitz et al. 2017, section 4).

        Parameters
        ----------
        delivery : the server's message with the shares that neighbours sealed for this client.
        vector : int64, shape (length,).

        Raises
        ------
        TypeError : for a vector that is not of 64-bit integers.
        ValueError : for a vector of another shape, or with a number beyond the agreed largest.
        ForgedError : when shares were not sealed by the owner of the advertised keys.
        TooFewError : when too few holders of this client's shares remain.
        SumError : for any other message, or when the step is out of turn.
        """
        self._check_turn("mask")
        self._check_vector(vector)
        body = self._read(Kind.DELIVERY, delivery, self.index)
        sealed = messages.unpack_records(body, messages.BOX_BYTES, self._terms.clients)
        opened = {owner: self._opened(owner, box) for owner, box in sealed.items()}
        around = self._terms.neighbourhood
        if len(opened) + 1 < around.threshold:
            raise TooFewError(
                f"a client's shares must have at least {around.threshold} holders, "
                f"got {len(opened) + 1}"
            )
        masked = self._masked(vector, list(opened))
        self._held = self._held | opened
        self._seed, self._secrets = b"", {}
        self._taken += 1
        return self._write(Kind.MASKED, masked)

    def reveal(self, leavers: bytes) -> bytes:
        """Shares of the seeds of those who sent a vector, and of the mask keys of those who left.

        It spends nothing: with enough shares the server takes the masks off the sum. A client
        answers once, with one kind of share of each client, and then forgets all of them.

        Parameters
        ----------
        leavers : the server's message that says who sent a masked vector and who did not.

        Raises
        ------
        RefusedError : when a client is named as both, when a neighbour is named as neither, or when
            this client or one that sent it no shares is wrongly placed.
        TooFewError : when fewer vectors than agreed would be summed.
        SumError : for any other message, or when the step is out of turn.
        """
        self._check_turn("reveal")
        body = self._read(Kind.LEAVERS, leavers, messages.EVERYBODY)
        stayed, left = map(set, messages.unpack_pair(body, self._terms.clients))
        self._check_leavers(stayed, left)
        shares = {owner: _revealed(share, owner in left) for owner, share in self._held.items()}
        self._taken += 1
        self._held = {}
        return self._write(Kind.REVEALED, messages.pack_records(shares))

    def _check_turn(self, step: str) -> None:
        due = STEPS[self._taken : self._taken + 1]
        if due != (step,):
            raise RoundError(
                f"client {self.index} cannot {step} now: "
                + (f"{due[0]} is due" if due else "it is done")
            )

    def _check_adverts(self, records: dict[int, bytes]) -> None:
        fewest = self._terms.neighbourhood.fewest
        if len(records) < fewest:
            raise TooFewError(f"at least {fewest} clients must take part, got {len(records)}")
        if records.get(self.index) != self._own:
            raise RefusedError(f"the keys of client {self.index} are missing or were changed")

    def _check_vector(self, vector: Integers) -> None:
        """Refuse a vector that is not as agreed, without a word about its private numbers."""
        length, largest = self._terms.length, self._terms.largest
        if vector.dtype != np.int64:
            raise TypeError(f"a vector must hold 64-bit integers, got {vector.dtype}")
        if vector.shape != (length,):
            raise ValueError(f"a vector must have the shape ({length},), got {vector.shape}")
        if vector.max() > largest or vector.min() < -largest:
            raise ValueError(f"a number of the vector is beyond the agreed largest, {largest}")

    def _check_leavers(self, stayed: set[int], left: set[int]) -> None:
        fewest, index = self._terms.neighbourhood.fewest, self.index
        if stayed & left:
            raise RefusedError(
                f"client {min(stayed & left)} is said both to have sent a vector and to have left: "
                "shares of its seed and of its key together would betray its vector"
            )
        if index not in stayed:
            raise RefusedError(f"client {index} sent its vector, but is not said to have done so")
        if unnamed := self._held.keys() - stayed - left:
            raise RefusedError(
                f"client {min(unnamed)} is neither said to have sent nor to have left"
            )
        if unheard := (stayed | left) & self._adverts.keys() - self._held.keys():
            raise RefusedError(f"client {min(unheard)} takes part, but its shares never came")
        if len(stayed) < fewest:
            raise TooFewError(f"a sum must be over at least {fewest} clients, got {len(stayed)}")

    def _verified(self, index: int, record: bytes) -> Advert:
        advert = Advert.from_bytes(record)
        signed = self._terms.signed_part(index, advert.keys)
        self._terms.roster.verify(index, signed, advert.signature)
        return advert

    def _opened(self, owner: int, sealed: bytes) -> bytes:
        if owner not in self._adverts:
            raise RefusedError(f"client {owner} is no neighbour of client {self.index}")
        box = _box(self._secrets[owner], self._transcript, owner=owner, holder=self.index)
        try:
            return box.decrypt(NONCE, sealed, None)
        except InvalidTag:
            raise ForgedError(
                f"the shares in the name of client {owner} were not sealed by it in this session"
            ) from None

    def _masked(self, vector: Integers, partners: list[int]) -> bytes:
        shape = (self._terms.length, self._terms.bits)
        words = to_words(vector, self._terms.bits)
        words += self_mask(self._seed, self._transcript, self.index, shape)
        for partner in partners:
            public, pair = self._adverts[partner].masking, (self.index, partner)
            words += pair_mask(self._masking, public, self._transcript, pair, shape)
        return words.tobytes()

    def _read(self, kind: Kind, message: bytes, index: int) -> bytes:
        return messages.read(message, kind, self._terms.session, index)

    def _write(self, kind: Kind, body: bytes) -> bytes:
        return messages.write(kind, self._terms.session, self.index, body)


def _box(secret: bytes, transcript: bytes, owner: int, holder: int) -> ChaCha20Poly1305:
    """What seals one owner's shares for one holder, from the secret of the two."""
    label = b"tacit sealed shares" + struct.pack("<II", owner, holder)
    return ChaCha20Poly1305(derive(secret, transcript, label))


def _revealed(share: bytes, left: bool) -> bytes:
    """The one half of a neighbour's share that may be known, behind a byte that says which."""
    return b"\x01" + share[SEED_BYTES:] if left else b"\x00" + share[:SEED_BYTES]
