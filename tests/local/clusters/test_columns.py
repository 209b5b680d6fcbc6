"""Columns of frames: payloads of one length, counts that add up, and the extras' absence."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from tacit.collecting.estimating import stage_query
from tacit.data.errors import DataError
from tacit.local.summing import (
    RayReports,
    counts_row,
    counts_table,
    in_ray,
    in_spark,
    payloads_in,
    rows_total,
)
from tests.collecting.support import terms_of


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(2)], ids=str)
def test_every_kind_of_binary_column_gives_its_payloads(kind: pa.DataType) -> None:
    column = pa.chunked_array([[b"ab", b"cd"], [b"ef"]], kind)
    assert bytes(payloads_in(column, 2)) == b"abcdef"
    assert bytes(payloads_in(pa.array([b"ab", b"cd", b"ef"], kind)[1:], 2)) == b"cdef"
    assert payloads_in(pa.array([], kind), 2).shape == (0, 2)


def test_reports_of_another_length_or_without_a_value_are_named() -> None:
    with pytest.raises(DataError, match="a report has 2 bytes, got one of 3"):
        payloads_in(pa.array([b"ab", b"cde"]), 2)
    with pytest.raises(DataError, match="1 reports have no value"):
        payloads_in(pa.array([b"ab", None]), 2)


def test_reports_that_no_device_sends_are_counted_in_an_error() -> None:
    terms = terms_of()
    query = stage_query(terms, [])
    good, bad = bytes([2, 0b10010000, 0]), bytes([1, 0, 0])
    assert counts_row(terms.reports, query)(pa.array([good, good])).sum() > 0
    with pytest.raises(DataError, match="no device sends 2 of these reports"):
        counts_row(terms.reports, query)(pa.array([bad, good, bad]))


def test_rows_of_counts_add_up() -> None:
    assert rows_total(counts_table([np.array([1, 2]), np.array([3, 4])])).tolist() == [4, 6]


def test_without_the_extras_one_sentence_says_how_to_install_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("ray", "ray.data", "pyspark"):
        monkeypatch.setitem(sys.modules, name, None)
    terms = terms_of()
    with pytest.raises(ImportError, match=r"pip install 'tacit\[ray\]'"):
        in_ray(lambda block: np.zeros(1, dtype=np.int64), 1, lambda blocks: None)
    with pytest.raises(ImportError, match=r"pip install 'tacit\[ray\]'"):
        RayReports(None).counts(terms.reports, stage_query(terms, []))
    with pytest.raises(ImportError, match=r"pip install 'tacit\[spark\]'"):
        in_spark(None)
