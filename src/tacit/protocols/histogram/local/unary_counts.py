"""How often unary reports set each bit of each level, from their payloads.

The bits of short levels have places of their own in one word, as the nodes of a heap have. So the
reports of all short levels are counted together, without a selection by level. Those of each longer
level are selected by Arrow, whose filter takes half the time of NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy.local.bit_counts import bit_counts, block_bit_counts
from tacit.protocol.devices import Booleans, Payloads
from tacit.protocols.histogram.steps import FIRST_CELLS, level_start, report_bytes

SHORT_LEVELS = range(FIRST_CELLS, 5)
"""Levels of at most 16 bits: all their bits together are a word."""

BLOCK = 2**14
"""Reports whose words are made at a time, in a processor's second cache."""

WORD_BITS = np.uint8(32)
WORD_BYTES = 4


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
    heap = block_bit_counts(_heap_words(payloads, chosen), WORD_BYTES)
    for level in levels:
        start, size = level_start(level), 1 << level
        reported = chosen == level
        counts[start] = np.count_nonzero(reported)
        if not counts[start]:
            continue
        if level in SHORT_LEVELS:
            # a level below a byte has its first bits
            first = 0 if size < 8 else size
            bits = heap[first : first + size]
        else:
            bits = bit_counts(_bits_of(payloads, reported, level))
        counts[start + 1 : start + 1 + size] = bits
    return counts


def _heap_words(payloads: Payloads, levels: NDArray[np.uint8]) -> Iterator[Payloads]:
    """Each report's bits at its level's place in a word; 0 for a long level: blocks (m, 4).

    A level of n bits, a multiple of 8, has the bits n to 2n-1; one of 4 bits has the first byte.
    Shifts move whole bytes, so bits keep their order in them. A shift by 32 or more gives 0.
    """
    rows, size = payloads.shape
    width = min(size - 1, 2)
    bits: NDArray[Any] = np.ndarray((rows,), f"<u{width}", payloads, offset=1, strides=(size,))
    for start in range(0, rows, BLOCK):
        part = slice(start, start + BLOCK)
        words, cells = bits[part].astype(np.uint32), np.left_shift(np.uint8(1), levels[part])
        # first what is behind the level's bits leaves at the upper end: 32 - n
        words <<= (WORD_BITS - np.maximum(cells, np.uint8(8))).astype(np.uint32)
        # then they go down to their place: 32 - 2n
        words >>= (WORD_BITS - (cells << np.uint8(1))).astype(np.uint32)
        yield words.view(np.uint8).reshape(-1, WORD_BYTES)


def _bits_of(payloads: Payloads, reported: Booleans, level: int) -> Payloads:
    """The bits of some reports, packed, shape (rows, bytes)."""
    rows, size = payloads.shape
    kind, mask = pa.binary(size), pa.py_buffer(np.packbits(reported, bitorder="little"))
    reports = pa.FixedSizeBinaryArray.from_buffers(kind, rows, [None, pa.py_buffer(payloads)])
    chosen = reports.filter(pa.BooleanArray.from_buffers(pa.bool_(), rows, [None, mask]))
    width = int(report_bytes(np.array([level]))[0])
    # a report's bits move as one item: several times as fast as byte by byte
    bits: NDArray[Any] = np.ndarray(
        (len(chosen),), f"V{width}", chosen.buffers()[1], offset=1, strides=(size,)
    )
    return np.ascontiguousarray(bits).view(np.uint8).reshape(-1, width)
