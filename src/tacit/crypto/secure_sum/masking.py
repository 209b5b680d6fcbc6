"""Keys two clients share, the masks they expand to, and integers modulo a power of two.

Numbers cut into random summands modulo 2**64, and which client has which of them.

Masked numbers as bytes, each in just as many bits as its sum needs.

A vector consists of runs of numbers that have one width w, and their sums are computed modulo
``2**w``. In a message a run is one string of bits: number after number, the least bit first, into
bytes whose least bit is the first. The last byte of a run is filled with zeros.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.crypto.identities import ForgedError, MalformedError

Words = NDArray[Any]
"""Unsigned integers of 32 or 64 bits; arithmetic wraps around."""
Shape = tuple[int, int]
"""The length of a vector and the bits of its words."""

NARROW, WIDE = 32, 64


def modulus_for(clients: int, largest: int) -> int:
    """The least number of bits in which no sum over clients wraps around, from 2 to 64.

    Parameters
    ----------
    clients : how many clients are summed at most.
    largest : the largest magnitude of a number that one client sends. Where the client adds noise,
        this is its largest count plus a tail that the noise exceeds with negligible probability.

    Returns
    -------
    b, so that every sum lies strictly between ``-2**(b-1)`` and ``2**(b-1)``.

    Raises
    ------
    ValueError : when clients or largest is below 1, or when a sum may need more than 64 bits.

    Examples
    --------
    >>> modulus_for(1000, 2_000_000), modulus_for(1000, 3_000_000)
    (32, 33)
    """
    if clients < 1:
        raise ValueError(f"clients must be at least 1, got {clients}")
    if largest < 1:
        raise ValueError(f"largest must be at least 1, got {largest}")
    bits = (clients * largest).bit_length() + 1
    if bits > WIDE:
        raise ValueError(
            "clients * largest must stay below 2**63, "
            f"got {clients} * {largest} = {clients * largest}"
        )
    return bits


def to_words(vector: Integers, bits: int) -> Words:
    """Integers modulo ``2**bits``, two's complement.

    Examples
    --------
    >>> import numpy as np
    >>> to_words(np.array([1, -1]), 32).tolist()
    [1, 4294967295]
    """
    return np.ascontiguousarray(vector).view(np.uint64).astype(word_type(bits))


def word_type(bits: int) -> np.dtype[Any]:
    """The little-endian word in which numbers are added, of 32 or 64 bits."""
    return np.dtype(f"<u{bits // 8}")


def agree(private: X25519PrivateKey, public: bytes) -> bytes:
    """A 32-byte secret that only the owners of these two X25519 keys can compute.

    Raises
    ------
    ForgedError : for a public key of low order, with which anybody could.
    """
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise ForgedError("a public key gives no secret: it has low order") from None


def derive(secret: bytes, salt: bytes, label: bytes, size: int = 32) -> bytes:
    """A key from a secret, by HKDF-SHA256 (RFC 5869); the label says what it is for."""
    return HKDF(SHA256(), size, salt, label).derive(secret)


def expand(key: bytes, length: int, bits: int) -> Words:
    """A mask: the first ``length`` words of the ChaCha20 key stream (RFC 8439), nonce zero.

    A key is expanded once, so the nonce may be fixed.

    Examples
    --------
    >>> expand(bytes(32), 2, 32).tolist()  # RFC 8439, appendix A.1, test vector 1
    [2917185654, 2419978656]
    """
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    dtype = word_type(bits)
    return np.frombuffer(stream.update(bytes(length * dtype.itemsize)), dtype=dtype)


def self_mask(seed: bytes, salt: bytes, owner: int, shape: Shape) -> Words:
    """The mask that a client adds for itself alone, from its seed."""
    return expand(derive(seed, salt, b"tacit self mask" + struct.pack("<I", owner)), *shape)


def pair_mask(
    private: X25519PrivateKey, public: bytes, salt: bytes, pair: tuple[int, int], shape: Shape
) -> Words:
    """What the client ``pair[0]`` adds for its neighbour ``pair[1]``; the two cancel.

    Parameters
    ----------
    private : the mask key of one of the two, public : that of the other; either way round.
    pair : the client who adds the mask, and its neighbour.
    shape : the length of the vector and the bits of its words.
    """
    low, high = sorted(pair)
    label = b"tacit pair mask" + struct.pack("<II", low, high)
    mask = expand(derive(agree(private, public), salt, label), *shape)
    return mask if pair[0] == low else np.negative(mask)


NUMBERS_AT_ONCE = 2**16
"""Number of numbers that are packed at a time, a multiple of 8: the bits of more fill memory."""


@dataclass(frozen=True)
class Run:
    """Successive numbers of a vector that have one width.

    Parameters
    ----------
    length : how many they are.
    bits : the width, from 2 to 64: every sum lies in ``-2**(bits-1)`` to ``2**(bits-1) - 1``.

    Raises
    ------
    ValueError : for no number, or another width.
    """

    length: int
    bits: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a run must have at least 1 number, got {self.length}")
        if not 2 <= self.bits <= WIDE:
            raise ValueError(f"a number must have from 2 to {WIDE} bits, got {self.bits}")

    @property
    def size(self) -> int:
        """The run's bytes."""
        return -(-self.length * self.bits // 8)


@dataclass(frozen=True)
class Packing:
    """How a vector of runs travels.

    Examples
    --------
    >>> packing = Packing((Run(3, 4), Run(1, 9)))
    >>> message = packing.pack(np.array([1, -1, 7, -200]).astype(np.uint32))
    >>> message.hex(" ")
    'f1 07 38 01'
    >>> packing.signed(packing.unpack(message))
    array([   1,   -1,    7, -200])
    """

    runs: tuple[Run, ...]

    @property
    def length(self) -> int:
        """The number of numbers."""
        return sum(run.length for run in self.runs)

    @property
    def size(self) -> int:
        """The vector's bytes."""
        return sum(run.size for run in self.runs)

    @property
    def bits(self) -> int:
        """The bits of a word in which all numbers are added, 32 or 64."""
        return NARROW if max(run.bits for run in self.runs) <= NARROW else WIDE

    @cached_property
    def digested(self) -> bytes:
        """The runs as bytes, for the digest of terms."""
        return b"".join(struct.pack("<IB", run.length, run.bits) for run in self.runs)

    def pack(self, words: Words) -> bytes:
        """The lowest bits of every word."""
        return b"".join(_packed(part, run.bits) for part, run in self._parts(words))

    def unpack(self, message: bytes) -> Words:
        """The words whose other bits are 0.

        Raises
        ------
        MalformedError : for another number of bytes, or bits after a run's end that are not 0.
        """
        if len(message) != self.size:
            raise MalformedError(f"packed numbers must have {self.size} bytes, got {len(message)}")
        words = np.zeros(self.length, dtype=word_type(self.bits))
        start = 0
        for part, run in self._parts(words):
            octets = np.frombuffer(message, np.uint8, run.size, start)
            if int(octets[-1]) >> (run.length * run.bits - 1) % 8 + 1:
                raise MalformedError("bits after the last packed number of a run must be 0")
            _unpack(octets, run.bits, part)
            start += run.size
        return words

    def signed(self, words: Words) -> Integers:
        """The integers of least magnitude that the lowest bits represent."""
        return np.concatenate([_signed(part, run.bits) for part, run in self._parts(words)])

    def _parts(self, words: Words) -> Iterator[tuple[Words, Run]]:
        """The words of every run."""
        ends = np.cumsum([run.length for run in self.runs])
        return zip(np.split(words, ends[:-1]), self.runs, strict=True)


def _packed(words: Words, bits: int) -> bytes:
    starts = range(0, words.size, NUMBERS_AT_ONCE)
    parts = (_bits_of(words[start : start + NUMBERS_AT_ONCE], bits) for start in starts)
    return b"".join(np.packbits(part, bitorder="little").tobytes() for part in parts)


def _bits_of(words: Words, bits: int) -> NDArray[np.uint8]:
    octets = np.ascontiguousarray(words).view(np.uint8).reshape(words.size, -1)
    needed = -(-bits // 8)
    spread = np.unpackbits(octets[:, :needed], axis=-1, count=bits, bitorder="little")
    return spread.ravel()


def _unpack(octets: NDArray[np.uint8], bits: int, words: Words) -> None:
    """Write the numbers of a run into its words."""
    step = NUMBERS_AT_ONCE * bits // 8
    for start in range(0, words.size, NUMBERS_AT_ONCE):
        part = words[start : start + NUMBERS_AT_ONCE]
        first = start * bits // 8
        spread = np.unpackbits(
            octets[first : first + step], count=part.size * bits, bitorder="little"
        )
        packed = np.packbits(spread.reshape(part.size, bits), axis=-1, bitorder="little")
        whole = np.zeros((part.size, words.itemsize), dtype=np.uint8)
        whole[:, : packed.shape[-1]] = packed
        part[:] = whole.view(words.dtype).ravel()


def _signed(words: Words, bits: int) -> Integers:
    above: Any = words.itemsize * 8 - bits
    shifted = (words << words.dtype.type(above)).view(f"i{words.itemsize}")
    return np.asarray(shifted >> shifted.dtype.type(above), dtype=np.int64)


RingWords = NDArray[np.uint64]

SEED_BYTES = 32


def known_summands(rank: int, parties: int) -> tuple[int, ...]:
    """The summands of a shared number that a client has: its own, and of three the next.

    Examples
    --------
    >>> known_summands(0, 2), known_summands(2, 3)
    ((0,), (2, 0))
    """
    return (rank,) if parties == 2 else (rank, (rank + 1) % parties)


def summands_of(values: NDArray[np.int64], parties: int) -> list[RingWords]:
    """RingWords that add up to the values modulo 2**64, all but the last of them uniform.

    Examples
    --------
    >>> parts = summands_of(np.array([5, -1]), 3)
    >>> sum(parts).view(np.int64).tolist()
    [5, -1]
    """
    random = [words_of(os.urandom(SEED_BYTES), values.shape) for _ in range(parties - 1)]
    whole = np.ascontiguousarray(values).view(np.uint64)
    return [*random, whole - sum(random, np.zeros(values.shape, dtype=np.uint64))]


def words_of(seed: bytes, shape: tuple[int, ...]) -> RingWords:
    """Uniform words of a seed."""
    return expand(seed, int(np.prod(shape)), WIDE).reshape(shape)
