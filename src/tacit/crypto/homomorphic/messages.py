"""The messages of an encrypted evaluation as bytes: header, body, and a checksum against accidents.

All numbers are little-endian. The header holds ``TFHE``, a version, the kind, the session and a
party's index: the sender's, or the receiver's of what the aggregator relays.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b

from tacit.crypto.homomorphic.engine import HomomorphicError
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
    BOX = 3
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
    if len(message) < HEADER.size + CHECKSUM_BYTES:
        raise HomomorphicError(
            f"a message has at least {HEADER.size + CHECKSUM_BYTES} bytes, got {len(message)}"
        )
    number, name, named = HEADER.unpack(message)
    if _checksum(message[:-CHECKSUM_BYTES]) != message[-CHECKSUM_BYTES:]:
        raise HomomorphicError("the message is damaged: its checksum does not fit")
    if number != kind:
        raise HomomorphicError(f"expected a message of kind {kind.name}, got kind {number}")
    if name != session:
        raise HomomorphicError(f"message is of session {name.hex()}, not of {session.hex()}")
    if named != index:
        raise HomomorphicError(f"message bears the index {named} instead of {index}")
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
