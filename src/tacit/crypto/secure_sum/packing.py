"""Masked numbers as bytes, each in just as many bits as its sum needs.

A vector consists of runs of numbers that have one width w, and their sums are computed modulo
``2**w``. In a message a run is one string of bits: number after number, the least bit first, into
bytes whose least bit is the first. The last byte of a run is filled with zeros.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.crypto.errors import MalformedError
from tacit.crypto.secure_sum.masking import NARROW, WIDE, Words, word_type

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
        return b"".join(
            _packed(part, run.bits) for part, run in zip(self._parts(words), self.runs, strict=True)
        )

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
        for part, run in zip(self._parts(words), self.runs, strict=True):
            octets = np.frombuffer(message, np.uint8, run.size, start)
            if int(octets[-1]) >> (run.length * run.bits - 1) % 8 + 1:
                raise MalformedError("bits after the last packed number of a run must be 0")
            _unpack(octets, run.bits, part)
            start += run.size
        return words

    def signed(self, words: Words) -> Integers:
        """The integers of least magnitude that the lowest bits represent."""
        return np.concatenate(
            [
                _signed(part, run.bits)
                for part, run in zip(self._parts(words), self.runs, strict=True)
            ]
        )

    def _parts(self, words: Words) -> list[Words]:
        ends = np.cumsum([run.length for run in self.runs])
        return np.split(words, ends[:-1])


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
