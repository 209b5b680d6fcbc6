"""Columns of payloads and of counts, as frames of clusters have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from tacit.arrays import Integers
from tacit.data.errors import DataError
from tacit.protocol.conversation import Query
from tacit.protocol.devices import DeviceReports, Payloads

COUNTS = "counts"
"""The column of counts."""


def counts_row(devices: DeviceReports, query: Query) -> Callable[[pa.Array], Integers]:
    """What counts the reports of a column: batch to vector.

    Parameters
    ----------
    devices : what the protocol declares.
    query : of the stage.
    """
    size = devices.payload_bytes(query)

    def counted(column: pa.Array | pa.ChunkedArray) -> Integers:
        payloads = payloads_in(column, size)
        wrong = int(np.count_nonzero(devices.refused(query, payloads)))
        if wrong:
            raise DataError(
                f"no device sends {wrong} of these reports: leave out what the campaign refuses"
            )
        return devices.counts(query, payloads)

    return counted


def payloads_in(column: pa.Array | pa.ChunkedArray, size: int) -> Payloads:
    """A column of binary values as payloads, shape (m, size).

    Raises
    ------
    DataError : for a missing value, or one of another length.
    """
    if column.null_count:
        raise DataError(f"{column.null_count} reports have no value")
    if pa.types.is_fixed_size_binary(column.type):
        column = column.cast(pa.binary())
    values = column.cast(pa.large_binary())
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    ends = np.frombuffer(whole.buffers()[1], dtype=np.int64) if len(whole) else np.zeros(1, int)
    ends = ends[whole.offset : whole.offset + len(whole) + 1]
    other = np.flatnonzero(np.diff(ends) != size)
    if other.size:
        got = int(np.diff(ends)[other[0]])
        raise DataError(f"a report has {size} bytes, got one of {got}")
    if not len(whole):
        return np.zeros((0, size), dtype=np.uint8)
    flat = np.frombuffer(whole.buffers()[2], dtype=np.uint8)
    return flat[ends[0] : ends[-1]].reshape(-1, size)


def counts_table(counts: Sequence[Integers]) -> pa.Table:
    """A table with a row of counts for each."""
    column = pa.array([each.tolist() for each in counts], pa.list_(pa.int64()))
    return pa.table({COUNTS: column})


def rows_total(table: pa.Table) -> Integers:
    """The sum of a table's rows, shape (numbers,)."""
    rows = table.column(COUNTS)
    flat = rows.combine_chunks().flatten().to_numpy()
    return np.asarray(flat.reshape(len(rows), -1).sum(axis=0, dtype=np.int64))
