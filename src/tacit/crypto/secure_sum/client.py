"""A client of a secure sum: five steps, each taken once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.arrays import Integers
from tacit.crypto.identities import ForgedError, Identity, RefusedError, RoundError, TooFewError
from tacit.crypto.secure_sum import consistency, graph, messages, secret_sharing
from tacit.crypto.secure_sum.masking import SEED_BYTES, agree, pair_mask, self_mask, to_words
from tacit.crypto.secure_sum.messages import Advert, Kind
from tacit.crypto.secure_sum.terms import SumTerms, check_ended, ended_record

STEPS = ("advertise", "share", "mask", "certify", "reveal")
SETS = ("announced", "stayed", "left")
STATE = (
    *("taken", "has_given_up", "encryption", "masking", "seed", "advert", "transcript", "digest"),
    *("arranged", "adverts", "secrets", "shares", *SETS),
)
"""All that a client must remember between steps; of it sets of clients."""


class SumClient:
    """A client's side of one attempt at a sum, whose secrets live in this object only and are never
    reused.

    A step that raises has sent nothing, and may be taken again with another message.

    Parameters
    ----------
    identity : the client's signing key, which is in the roster.
    terms : what the client agreed to, from a source that it trusts.
    restart : the server's message with statements that the last attempt is over; empty in the
        first attempt.
    last : this client in the last attempt; None where it took no part. Its secrets are erased.

    Raises
    ------
    UnknownClientError : when the roster does not hold the identity.
    RefusedError, TooFewError : when an earlier attempt could still be unmasked.
    """

    def __init__(
        self,
        identity: Identity,
        terms: SumTerms,
        restart: bytes = b"",
        last: SumClient | None = None,
    ) -> None:
        self.index = terms.roster.index_of(identity)
        if terms.attempt:
            self._check_restart(terms, restart, last)
        self._identity, self._terms = identity, terms
        self._taken = 0
        self._has_given_up = False
        self._encryption = X25519PrivateKey.generate().private_bytes_raw()
        self._masking = X25519PrivateKey.generate().private_bytes_raw()
        self._seed = os.urandom(SEED_BYTES)
        self._advert = b""
        self._transcript = b""
        self._arranged: graph.Indices = np.zeros(0, dtype=np.int64)
        self._adverts: dict[int, Advert] = {}
        self._secrets: dict[int, bytes] = {}
        self._shares: dict[int, bytes] = {}
        self._announced: frozenset[int] = frozenset(range(terms.clients))
        self._digest = consistency.NO_DIGEST
        self._stayed: frozenset[int] = frozenset()
        self._left: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"SumClient(index={self.index}, steps taken={STEPS[: self._taken]})"

    @property
    def state(self) -> dict[str, Any]:
        """All state of the client with its secrets: store it where only the client can read it."""
        kept = {name: copy(getattr(self, f"_{name}")) for name in STATE}
        kept["arranged"] = self._arranged.tolist()
        kept["adverts"] = {index: advert.to_bytes() for index, advert in self._adverts.items()}
        return kept | {name: sorted(kept[name]) for name in SETS}

    @classmethod
    def resumed(cls, identity: Identity, terms: SumTerms, state: Mapping[str, Any]) -> SumClient:
        """The client as it was when it gave its ``state``, for one that was stopped since.

        Resume from a state only once: a client that resumes twice from the same state could answer
        a round in two ways, and sign two lists.
        """
        client = cls.__new__(cls)
        client.index = terms.roster.index_of(identity)
        client._identity, client._terms = identity, terms
        for name in STATE:
            kept = state[name]
            setattr(client, f"_{name}", frozenset(kept) if name in SETS else copy(kept))
        client._arranged = np.array(state["arranged"], dtype=np.int64)
        client._adverts = {k: Advert.from_bytes(advert) for k, advert in state["adverts"].items()}
        return client

    def advertise(self) -> bytes:
        """Two fresh public keys and a commitment to the seed, signed. It spends nothing.

        Raises
        ------
        RoundError : when the step is out of order.
        """
        self._check_step("advertise")
        keys = (
            secret_sharing.public_of(self._encryption)
            + secret_sharing.public_of(self._masking)
            + self._terms.commitment(self.index, self._seed)
        )
        self._advert = keys + self._identity.sign(self._terms.signed_part(self.index, keys))
        return self._done(Kind.ADVERT, self._advert)

    def share(self, adverts: bytes) -> bytes:
        """Shares of the seed and of the mask key, encrypted for each neighbour. It spends nothing.

        The server learns who the neighbours are, which it can compute itself.

        Parameters
        ----------
        adverts : the server's message with all clients' keys.

        Raises
        ------
        ForgedError : when a neighbour's keys are not signed by its identity for these terms.
        RefusedError : when this client's keys are missing or were changed.
        TooFewError : when fewer clients than agreed take part.
        SumError : for any other message, or when the step is out of order.
        """
        body = self._begun("share", Kind.ADVERTS, adverts)
        records = messages.unpack_records(body, messages.ADVERT_BYTES, self._terms.clients)
        min_clients = self._terms.neighbourhood.min_clients
        if len(records) < min_clients:
            raise TooFewError(f"at least {min_clients} clients must take part, got {len(records)}")
        if records.get(self.index) != self._advert:
            raise RefusedError(f"the keys of client {self.index} are missing or were changed")
        transcript = self._terms.transcript(body)
        arranged = graph.arrange(np.array(list(records)), transcript)
        around = graph.neighbours(arranged, self.index, self._terms.neighbourhood.degree).tolist()
        verified = {index: self._terms.verified(index, records[index]) for index in around}
        encryption = X25519PrivateKey.from_private_bytes(self._encryption)
        secrets = {index: agree(encryption, verified[index].encryption) for index in around}
        receivers = np.array([*around, self.index])
        secret = self._seed + self._masking
        shares = secret_sharing.split(secret, receivers + 1, self._terms.neighbourhood.threshold)
        encrypted = {
            receiver: secret_sharing.share_cipher(
                secrets[receiver], transcript, owner=self.index, receiver=receiver
            ).encrypt(secret_sharing.NONCE, share.tobytes(), None)
            for receiver, share in zip(around, shares[:-1], strict=True)
        }
        self._adverts, self._secrets, self._transcript = verified, secrets, transcript
        self._arranged = arranged
        self._shares = {self.index: shares[-1].tobytes()}
        return self._done(Kind.SHARES, messages.pack_records(encrypted))

    def mask(self, delivery: bytes, vector: Integers) -> bytes:
        """The vector plus its masks, modulo powers of two, and a signature. It spends nothing.

        The server receives uniformly random words: it can take the masks away from the sum of all
        masked vectors only (Bonawitz et al. 2017, section 4). The signature is of the digest d of
        all keys and of who is announced to have shared.

        Parameters
        ----------
        delivery : the server's message that announces who shared, with the shares that neighbours
            encrypted for this client.
        vector : int64, shape (length,).

        Raises
        ------
        TypeError : for a vector that is not of 64-bit integers.
        ValueError : for a vector of another shape, or with a number beyond the agreed largest.
        ForgedError : when shares were not encrypted by the owner of the advertised keys.
        RefusedError : when the shares are not those of exactly the neighbours among the announced.
        TooFewError : when too few receivers of this client's shares remain.
        SumError : for any other message, or when the step is out of order.
        """
        body = self._begun("mask", Kind.DELIVERY, delivery, self.index)
        self._check_vector(vector)
        announced, rest = messages.take_indices(body, self._terms.clients)
        encrypted = messages.unpack_records(rest, messages.BOX_BYTES, self._terms.clients)
        consistency.check_delivery(
            self._terms.rule, self.index, self._arranged, announced, encrypted
        )
        decrypted = {owner: self._decrypted(owner, box) for owner, box in encrypted.items()}
        threshold = self._terms.neighbourhood.threshold
        if len(decrypted) + 1 < threshold:
            raise TooFewError(
                f"a client's shares must have at least {threshold} receivers, "
                f"got {len(decrypted) + 1}"
            )
        masked = self._masked(vector, list(decrypted))
        terms = self._terms
        digest = consistency.digest_of(terms.digest, terms.attempt, self._transcript, announced)
        signature = self._identity.sign(consistency.announced_statement(digest))
        self._shares = self._shares | decrypted
        self._announced, self._digest = announced, digest
        self._seed = self._encryption = self._masking = b""
        self._secrets = {}
        return self._done(Kind.MASKED, masked + signature)

    def certify(self, lists: bytes) -> bytes:
        """A signature of who sent a vector and who did not, once. It spends nothing.

        Parameters
        ----------
        lists : the server's message that says who sent a masked vector, each with its signature of
            the digest, and who did not.

        Raises
        ------
        RefusedError : when the lists are not those that ``check_lists`` accepts.
        TooFewError : when fewer vectors than agreed would be summed.
        SumError : for any other message, or when the step is out of order.
        """
        body = self._begun("certify", Kind.LISTS, lists)
        clients = self._terms.clients
        signed, rest = messages.take_records(body, messages.SIGNATURE_BYTES, clients)
        left = frozenset(messages.unpack_records(rest, 0, clients))
        statement = consistency.announced_statement(self._digest)
        stayed = frozenset(signed)
        consistency.check_lists(
            self._terms.rule,
            self.index,
            self._arranged,
            self._announced,
            stayed,
            left,
            self._signers(statement, signed),
        )
        self._stayed, self._left = stayed, left
        statement = consistency.lists_statement(self._digest, stayed, left)
        return self._done(Kind.SIGNED, self._identity.sign(statement))

    def reveal(self, certificate: bytes) -> bytes:
        """Shares of the seeds of those who sent a vector, and of the mask keys of those who left.

        It spends nothing: with enough shares the server takes the masks off the sum. A client
        answers once, with one kind of share of each client, and then forgets all of them.

        Parameters
        ----------
        certificate : the server's message with the signatures of the lists.

        Raises
        ------
        RefusedError : when a signer is not listed as having stayed.
        TooFewError : when fewer than tau clients signed the lists that this client signed.
        SumError : for any other message, or when the step is out of order.
        """
        body = self._begun("reveal", Kind.CERTIFICATE, certificate)
        signed = messages.unpack_records(body, messages.SIGNATURE_BYTES, self._terms.clients)
        statement = consistency.lists_statement(self._digest, self._stayed, self._left)
        signers = self._signers(statement, signed)
        consistency.check_certificate(self._terms.rule, self._stayed, signers)
        left = self._left
        shares = {
            owner: secret_sharing.revealed_half(share, owner in left)
            for owner, share in self._shares.items()
        }
        self._shares = {}
        return self._done(Kind.REVEALED, messages.pack_records(shares))

    def give_up(self) -> bytes:
        """A signed statement that this client reveals nothing in this attempt or an earlier one.

        All secrets of the attempt are erased first. The server learns that the client gave up, and
        which digest it had signed.

        Raises
        ------
        RoundError : when the client revealed its shares, or gave up before.
        """
        if self._has_given_up or self._taken == len(STEPS):
            raise RoundError(f"client {self.index} cannot give up an attempt that is over")
        self._erase()
        record = ended_record(self._identity, self._terms, self._digest)
        return messages.write(Kind.ENDED, self._terms.session, self.index, record)

    def _erase(self) -> None:
        self._has_given_up = True
        self._seed = self._encryption = self._masking = b""
        self._adverts, self._secrets, self._shares = {}, {}, {}

    def _check_restart(self, terms: SumTerms, restart: bytes, last: SumClient | None) -> None:
        """Refuse another attempt while the last could be unmasked, and give the last one up."""
        announced, digest = frozenset(range(terms.clients)), consistency.NO_DIGEST
        if last is not None:
            if last._terms.digest != terms.digest:
                raise RefusedError("another attempt must have the terms of the last")
            if last._taken == len(STEPS):
                raise RefusedError(f"client {self.index} revealed its shares in the last attempt")
            if last._terms.attempt == terms.attempt - 1:
                announced, digest = last._announced, last._digest
        check_ended(terms, restart, announced, digest)
        if last is not None:
            last._erase()

    def _check_step(self, step: str) -> None:
        due = () if self._has_given_up else STEPS[self._taken : self._taken + 1]
        if due != (step,):
            raise RoundError(
                f"client {self.index} cannot {step} now: "
                + (f"{due[0]} is due" if due else "it is done")
            )

    def _check_vector(self, vector: Integers) -> None:
        """Refuse a vector that is not as agreed, without a word about its private numbers."""
        length, largest = self._terms.length, self._terms.largest
        if vector.dtype != np.int64:
            raise TypeError(f"a vector must hold 64-bit integers, got {vector.dtype}")
        if vector.shape != (length,):
            raise ValueError(f"a vector must have the shape ({length},), got {vector.shape}")
        if vector.max() > largest or vector.min() < -largest:
            raise ValueError(f"a number of the vector is beyond the agreed largest, {largest}")

    def _signers(self, statement: bytes, signed: Mapping[int, bytes]) -> list[int]:
        """The clients whose signatures of this statement are valid."""
        verified = self._terms.roster.has_signed
        return [
            index for index, signature in signed.items() if verified(index, statement, signature)
        ]

    def _decrypted(self, owner: int, encrypted: bytes) -> bytes:
        cipher = secret_sharing.share_cipher(
            self._secrets[owner], self._transcript, owner=owner, receiver=self.index
        )
        try:
            return cipher.decrypt(secret_sharing.NONCE, encrypted, None)
        except InvalidTag:
            raise ForgedError(
                f"the shares in the name of client {owner} were not encrypted by it in this session"
            ) from None

    def _masked(self, vector: Integers, partners: list[int]) -> bytes:
        shape = self._terms.shape
        words = to_words(vector, shape[1])
        words += self_mask(self._seed, self._transcript, self.index, shape)
        masking = X25519PrivateKey.from_private_bytes(self._masking)
        for partner in partners:
            public, pair = self._adverts[partner].masking, (self.index, partner)
            words += pair_mask(masking, public, self._transcript, pair, shape)
        return self._terms.packing.pack(words)

    def _begun(
        self, step: str, kind: Kind, message: bytes, index: int = messages.EVERYBODY
    ) -> bytes:
        """The body of the message of a step that is due."""
        self._check_step(step)
        return messages.read(message, kind, self._terms.session, index)

    def _done(self, kind: Kind, body: bytes) -> bytes:
        """The message of the step that was due, which is taken with it."""
        self._taken += 1
        return messages.write(kind, self._terms.session, self.index, body)
