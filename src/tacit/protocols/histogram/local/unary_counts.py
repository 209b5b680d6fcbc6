"""How often unary reports set each bit of each level, from their payloads.

The first two bytes of a payload are its level and its first bits. So one histogram of both says how
many reports each level has, and all about levels of at most 8 bits. On longer levels bits are added
up over the reports of a level and of all below it, and those below are taken off again: each level
is selected from what the one above selected, by Arrow, whose filter takes half the time of NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy.local.bit_counts import BITS_OF_BYTE, BitCounter
from tacit.protocol.devices import Booleans, Payloads
from tacit.protocols.histogram.steps import level_start, report_bytes

Words = NDArray[np.uint16]

BYTES = 256
"""Values of a byte."""

FIRST_LONG = 4
"""The first level of more than 8 bits: it has 16."""

BLOCK = 2**16
"""Reports whose first bytes are counted at a time, in a processor's second cache."""


def unary_counts_of(batches: Iterable[Payloads], levels: range) -> Integers:
    """Of each level its number of reports, then its set bits (``level_start``).

    Parameters
    ----------
    batches : a level and its packed bits, each of shape (m, bytes); bits behind those of the level,
        and reports of other levels, are not counted.
    levels : those that there are, from ``FIRST_CELLS`` on.
    """
    first = np.zeros((levels.stop, BYTES), dtype=np.int64)
    longs = _LongCounts(levels.stop)
    for batch in batches:
        if len(batch):
            payloads = np.ascontiguousarray(batch)
            # level times 256, plus the first bits
            heads = _pairs(payloads, 0, ">u2").astype(np.uint16)
            _add_heads(first, heads)
            longs.add(payloads, heads)
    bits = dict(enumerate(first @ BITS_OF_BYTE)) | longs.counts()
    counts = np.zeros(level_start(levels.stop), dtype=np.int64)
    for level in levels:
        start, size = level_start(level), 1 << level
        counts[start] = first[level].sum()
        counts[start + 1 : start + 1 + size] = bits[level][:size]
    return counts


def _add_heads(counts: Integers, heads: NDArray[np.uint16]) -> None:
    """Add how often each first byte came with each level, shape (levels, 256)."""
    for start in range(0, heads.size, BLOCK):
        found = np.bincount(heads[start : start + BLOCK], minlength=counts.size)
        counts += found[: counts.size].reshape(counts.shape)


class _LongCounts:
    """How often the reports of each long level set each of its bits.

    Parameters
    ----------
    stop : the level behind the last one.
    """

    def __init__(self, stop: int) -> None:
        # of each level and of all below it, the first bits, as many as the level has
        self._reaching = {
            level: BitCounter(_width(min(level, stop - 1)))
            for level in range(FIRST_LONG, stop + 1)
            if stop > FIRST_LONG
        }

    def add(self, payloads: Payloads, heads: NDArray[np.uint16]) -> None:
        """Add reports, and the level of each times 256 with its first byte."""
        if not self._reaching:
            return
        # two bytes are set to 0 faster than reports are selected
        pairs = _pairs(payloads, 1, "<u2") * (heads >= FIRST_LONG * BYTES)
        self._reaching[FIRST_LONG].add(pairs.view(np.uint8).reshape(-1, 2))
        below = _selected(payloads, heads >= (FIRST_LONG + 1) * BYTES)
        for level in range(FIRST_LONG + 1, max(self._reaching) + 1):
            if not len(below):
                return
            self._reaching[level].add(_first_bytes(below, self._reaching[level].size))
            below = _selected(below, below[:, 0] > level)

    def counts(self) -> dict[int, Integers]:
        """By level, each of shape (2**level,)."""
        reaching = {level: counter.counts() for level, counter in self._reaching.items()}
        longs = list(reaching)[:-1]
        return {level: reaching[level] - reaching[level + 1][: 1 << level] for level in longs}


def _width(level: int) -> int:
    """The bytes of a level's bits."""
    return int(report_bytes(np.array([level]))[0])


def _pairs(payloads: Payloads, offset: int, kind: str) -> NDArray[Any]:
    """Two bytes of each report as a number, shape (m,)."""
    rows, size = payloads.shape
    pairs: NDArray[Any] = np.ndarray((rows,), kind, payloads, offset=offset, strides=(size,))
    return pairs


def _first_bytes(payloads: Payloads, width: int) -> Payloads:
    """The first bytes of bits of some reports, shape (m, width)."""
    rows, size = payloads.shape
    # they move as one item: several times as fast as byte by byte
    bits: NDArray[Any] = np.ndarray((rows,), f"V{width}", payloads, offset=1, strides=(size,))
    return np.ascontiguousarray(bits).view(np.uint8).reshape(-1, width)


def _selected(payloads: Payloads, chosen: Booleans) -> Payloads:
    """Some of the payloads."""
    rows, size = payloads.shape
    kind, mask = pa.binary(size), pa.py_buffer(np.packbits(chosen, bitorder="little"))
    reports = pa.FixedSizeBinaryArray.from_buffers(kind, rows, [None, pa.py_buffer(payloads)])
    some = reports.filter(pa.BooleanArray.from_buffers(pa.bool_(), rows, [None, mask]))
    flat = np.frombuffer(some.buffers()[1], dtype=np.uint8, count=len(some) * size)
    return flat.reshape(-1, size)
