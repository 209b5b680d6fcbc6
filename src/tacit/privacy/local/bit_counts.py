"""How often each bit is set in many reports of packed bits, without unpacking them.

Carry-save adders count in all bits of a word at once (Harley and Seal; Warren, Hacker's Delight,
section 5-1): three words of one weight become one of that weight and one of twice the weight. Long
rows of words are added, each of which fits into a processor's first cache.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers

Words = NDArray[np.uint64]

WORD_BYTES = 8
ROW_WORDS = 2**11
"""Words of a row: the least time for 2**18 reports, between 2**10 and 2**13."""

FEW = 64
"""So many words of a report's size are unpacked instead of added up."""

AT_ONCE = 128
"""Bits that are summed as bytes, which hold numbers to 255."""

FEW_BYTES = 2
"""So many bytes are counted by their 256 values."""

BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=-1).astype(int)
"""The bits of every byte, shape (256, 8)."""


def bit_counts(packed: NDArray[np.uint8]) -> Integers:
    """How often each bit is set, shape (8 bytes,), in the order of ``np.unpackbits``.

    Parameters
    ----------
    packed : one report a row, shape (n, bytes); bytes is a power of two, and at most 2**14.

    Raises
    ------
    ValueError : for another number of bytes.

    Examples
    --------
    >>> bit_counts(np.array([[0b10000001], [0b10000000]], dtype=np.uint8)).tolist()
    [2, 0, 0, 0, 0, 0, 0, 1]
    """
    size = packed.shape[1]
    if size & (size - 1) or not 0 < size <= ROW_WORDS * WORD_BYTES:
        raise ValueError(f"reports must have a power of two of bytes, got {size}")
    if size <= FEW_BYTES:
        patterns = [np.bincount(column, minlength=256) for column in packed.T]
        return np.asarray(np.stack(patterns) @ BITS_OF_BYTE).ravel()
    return block_bit_counts([packed], size)


def block_bit_counts(blocks: Iterable[NDArray[np.uint8]], size: int) -> Integers:
    """``bit_counts`` of the reports of all blocks together, shape (8 size,).

    A block that is made only when it is counted is still in the processor's cache.

    Parameters
    ----------
    blocks : one report a row, each of shape (n, size); none changes afterwards.
    size : bytes of a report, a power of two, and at most 2**14.

    Examples
    --------
    >>> blocks = (np.array([[byte]], dtype=np.uint8) for byte in (0b10000001, 0b10000000))
    >>> block_bit_counts(blocks, 1).tolist()
    [2, 0, 0, 0, 0, 0, 0, 1]
    """
    row, counters = ROW_WORDS * WORD_BYTES, _Counters()
    rest = np.zeros(8 * size, dtype=np.int64)
    for block in blocks:
        flat = np.ascontiguousarray(block).reshape(-1)
        whole = 0 if flat.size <= FEW * size else flat.size // row * row
        for words in flat[:whole].view(np.uint64).reshape(-1, ROW_WORDS):
            counters.add(words)
        if whole < flat.size:
            rest += _unpacked(flat[whole:], size)
    return rest + counters.counts(size)


class _Counters:
    """How often each bit of rows of words was set, in binary: a row of words for every digit."""

    def __init__(self) -> None:
        # of each weight a sum, and a row that waits for a second one
        self._sums: list[Words] = []
        self._waiting: list[Words | None] = []
        self._unlike, self._both = np.empty(ROW_WORDS, np.uint64), np.empty(ROW_WORDS, np.uint64)

    def add(self, row: Words) -> None:
        """Add a row, which must not change afterwards."""
        weight, carry = 0, row
        while weight < len(self._sums):
            waiting = self._waiting[weight]
            if waiting is None:
                self._waiting[weight] = carry
                return
            self._waiting[weight] = None
            carry = self._full_adder(self._sums[weight], waiting, carry)
            weight += 1
        self._sums.append(carry.copy())
        self._waiting.append(None)

    def _full_adder(self, total: Words, first: Words, second: Words) -> Words:
        """Put the sum of three bits into the first of them; return the carry, their majority."""
        np.bitwise_xor(first, second, out=self._unlike)
        carry = np.bitwise_and(first, second)
        np.bitwise_and(self._unlike, total, out=self._both)
        np.bitwise_or(carry, self._both, out=carry)
        np.bitwise_xor(total, self._unlike, out=total)
        return carry

    def counts(self, size: int) -> Integers:
        """How often each bit of reports of so many bytes was set, shape (8 size,)."""
        self._add_waiting()
        counts = np.zeros(8 * size, dtype=np.int64)
        for weight, row in enumerate(self._sums):
            counts += _unpacked(row.view(np.uint8), size) << weight
        return counts

    def _add_waiting(self) -> None:
        """Add the rows that wait to the sums: it takes less time than unpacking them."""
        carry: Words | None = None
        for weight, waiting in enumerate(self._waiting):
            rows = [row for row in (waiting, carry) if row is not None]
            self._waiting[weight], carry = None, None
            if rows:
                second = rows[1] if len(rows) > 1 else np.zeros_like(rows[0])
                carry = self._full_adder(self._sums[weight], rows[0], second)
        if carry is not None:
            self._sums.append(carry)
            self._waiting.append(None)


def _unpacked(flat: NDArray[np.uint8], size: int) -> Integers:
    """How often each bit of reports of so many bytes is set, shape (8 size,)."""
    bits = np.unpackbits(flat).reshape(-1, 8 * size)
    whole = bits.shape[0] // AT_ONCE * AT_ONCE
    # sums of bytes over long rows are fast
    blocks = bits[:whole].reshape(AT_ONCE, -1).sum(axis=0, dtype=np.uint8)
    rest = bits[whole:].sum(axis=0, dtype=np.int64)
    return np.asarray(blocks.reshape(-1, 8 * size).sum(axis=0, dtype=np.int64) + rest)
