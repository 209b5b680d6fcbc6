"""Ranges of records in Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.data.errors import DataError
from tacit.data.reading import RecordFiles


def test_any_range_is_that_of_all_records(tmp_path: Path) -> None:
    """Whichever files and row groups it begins and ends in."""
    scores, labels = np.arange(23) / 23, np.arange(23) % 2
    paths = [str(tmp_path / name) for name in ("a.parquet", "b.pq")]
    for path, part in zip(paths, (slice(0, 12), slice(12, 23)), strict=True):
        pq.write_table(pa.table({"p": scores[part], "y": labels[part]}), path, row_group_size=5)
    records = RecordFiles.of(paths, "p", "y")
    assert records.records == 23
    for start in range(23):
        for stop in range(start + 1, 24):
            made = records.read(start, stop)
            assert made.scores.tolist() == scores[start:stop].tolist()
            assert made.labels.tolist() == labels[start:stop].tolist()
            assert made.count == stop - start


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"score": [0.5, None, 0.1], "label": [0, 1, 1]}, "no value in .*0.parquet, row 2"),
        ({"score": [0.5, 0.2, 1.3], "label": [0, 1, 1]}, "from 0 to 1, got 1.3 in .*row 3"),
        ({"points": [0.5], "label": [0]}, "no column 'score'"),
        ({"score": pa.array([], pa.float64()), "label": pa.array([], pa.int8())}, "no records"),
    ],
)
def test_unusable_records_are_named(tmp_path: Path, values: dict[str, Any], message: str) -> None:
    path = tmp_path / "0.parquet"
    pq.write_table(pa.table(values), path, row_group_size=2)
    with pytest.raises(DataError, match=message):
        records = RecordFiles.of([str(path)], unit="probability", target="probability")
        records.read(0, records.records)
