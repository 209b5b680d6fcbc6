"""Sums over batches on Ray, by its own datasets (``map_batches``); the extra ``ray``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.arrays import Integers
from tacit.extras import extra
from tacit.local.clusters.summing import Progress, counts_row, counts_table, rows_total
from tacit.protocol.conversation import Query
from tacit.protocol.devices import BATCH_REPORTS, DeviceReports


def in_ray(function: Callable[[int], Integers], blocks: int, progress: Progress) -> Integers:
    """The sum by the workers of the Ray cluster to which this program is connected (``ray.init``).

    The workers have ``tacit`` installed, and see the files under the same names.

    Parameters
    ----------
    function, blocks, progress : as ``Summing`` takes them.
    """
    numbers = (
        _ray_data()
        .range(blocks)
        .map_batches(_of_numbers(function), batch_size=1, batch_format="pyarrow")
    )
    total = _total(numbers)
    progress(blocks)
    return total


@dataclass(frozen=True)
class RayReports:
    """The reports of one stage in a column of a Ray dataset: a stage as estimates take it.

    Parameters
    ----------
    dataset : a ``ray.data.Dataset``.
    column : of payloads, binary values of one length.
    """

    dataset: Any
    column: str = "payload"

    def __len__(self) -> int:
        """How many there are."""
        return int(self.dataset.count())

    def counts(self, devices: DeviceReports, query: Query) -> Integers:
        """How often each report came, counted by the workers.

        Raises
        ------
        DataError : for a report that no device sends; it names how many there are.
        """
        _ray_data()
        counted = counts_row(devices, query)
        column = self.column

        def summed(table: pa.Table) -> pa.Table:
            return counts_table([counted(table.column(column))])

        return counted(pa.array([], pa.binary())) + _total(
            self.dataset.map_batches(summed, batch_size=BATCH_REPORTS, batch_format="pyarrow")
        )


def _of_numbers(function: Callable[[int], Integers]) -> Callable[[pa.Table], pa.Table]:
    def summed(table: pa.Table) -> pa.Table:
        return counts_table([function(number) for number in table.column(0).to_pylist()])

    return summed


def _total(dataset: Any) -> Integers:
    total: Integers = np.zeros((), dtype=np.int64)
    for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
        total = total + rows_total(table)
    return total


def _ray_data() -> Any:
    return extra("ray.data", "sums on Ray need ray", "'tacit[ray]'")
