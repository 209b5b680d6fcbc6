"""Sums over batches on Spark, by its own frames (``mapInArrow``); the extra ``spark``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.arrays import Integers
from tacit.extras import extra
from tacit.local.clusters import summing
from tacit.protocol.conversation import Query
from tacit.protocol.devices import DeviceReports

SCHEMA = f"{summing.COUNTS} array<bigint>"

TASKS_PER_CORE = 4
"""Number of parts for a core: cores that end early take more."""


def in_spark(session: Any) -> summing.Summing:
    """A sum by the workers of a Spark cluster, which must see the files under the same names.

    Parameters
    ----------
    session : a ``pyspark.sql.SparkSession``; its workers have ``tacit`` installed.
    """
    _require_spark()

    def summed(
        function: Callable[[int], Integers], blocks: int, progress: summing.Progress
    ) -> Integers:
        parts = min(blocks, TASKS_PER_CORE * session.sparkContext.defaultParallelism)
        numbers = session.range(0, blocks, 1, parts)
        total = _total(numbers.mapInArrow(_of_numbers(function), SCHEMA))
        progress(blocks)
        return total

    return summed


@dataclass(frozen=True)
class SparkReports:
    """The reports of one stage in a column of a Spark frame: a stage as estimates take it.

    Parameters
    ----------
    frame : a ``pyspark.sql.DataFrame``.
    column : of payloads, binary values of one length.
    """

    frame: Any
    column: str = "payload"

    def __len__(self) -> int:
        """How many there are."""
        return int(self.frame.count())

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """How often each report came, counted by the workers.

        Raises
        ------
        DataError : for a report that no device sends; it names how many there are.
        """
        _require_spark()
        counted = summing.counts_row(devices, query)
        empty = counted(pa.array([], pa.binary()))
        frame = self.frame.select(self.column).mapInArrow(_of_payloads(counted), SCHEMA)
        return summing.rows_total(summing.counts_table([empty, *_rows(frame)]))


def _of_numbers(function: Callable[[int], Integers]) -> Callable[..., Iterator[pa.RecordBatch]]:
    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from summing.counts_table([function(number)]).to_batches()

    return summed


def _of_payloads(
    counted: Callable[[pa.Array], Integers],
) -> Callable[..., Iterator[pa.RecordBatch]]:
    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from summing.counts_table([counted(batch.column(0))]).to_batches()

    return summed


def _total(frame: Any) -> Integers:
    return summing.rows_total(summing.counts_table(_rows(frame)))


def _rows(frame: Any) -> list[Integers]:
    """The counts of a frame's rows."""
    return [np.array(row[0], dtype=np.int64) for row in frame.toLocalIterator()]


def _require_spark() -> None:
    extra("pyspark", "sums on Spark need pyspark", "'tacit[spark]'")
