"""How parties agree on a secret that the aggregator, which relays every message, never has.

Each party introduces itself with a fresh X25519 key, signed by its Ed25519 identity together with
the terms. The first party draws the session's secret and seals it for every other party; from it
all derive the secret encryption key and, for each run, the seed of the checks. The aggregator
relays encrypted boxes.

The messages of an encrypted evaluation as bytes: header, body, and a checksum against accidents.

All numbers are little-endian. The header holds ``TFHE``, a version, the kind, the session and a
party's index: the sender's, or the receiver's of what the aggregator relays.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b, sha256

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tacit.crypto.homomorphic.engine import HomomorphicError
from tacit.crypto.identities import ForgedError, Identity, Roster, is_signed
from tacit.crypto.secure_sum.masking import agree, derive
from tacit.wire import Header

HEADER = Header(b"TFHE", 1, "B16sI", "a message of an encrypted evaluation", HomomorphicError)
"""Kind, session and index."""
SESSION_BYTES = 16
CHECKSUM_BYTES = 16
EVERYBODY = 2**32 - 1
NO_SESSION = bytes(SESSION_BYTES)


class Kind(IntEnum):
    """What a message is, in the order of the rounds."""

    INTRODUCTION = 1
    KEYS = 2
    COUNTS = 4
    ANSWER = 5


def write(kind: Kind, session: bytes, index: int, parts: Sequence[bytes]) -> bytes:
    """A message of several parts.

    Examples
    --------
    >>> message = write(Kind.COUNTS, bytes(16), 3, [b"one", b"two"])
    >>> read(message, Kind.COUNTS, bytes(16), 3)
    [b'one', b'two']
    """
    body = b"".join(struct.pack("<I", len(part)) + part for part in parts)
    message = HEADER.pack(kind, session, index) + body
    return message + _checksum(message)


def read(message: bytes, kind: Kind, session: bytes, index: int) -> list[bytes]:
    """The parts of a message that must be of this kind, session and party.

    Raises
    ------
    HomomorphicError : for bytes that are not a message of this format, damaged, of another version,
        kind, session or party.
    """
    number, name, named = HEADER.unpack(message)
    if _checksum(message[:-CHECKSUM_BYTES]) != message[-CHECKSUM_BYTES:]:
        raise HomomorphicError("the message is damaged: its checksum does not fit")
    if number != kind:
        raise HomomorphicError(f"expected a message of kind {kind.name}, got kind {number}")
    if name != session:
        raise HomomorphicError(f"message is of session {name.hex()}, not of {session.hex()}")
    if named != index:
        raise HomomorphicError(f"message has the index {named} instead of {index}")
    return _parts(message[HEADER.size : -CHECKSUM_BYTES])


def _parts(body: bytes) -> list[bytes]:
    parts, end = [], 0
    while end < len(body):
        start = end + 4
        end = start + int.from_bytes(body[end:start], "little")
        if start > len(body) or end > len(body):
            raise HomomorphicError("the message is cut short")
        parts.append(body[start:end])
    return parts


def _checksum(message: bytes) -> bytes:
    return blake2b(message, digest_size=CHECKSUM_BYTES).digest()


DOMAIN = b"tacit encrypted evaluation 1 "
PACKED_BYTES = 32 + 32 + 16 + 64
"""Bytes of an introduction's parts."""
FIRST = 0
"""The index of the party that draws the secret."""


@dataclass(frozen=True)
class Introduction:
    """What a party announces to all others.

    Parameters
    ----------
    identity : its public Ed25519 key.
    agreement : its public X25519 key of this session.
    nonce : 16 bytes that make the session a new one.
    signature : of the former and the terms, by the identity.
    """

    identity: bytes
    agreement: bytes
    nonce: bytes
    signature: bytes

    def to_bytes(self) -> bytes:
        """The introduction as it is hashed into the session's name."""
        parts = [self.identity, self.agreement, self.nonce, self.signature]
        return write(Kind.INTRODUCTION, NO_SESSION, 0, parts)

    @classmethod
    def unpacked(cls, packed: bytes) -> Introduction:
        """The introduction in its parts' bytes, one after the other.

        Raises
        ------
        HomomorphicError : for another number of bytes.
        """
        if len(packed) != PACKED_BYTES:
            raise HomomorphicError(f"an introduction has {PACKED_BYTES} bytes, got {len(packed)}")
        return cls(packed[:32], packed[32:64], packed[64:80], packed[80:])

    @property
    def packed(self) -> bytes:
        """Its parts, one after the other."""
        return self.identity + self.agreement + self.nonce + self.signature

    def check(self, terms: bytes) -> None:
        """Check the signature.

        Raises
        ------
        HomomorphicError : when the identity did not sign these keys for these terms.
        """
        signed = _signed(terms, self.agreement, self.nonce)
        if not is_signed(self.identity, signed, self.signature):
            raise HomomorphicError(
                "an introduction is not signed by its identity, or was signed for other terms"
            )


