"""Records in Parquet files, numbered over all files, of which any range can be read by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.data.arrays import SCORES
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.scaling.units import RANGES, converted, outside
from tacit.data.tables.columns import Location, column_of, labels_of, numbers_of
from tacit.data.tables.frames import Columns, require_columns, require_types
from tacit.data.tables.opening import unchanging

Columned = tuple[NDArray[np.float64], NDArray[np.int8]]
"""Scores and labels, each of shape (m,)."""

READ_AT_ONCE = 1 << 16
"""Number of records that are decoded at a time."""


@dataclass(frozen=True)
class RowGroup:
    """Consecutive records of a file that are stored together.

    Parameters
    ----------
    file : its path.
    index : the number of the group in the file.
    start, stop : the numbers of its first record, and of the one after its last, over all files.
    before : the records of the file before it.
    """

    file: str
    index: int
    start: int
    stop: int
    before: int


@dataclass(frozen=True)
class RecordFiles:
    """Records that are a client each.

    Parameters
    ----------
    groups : all records, in order.
    score, label : the names of the columns; without labels they are all 0.
    unit, target : the unit of the scores, and the one in which they are read.
    """

    groups: tuple[RowGroup, ...]
    score: str
    label: str | None
    unit: str | None = None
    target: str | None = None

    @classmethod
    def of(
        cls,
        files: Sequence[str],
        score: str = "score",
        label: str | None = "label",
        unit: str | None = None,
        target: str | None = None,
    ) -> RecordFiles:
        """The records of files, numbered in this order.

        Raises
        ------
        DataError : for a file that is no Parquet file, without records, or without the columns.
        """
        groups, start = list[RowGroup](), 0
        for file in files:
            first = start
            for index, size in enumerate(_group_sizes(file, Columns(score, label, None, None))):
                groups.append(RowGroup(file, index, start, start + size, start - first))
                start += size
        if not start:
            raise DataError("the files have no records")
        return cls(tuple(groups), score, label, unit, target)

    @property
    def records(self) -> int:
        """M, the number of records of all files."""
        return self.groups[-1].stop

    def read(self, start: int, stop: int) -> Clients:
        """The records ``start`` to ``stop - 1``, a client each.

        Raises
        ------
        DataError : naming file, row and value, for a record that cannot be used.
        """
        parts = [
            part
            for group in self.groups
            if group.start < stop and start < group.stop
            for part in self._batches(group, start, stop)
        ]
        scores = np.concatenate([scores for scores, _ in parts])
        labels = np.concatenate([labels for _, labels in parts])
        if self.unit is not None and self.target is not None:
            scores = converted(scores, self.unit, self.target)
        return Clients(scores, labels, np.arange(scores.size + 1), unit=self.target, _checked=True)

    def _batches(self, group: RowGroup, start: int, stop: int) -> Iterator[Columned]:
        """Scores and labels of the records of a group that are in a range."""
        names = Columns(self.score, self.label, None, None).names
        place = group.start
        with unchanging(group.file), pq.ParquetFile(group.file) as file:
            for batch in file.iter_batches(READ_AT_ONCE, row_groups=[group.index], columns=names):
                low, high = max(start - place, 0), min(stop - place, batch.num_rows)
                if low < high:
                    before = group.before + place - group.start + low
                    yield self._columns(batch.slice(low, high - low), Location(group.file, before))
                place += batch.num_rows
                if place >= stop:
                    return

    def _columns(self, batch: pa.RecordBatch, location: Location) -> Columned:
        scores = numbers_of(column_of(batch, self.score, location), SCORES, location)
        self._check_unit(scores, location)
        if self.label is None:
            return scores, np.zeros(scores.size, dtype=np.int8)
        labels, _ = labels_of(column_of(batch, self.label, location), location)
        return scores, labels

    def _check_unit(self, scores: NDArray[np.float64], location: Location) -> None:
        if self.unit is None:
            return
        wrong = np.flatnonzero(outside(scores, self.unit))
        if wrong.size:
            low, high = RANGES[self.unit]
            raise DataError(
                f"scores in {self.unit} must be in [{low:g}, {high:g}], got {scores[wrong[0]]} in "
                f"{location.row(int(wrong[0]))}"
            )


def _group_sizes(file: str, columns: Columns) -> list[int]:
    """The numbers of records of a file's row groups."""
    with unchanging(file), pq.ParquetFile(file) as opened:
        require_columns(opened.schema_arrow.names, columns, file)
        require_types(opened.schema_arrow, columns, file)
        metadata = opened.metadata
        return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
