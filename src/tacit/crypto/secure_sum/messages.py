"""The messages of a secure sum as bytes: a versioned header, then records of fixed size.

All numbers are little-endian. The header holds ``TSUM``, a version, the kind, the session and a
client's index: the sender's, or the receiver's of a server's message, or ``EVERYBODY``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tacit.crypto.identities import MalformedError, RoundError, SessionError, UnknownClientError
from tacit.wire import Header

EVERYBODY = 2**32 - 1
HEADER = Header(b"TSUM", 3, "B16sI", "a message of a secure sum", MalformedError)
"""Kind, session and index."""

ADVERT_BYTES = 32 + 32 + 32 + 64
BOX_BYTES = 64 + 16
SIGNATURE_BYTES = 64
DIGEST_BYTES = 32
SHARE_BYTES = 1 + 32
ENDED_BYTES = 1 + DIGEST_BYTES + SIGNATURE_BYTES


class Kind(IntEnum):
    """What a message is, in the order of the rounds."""

    ADVERT = 1
    ADVERTS = 2
    SHARES = 3
    DELIVERY = 4
    MASKED = 5
    LISTS = 6
    SIGNED = 7
    CERTIFICATE = 8
    REVEALED = 9
    ENDED = 10
    RESTART = 11


def write(kind: Kind, session: bytes, index: int, body: bytes) -> bytes:
    """A message.

    Examples
    --------
    >>> read(write(Kind.MASKED, bytes(16), 3, b"body"), Kind.MASKED, bytes(16), 3)
    b'body'
    """
    return HEADER.pack(kind, session, index) + body


def read(message: bytes, kind: Kind, session: bytes, index: int) -> bytes:
    """The body of a message that must be of this kind and session, and from or for this client.

    Raises
    ------
    MalformedError : for bytes that are not a message of this format, of another version, or cut
        short.
    RoundError : for a message of another round.
    SessionError : for a message of another session.
    UnknownClientError : for a message of or for another client.
    """
    number, name, named = HEADER.unpack(message)
    if number not in Kind.__members__.values():
        raise MalformedError(f"unknown kind of message {number}")
    if name != session:
        raise SessionError(f"message is of session {name.hex()}, not of {session.hex()}")
    if number != kind:
        raise RoundError(f"expected {kind.name.lower()}, got {Kind(number).name.lower()}")
    if named != index:
        raise UnknownClientError(f"message has the index {named} instead of {index}")
    return message[HEADER.size :]


@dataclass(frozen=True)
class Advert:
    """What a client advertises.

    Parameters
    ----------
    encryption : the public key with which shares are encrypted for the client.
    masking : the public key of its pair masks; its secret half is shared.
    commitment : a hash of its seed.
    signature : its identity's signature of the former, with index and terms.
    """

    encryption: bytes
    masking: bytes
    commitment: bytes
    signature: bytes

    @classmethod
    def from_bytes(cls, raw: bytes) -> Advert:
        """The four fields of a record.

        Raises
        ------
        MalformedError : for any other number of bytes.
        """
        if len(raw) != ADVERT_BYTES:
            raise MalformedError(f"an advert has {ADVERT_BYTES} bytes, got {len(raw)}")
        return cls(raw[:32], raw[32:64], raw[64:96], raw[96:])

    def to_bytes(self) -> bytes:
        """The record."""
        return self.keys + self.signature

    @property
    def keys(self) -> bytes:
        """The part that is signed."""
        return self.encryption + self.masking + self.commitment


def pack_records(records: Mapping[int, bytes]) -> bytes:
    """Records of one size by client, in ascending order of the clients.

    Examples
    --------
    >>> unpack_records(pack_records({7: b"b", 2: b"a"}), size=1, clients=8)
    {2: b'a', 7: b'b'}
    """
    parts = [struct.pack("<I", len(records))]
    parts += [struct.pack("<I", index) + records[index] for index in sorted(records)]
    return b"".join(parts)


def unpack_records(body: bytes, size: int, clients: int) -> dict[int, bytes]:
    """Records by client.

    Raises
    ------
    MalformedError : when the body is cut short or too long, or clients do not ascend.
    UnknownClientError : for a client that is not below ``clients``.
    """
    records, rest = take_records(body, size, clients)
    if rest:
        raise MalformedError(f"records must take {len(body) - len(rest)} bytes, got {len(body)}")
    return records


def take_records(body: bytes, size: int, clients: int) -> tuple[dict[int, bytes], bytes]:
    """The first records of a body, and the rest; errors as in ``unpack_records``.

    Examples
    --------
    >>> take_records(pack_records({2: b"a"}) + b"rest", size=1, clients=4)
    ({2: b'a'}, b'rest')
    """
    width = 4 + size
    end = 4 + width * int.from_bytes(body[:4], "little")
    if len(body) < end:
        raise MalformedError(f"records must take {end} bytes, got {len(body)}")
    packed = body[4:end]
    rows = np.frombuffer(packed, dtype=np.dtype([("index", "<u4"), ("rest", "u1", (size,))]))
    ascending = rows["index"].astype(np.int64)
    if np.any(np.diff(ascending) <= 0):
        raise MalformedError("clients must ascend")
    if ascending.size and ascending[-1] >= clients:
        raise UnknownClientError(f"a client's index must be below {clients}, got {ascending[-1]}")
    records = {
        index: packed[row * width + 4 : (row + 1) * width]
        for row, index in enumerate(ascending.tolist())
    }
    return records, body[end:]


def pack_indices(indices: Iterable[int]) -> bytes:
    """Clients in ascending order."""
    return pack_records(dict.fromkeys(indices, b""))


def take_indices(body: bytes, clients: int) -> tuple[frozenset[int], bytes]:
    """The first list of clients in a body, and the rest.

    Examples
    --------
    >>> take_indices(pack_indices([3, 1]) + b"rest", clients=4)
    (frozenset({1, 3}), b'rest')
    """
    records, rest = take_records(body, 0, clients)
    return frozenset(records), rest
