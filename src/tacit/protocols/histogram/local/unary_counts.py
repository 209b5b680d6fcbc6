"""How often unary reports set each bit of each level, from their payloads.

The bits of short levels have places of their own in one word, as the nodes of a heap have. So the
reports of all short levels are counted together, without a selection by level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy.local.bit_counts import bit_counts
from tacit.protocol.devices import Payloads
from tacit.protocols.histogram.steps import FIRST_CELLS, level_start, report_bytes

SHORT_LEVELS = range(FIRST_CELLS, 6)
"""Levels of at most 32 bits: all their bits together are a word."""

BLOCK = 2**14
"""Reports whose words are made at a time, in a processor's second cache."""

WORD_BITS = np.uint8(64)


def unary_counts_of(payloads: Payloads, levels: range) -> Integers:
    """Of each level its number of reports, then its set bits (``level_start``).

    Parameters
    ----------
    payloads : a level and its packed bits, shape (m, bytes); bits behind those of the level, and
        reports of other levels, are not counted.
    levels : those that there are, from ``FIRST_CELLS`` on.
    """
    counts = np.zeros(level_start(levels.stop), dtype=np.int64)
    if not len(payloads):
        return counts
    payloads = np.ascontiguousarray(payloads)
    chosen = np.ascontiguousarray(payloads[:, 0])
    heap = bit_counts(_heap_words(payloads, chosen).view(np.uint8).reshape(-1, 8))
    for level in levels:
        start, size = level_start(level), 1 << level
        if level in SHORT_LEVELS:
            counts[start] = np.count_nonzero(chosen == level)
            # a level below a byte has its first bits
            first = 0 if size < 8 else size
            bits = heap[first : first + size]
        else:
            rows = np.flatnonzero(chosen == level)
            counts[start] = rows.size
            bits = bit_counts(_bits_of(payloads, rows, level))
        counts[start + 1 : start + 1 + size] = bits
    return counts


def _heap_words(payloads: Payloads, levels: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Each report's bits at its level's place in a word, shape (m,); 0 for a long level.

    A level of n bits, a multiple of 8, has the bits n to 2n-1; one of 4 bits has the first byte.
    Shifts move whole bytes, so bits keep their order in them. A shift by 64 or more gives 0.
    """
    rows, size = payloads.shape
    width = min(size - 1, 4)
    bits: NDArray[Any] = np.ndarray((rows,), f"<u{width}", payloads, offset=1, strides=(size,))
    words = np.empty(rows, dtype=np.uint64)
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        word, cells = words[part], np.left_shift(np.uint8(1), levels[part])
        word[...] = bits[part]
        # first what is behind the level's bits leaves at the upper end: 64 - n
        word <<= (WORD_BITS - np.maximum(cells, np.uint8(8))).astype(np.uint64)
        # then they go down to their place: 64 - 2n
        word >>= (WORD_BITS - (cells << np.uint8(1))).astype(np.uint64)
    return words


def _bits_of(payloads: Payloads, rows: Integers, level: int) -> Payloads:
    """The bits of some reports, packed, shape (rows, bytes)."""
    width = int(report_bytes(np.array([level]))[0])
    record = np.dtype(
        {"names": ["bits"], "formats": [f"V{width}"], "offsets": [1], "itemsize": payloads.shape[1]}
    )
    # a report's bits move as one item: several times as fast as a selection of bytes
    bits = payloads.view(record)["bits"][:, 0][rows]
    return bits.view(np.uint8).reshape(-1, width)