@dataclass(frozen=True, eq=False)
class Member:
    """A party's keys in one session; none leaves the party, and its identity's is not kept.

    Examples
    --------
    >>> ada, bob = Member.new(b"terms"), Member.new(b"terms")
    >>> meeting = Meeting.of([ada.introduction, bob.introduction], b"terms")
    >>> secret = os.urandom(32)
    >>> _, box = ada.boxes(meeting, secret)
    >>> bob.decrypted(meeting, box) == secret
    True
    """

    agreement: X25519PrivateKey = field(repr=False)
    introduction: Introduction

    @classmethod
    def new(cls, terms: bytes, identity: Identity | None = None) -> Member:
        """Fresh keys for one session; without a pinned identity that is fresh too."""
        who = Identity.generate() if identity is None else identity
        key, nonce = X25519PrivateKey.generate(), os.urandom(16)
        public = key.public_key().public_bytes_raw()
        signature = who.sign(_signed(terms, public, nonce))
        return cls(key, Introduction(who.public, public, nonce, signature))

    def boxes(self, meeting: Meeting, secret: bytes) -> list[bytes]:
        """The secret encrypted for every party, by index; the first party needs none.

        A box has the bytes of the secret and 16 more.
        """
        return [
            b""
            if index == FIRST
            else self._cipher(meeting, index, index).encrypt(bytes(12), secret, meeting.session)
            for index in range(len(meeting.introductions))
        ]

    def decrypted(self, meeting: Meeting, box: bytes) -> bytes:
        """The session's secret, of a box that the first party made.

        Raises
        ------
        HomomorphicError : for a box that the first party did not encrypt for this party and
            session.
        """
        cipher = self._cipher(meeting, FIRST, meeting.index_of(self))
        try:
            return cipher.decrypt(bytes(12), box, meeting.session)
        except (InvalidTag, ValueError):
            raise HomomorphicError(
                "the shared secret was not encrypted by the first party for this one"
            ) from None

    def pair_key(self, meeting: Meeting, other: int) -> bytes:
        """The 32 bytes that this party and another one derive alone, for this session.

        Raises
        ------
        HomomorphicError : for a key of the other's that gives no secret.
        """
        low, high = sorted((meeting.index_of(self), other))
        info = DOMAIN + b"pair" + low.to_bytes(4, "little") + high.to_bytes(4, "little")
        return derive(self._common(meeting, other), meeting.session, info)

    def party_key(self, meeting: Meeting, purpose: bytes) -> bytes:
        """32 bytes that this party alone derives, for one purpose of this session.

        Numbers that a party would draw in a session follow from them, so that one whose state was
        restored sends the same again: two numbers under one mask would betray both.
        """
        secret = self.agreement.private_bytes_raw()
        return derive(secret, meeting.session, DOMAIN + b"own " + purpose)

    def _cipher(self, meeting: Meeting, other: int, receiver: int) -> ChaCha20Poly1305:
        """The cipher of one box: its key is used once, so its nonce may be constant."""
        info = DOMAIN + b"box" + receiver.to_bytes(4, "little")
        return ChaCha20Poly1305(derive(self._common(meeting, other), meeting.session, info))

    def _common(self, meeting: Meeting, other: int) -> bytes:
        """What only the owners of both agreement keys can compute."""
        try:
            return agree(self.agreement, meeting.introductions[other].agreement)
        except ForgedError:
            raise HomomorphicError(f"the agreement key of party {other} is not valid") from None


@dataclass(frozen=True)
class Meeting:
    """All parties of a session in the order in which they stand.

    Parameters
    ----------
    introductions : one a party.
    session : a hash of them and of the terms; new where any nonce is.
    """

    introductions: tuple[Introduction, ...]
    session: bytes

    @classmethod
    def of(
        cls,
        introductions: Sequence[Introduction],
        terms: bytes,
        roster: Roster | None = None,
        least: int | None = None,
    ) -> Meeting:
        """The session of parties whose introductions are in order.

        Parameters
        ----------
        introductions : as the aggregator relays them.
        terms : what was agreed.
        roster : the identities agreed beforehand. Without a roster the party believes the relayed
            identities, and does not notice an aggregator that answers for invented parties.
        least : how many of the roster's identities there are at least, in its order; None needs
            all.

        Raises
        ------
        HomomorphicError : for fewer than two parties, one that appears twice, a wrong signature,
            identities other than the roster's, or fewer of them than ``least``.
        """
        if len(introductions) < 2:
            raise HomomorphicError(f"a session has at least 2 parties, got {len(introductions)}")
        identities = tuple(each.identity for each in introductions)
        if len(set(identities)) != len(identities):
            raise HomomorphicError("a party is introduced twice")
        if roster is not None:
            _check_identities(identities, roster, least)
        for each in introductions:
            each.check(terms)
        spoken = b"".join(each.to_bytes() for each in introductions)
        session = sha256(DOMAIN + sha256(terms).digest() + spoken).digest()[:SESSION_BYTES]
        return cls(tuple(introductions), session)

    def index_of(self, member: Member) -> int:
        """A party's index.

        Raises
        ------
        HomomorphicError : when the party was left out, or its introduction was changed.
        """
        try:
            return self.introductions.index(member.introduction)
        except ValueError:
            raise HomomorphicError("this party's introduction is missing") from None


def _check_identities(identities: tuple[bytes, ...], roster: Roster, least: int | None) -> None:
    present = set(identities)
    if identities != tuple(key for key in roster.keys if key in present):
        raise HomomorphicError("the parties introduced are not those of the roster")
    needed = len(roster.keys) if least is None else least
    if len(identities) < needed:
        raise HomomorphicError(
            f"the parties introduced are not those of the roster: at least {needed} of them were "
            f"agreed, got {len(identities)}"
        )


def key_seed(secret: bytes, session: bytes) -> bytes:
    """The 64 bytes that the session's secret encryption key is derived from."""
    return derive(secret, session, DOMAIN + b"encryption key", 64)


def run_seed(secret: bytes, session: bytes, run: int) -> bytes:
    """The 32 bytes that a run's checks are derived from."""
    return derive(secret, session, DOMAIN + b"checks of run %d" % run)


def _signed(terms: bytes, agreement: bytes, nonce: bytes) -> bytes:
    return DOMAIN + sha256(terms).digest() + agreement + nonce
