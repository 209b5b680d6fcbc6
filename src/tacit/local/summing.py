"""Sums over batches of records or reports: in this process, in several, on Spark and on Ray."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from tacit.arrays import Integers
from tacit.data.engines.adding import cluster_of, total
from tacit.data.errors import DataError
from tacit.extras import extra
from tacit.protocol.devices import DeviceReports, Payloads
from tacit.protocol.steps import Query

WAITING = 4
"""Number of blocks a worker for which results are awaited: all other numbers are not sent yet."""

Progress = Callable[[int], None]
"""It is called with the number of blocks that were added."""


Summing = Callable[[Callable[[int], Integers], int, Progress], Integers]
"""Adds up a function from a block's number to counts, which can be pickled: ``function(0)`` to
``function(blocks - 1)``, at least one; it says how many were added."""


def unheard(blocks: int) -> None:
    """No progress is shown."""


def in_one_process(
    function: Callable[[int], Integers], blocks: int, progress: Progress
) -> Integers:
    """The sum of all blocks, one after another, in this process."""
    return _added(map(function, range(blocks)), progress)


def in_processes(workers: int) -> Summing:
    """A sum by several processes of this machine.

    They are new interpreters: a program that is run as a file calls this below
    ``if __name__ == "__main__"``.

    Parameters
    ----------
    workers : how many, at least 1.
    """

    def summed(function: Callable[[int], Integers], blocks: int, progress: Progress) -> Integers:
        context = multiprocessing.get_context("spawn")
        # Ctrl-C reaches all processes of a terminal: the first one ends the others
        ignored = signal.SIGINT, signal.SIG_IGN
        pool = ProcessPoolExecutor(min(workers, blocks), context, signal.signal, ignored)
        try:
            return _added(_results(pool, function, iter(range(blocks)), workers), progress)
        finally:
            # after an error the blocks that are being drawn end, and no other begins
            pool.shutdown(cancel_futures=True)

    return summed


def _results(
    pool: ProcessPoolExecutor,
    function: Callable[[int], Integers],
    numbers: Iterator[int],
    workers: int,
) -> Iterator[Integers]:
    waiting: list[Future[Integers]] = [
        pool.submit(function, number) for number in islice(numbers, WAITING * workers)
    ]
    while waiting:
        yield waiting.pop(0).result()
        waiting += [pool.submit(function, number) for number in islice(numbers, 1)]


def _added(counts: Iterable[Integers], progress: Progress) -> Integers:
    each = iter(counts)
    total = next(each)
    progress(1)
    for more in each:
        total = total + more
        progress(1)
    return total


def column_counts(
    devices: DeviceReports, query: Query, column: pa.Array | pa.ChunkedArray
) -> Integers:
    """How often each report came in a column.

    Parameters
    ----------
    devices : what the protocol declares.
    query : of the stage.
    column : of payloads.
    """
    payloads = payloads_in(column, devices.payload_bytes(query))
    wrong = int(np.count_nonzero(devices.refused(query, payloads)))
    if wrong:
        raise DataError(
            f"no device sends {wrong} of these reports: leave out what the campaign refuses"
        )
    return devices.counts(query, payloads)


def payloads_in(column: pa.Array | pa.ChunkedArray, size: int) -> Payloads:
    """A column of binary values as payloads, shape (m, size).

    Raises
    ------
    DataError : for a missing value, or one of another length.
    """
    if column.null_count:
        raise DataError(f"{column.null_count} reports have no value")
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    for length in compute.unique(compute.binary_length(whole)).to_pylist():
        if length != size:
            raise DataError(f"a report has {size} bytes, got one of {length}")
    if not len(whole):
        return np.zeros((0, size), dtype=np.uint8)
    fixed = whole.cast(pa.binary(size))
    flat = np.frombuffer(fixed.buffers()[1], dtype=np.uint8).reshape(-1, size)
    return flat[fixed.offset : fixed.offset + len(fixed)]


TASKS_PER_CORE = 4
"""Number of parts for a core: cores that end early take more."""


def in_spark(session: Any) -> Summing:
    """A sum by the workers of a Spark cluster, which must see the files under the same names.

    Parameters
    ----------
    session : a ``pyspark.sql.SparkSession``; its workers have ``tacit`` installed.
    """
    extra("pyspark", "sums on Spark need pyspark", "'tacit[spark]'")

    def summed(function: Callable[[int], Integers], blocks: int, progress: Progress) -> Integers:
        parts = min(blocks, TASKS_PER_CORE * session.sparkContext.defaultParallelism)
        return _of_blocks(session.range(0, blocks, 1, parts), function, blocks, progress)

    return summed


def in_ray(function: Callable[[int], Integers], blocks: int, progress: Progress) -> Integers:
    """The sum by the workers of the Ray cluster to which this program is connected (``ray.init``).

    The workers have ``tacit`` installed, and see the files under the same names.

    Parameters
    ----------
    function, blocks, progress : as ``Summing`` takes them.
    """
    data = extra("ray.data", "sums on Ray need ray", "'tacit[ray]'")
    return _of_blocks(data.range(blocks), function, blocks, progress)


def _of_blocks(
    numbers: Any, function: Callable[[int], Integers], blocks: int, progress: Progress
) -> Integers:
    """The sum of the blocks whose numbers a cluster's data has."""

    def of_column(batch: pa.RecordBatch) -> Integers:
        return _added(map(function, batch[0].to_pylist()), unheard)

    made = total(cluster_of(numbers), ["id"], of_column)
    progress(blocks)
    return made


@dataclass(frozen=True)
class ClusterReports:
    """The reports of one stage in a column of a cluster's data: a stage as estimates take it.

    Parameters
    ----------
    frame : a ``pyspark.sql.DataFrame`` or a ``ray.data.Dataset``.
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
        DataError : for a report that no device sends; it names how many there are in a batch.
        """

        def of_column(batch: pa.RecordBatch) -> Integers:
            return column_counts(devices, query, batch[0])

        made = total(cluster_of(self.frame), [self.column], of_column)
        return made if made.size else column_counts(devices, query, pa.array([], pa.binary()))
