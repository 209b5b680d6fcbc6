"""Counts of unary reports, against unpacking those of each level."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.arrays import Integers
from tacit.counts.tree_budget import FIRST_CELLS
from tacit.protocol.devices import Payloads
from tacit.protocols.histogram.local_rounds import report_bytes, unary_counts_of


def drawn(reports: int, height: int, seed: int) -> Payloads:
    """Payloads with any bytes behind the level; some levels are none that there are."""
    rng = np.random.default_rng(seed)
    size = 1 + int(report_bytes(np.array([height + 1]))[0])
    payloads = rng.integers(0, 256, (reports, size), dtype=np.uint8)
    payloads[:, 0] = rng.integers(0, height + 3, reports)
    return payloads


def unpacked(payloads: Payloads, height: int) -> Integers:
    """The number of reports of each level and how often each of its bits is set."""
    parts = list[Integers]()
    for level in range(FIRST_CELLS, height + FIRST_CELLS):
        bits = np.unpackbits(payloads[payloads[:, 0] == level, 1:], axis=-1)
        parts += [np.array([len(bits)]), bits[:, : 1 << level].sum(axis=0)]
    return np.concatenate(parts)


@pytest.mark.parametrize("height", range(1, 8))
@pytest.mark.parametrize("reports", [0, 1, 7, 30_000])
def test_counts_are_those_of_unpacked_bits(height: int, reports: int) -> None:
    payloads = drawn(reports, height, seed=height)
    counts = unary_counts_of([payloads], range(FIRST_CELLS, height + FIRST_CELLS))
    assert np.array_equal(counts, unpacked(payloads, height))


def test_no_reports_may_have_no_bits() -> None:
    none = np.zeros((0, 1), dtype=np.uint8)
    assert not unary_counts_of([none], range(FIRST_CELLS, 5)).any()


def test_batches_of_any_sizes_are_counted_as_one() -> None:
    """They may be a part of others."""
    payloads = drawn(120_000, 6, seed=1)[::2]
    batches = np.split(payloads, [1, 1, 17, 9_000, 40_001, 59_999])
    counts = unary_counts_of(iter(batches), range(FIRST_CELLS, 6 + FIRST_CELLS))
    assert np.array_equal(counts, unpacked(payloads, 6))
