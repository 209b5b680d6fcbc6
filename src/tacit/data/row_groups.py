"""Records in Parquet files, numbered over all files, of which any range can be read separately."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from tacit.data import units
from tacit.data.clients import Clients
from tacit.data.columns import Columns, Records, decoded, readable
from tacit.data.errors import DataError
from tacit.data.tables import Location, Table, unchanging

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
    columns : of scores and labels, with the unit of the scores.
    target : the unit in which scores are read.
    """

    groups: tuple[RowGroup, ...]
    columns: Columns
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

        Parameters
        ----------
        files : Parquet files.
        score, label : the names of the columns; without labels they are all 0.
        unit, target : the unit of the scores, and the one in which they are read.

        Raises
        ------
        DataError : for a file that is no Parquet file, without records, or without the columns.
        """
        groups, start, columns = list[RowGroup](), 0, Columns((score,), label, unit=unit)
        for file in files:
            first = start
            for index, size in enumerate(_group_sizes(file, columns)):
                groups.append(RowGroup(file, index, start, start + size, start - first))
                start += size
        if not start:
            raise DataError("the files have no records")
        return cls(tuple(groups), columns, target)

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
        made, unit = Records.joined(parts), self.columns.unit
        scores = made.scores
        if unit is not None and self.target is not None:
            scores = units.converted(scores, unit, self.target)
        offsets = np.arange(scores.size + 1)
        return Clients(scores, made.labels, offsets, unit=self.target, _checked=True)

    def _batches(self, group: RowGroup, start: int, stop: int) -> Iterator[Records]:
        """The records of a group that are in a range."""
        names, place = self.columns.names, group.start
        with unchanging(group.file), pq.ParquetFile(group.file) as file:
            for batch in file.iter_batches(READ_AT_ONCE, row_groups=[group.index], columns=names):
                low, high = max(start - place, 0), min(stop - place, batch.num_rows)
                if low < high:
                    location = Location(group.file, group.before + place - group.start + low)
                    yield decoded(batch.slice(low, high - low), self.columns, location)
                place += batch.num_rows
                if place >= stop:
                    return


def _group_sizes(file: str, columns: Columns) -> list[int]:
    """The numbers of records of a file's row groups."""
    with unchanging(file), pq.ParquetFile(file) as opened:
        schema = opened.schema_arrow
        readable(Table(file, schema.names, lambda names: iter(()), schema), columns, Location(file))
        metadata = opened.metadata
        return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
