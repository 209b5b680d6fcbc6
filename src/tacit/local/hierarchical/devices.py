"""Devices of one record that answer one question about their score's cell, by one bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.local.hierarchical import estimate
from tacit.privacy.local.response import walsh_hadamard
from tacit.privacy.mechanisms.response import Bits, flip_probability
from tacit.protocol import devices
from tacit.protocol.conversation import Query


class HadamardDevices(devices.NumberReports):
    """One number a device: level, row, label and bit.

    Parameters
    ----------
    protocol : a ``HierarchicalAUC`` of one level.
    """

    number_bytes = 4

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.steps = (protocol.steps[-1],)

    def instructions(self, query: Query) -> devices.Instructions:
        """The height, and how many of ``2**64`` words flip the bit."""
        return {
            "kind": "hadamard",
            "scale": devices.scale_entry(self._protocol.scale),
            "height": int(query.broadcast["height"]),
            "set_words": str(Bits(flip_probability(self._protocol.epsilon)).threshold),
        }

    def numbers(self, query: Query) -> int:
        """Of every level, row, label and bit."""
        return 1 << (int(query.broadcast["height"]) + 3)

    def refused(self, query: Query, payloads: devices.Payloads) -> devices.Booleans:
        """Numbers outside the levels, and those about row 0, which nobody is asked."""
        reports = devices.from_bytes(payloads).astype(np.int64)
        nodes = reports >> 2
        outside = (reports < 8) | (reports >= self.numbers(query))
        # a power of two is row 0 of its level
        return np.asarray(outside | (nodes & (nodes - 1) == 0))

    def influences(self, query: Query, counts: Sequence[Integers]) -> tuple[float, float]:
        """By the area's influences of a level's counts, in the rows that are asked.

        A report of a class with m of its n records on a level of d nodes adds ``(n / m) gain
        (d - 1) / d H[j]`` or less that to the level's counts (``LevelCounts.of``); its influence on
        the area is that times row j of the transformed influences of these counts.
        """
        height = int(query.broadcast["height"])
        table = estimate.table_of(devices.CountedReports(counts[0]), height)
        noise = self._protocol.report_noise(height)
        levels = estimate.LevelCounts.of(table, noise)
        area = estimate.consistent_area(levels, estimate.consistent_counts(levels))
        largest = 0.0
        for level, influences in enumerate(area.influences):
            size = influences.shape[-1]
            rows = np.abs(walsh_hadamard(influences)[..., 1:]).max(axis=-1)
            factors = levels.classes / np.maximum(levels.reports[:, level], 1.0)
            change = rows * factors * noise.gain * (size - 1) / size
            largest = max(largest, float(change.max()))
        reports = self.reported(query, counts[0])
        return -largest * reports, largest * reports
