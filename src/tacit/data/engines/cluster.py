"""Records of a Spark frame or a Ray dataset: counted by the cluster's workers, where they are.

A worker decodes its batches as batches of files are decoded, makes clients of them, and computes
whole numbers of these by the code that computes them in memory. The cluster adds them up, and the
driver receives the sums: no record reaches it.

Every pass over the records also sums a digest of scores and labels, so that a frame that is
computed again with other records is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arrays import Integers
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.columns import Columns, Records, decoded, readable
from tacit.data.engines import adding
from tacit.data.engines.stored import Numbers, Stored, batch_of
from tacit.data.errors import DataError
from tacit.data.persons import counted, spread_persons, warn_of_spread
from tacit.data.reading import clients_of_records
from tacit.data.tables import Location, Table

SUMMARY: adding.Tally = {
    "client": (pa.string(), "key"),
    "records": (pa.int64(), "sum"),
    "positives": (pa.int64(), "sum"),
    "digest": (pa.int64(), "sum"),
    "is_number": (pa.int64(), "min"),
    "wrong": (pa.int64(), "sum"),
    "low": (pa.float64(), "min"),
    "high": (pa.float64(), "max"),
}
"""What is known of every client. Of wrong records the client is the sentence that says so."""

PART_ROWS = 1 << 18
"""About how many records are at hand at once where those of a person are drawn."""

ONE = ("",)
"""The names where no column names clients."""


FILL_OR_FILTER = "fill it in, or filter such records out"
"""What to do about a record without a value."""


class _Somewhere(Location):
    """Where a record of a cluster is: rows have no numbers there."""

    def row(self, index: int) -> str:
        return f"a record of {self.source}"


@dataclass(frozen=True)
class BatchReader:
    """What workers make of batches of records.

    Parameters
    ----------
    source : what errors call the records.
    columns : what is read of them.
    """

    source: str
    columns: Columns

    def clients(self, batch: pa.RecordBatch) -> tuple[Clients, bool]:
        """The clients of some records in order of their ids, and whether these are numbers.

        Raises
        ------
        DataError : for a record or a column that cannot be used.
        """
        records = self.records(batch)
        is_number = records.ids is not None and pa.types.is_integer(records.ids.type)
        return clients_of_records(records, self.columns, self.source)[0], is_number

    def records(self, batch: pa.RecordBatch) -> Records:
        """The values of some records.

        Raises
        ------
        DataError : for a record or a column that cannot be used.
        """
        location, columns = _Somewhere(self.source, remedy=FILL_OR_FILTER), self.columns
        readable(Table(self.source, batch.schema.names, iter, batch.schema), columns, location)
        return Records.joined([decoded(batch, columns, location)])

    def places(self, ids: Any, names: Sequence[str]) -> Integers:
        """The places of clients among all.

        Raises
        ------
        DataError : for a client that was not there before.
        """
        places = pc.index_in(ids.cast(pa.string()), pa.array(names, pa.string()))
        if places.null_count:
            raise changed(self.source)
        return np.asarray(places, dtype=np.int64)

    def summary(self, batch: pa.RecordBatch) -> pa.Table:
        """The columns of ``SUMMARY``: of every client of a batch, or what is wrong in it."""
        try:
            clients, is_number = self.clients(batch)
        except DataError as error:
            return adding.table_of(SUMMARY, [str(error)], *([0],) * 4, [1], [0.0], [0.0])
        names = clients.names or ONE
        low, high = ([end] * len(names) for end in clients.ends)
        numbers = [int(is_number)] * len(names), [0] * len(names)
        return adding.table_of(SUMMARY, names, *marks(clients), *numbers, low, high)

    def totals(self, names: tuple[str, ...], work: Numbers, batch: pa.RecordBatch) -> pa.Table:
        """The columns of ``TOTALS``: the numbers of a batch of all clients, and its marks.

        Parameters
        ----------
        names : of all clients, in their order.
        work : gives the numbers.
        batch : the records.
        """
        here, _ = self.clients(batch)
        whose = self.places(pa.array(here.names or ONE), names)
        marked = np.zeros((3, len(names)), dtype=np.int64)
        # a batch has its clients in the order of all
        marked[:, whose] = marks(here)
        clients = replace(here, offsets=_offsets(marked[0]), names=(), _checked=True)
        return adding.totals_of(np.concatenate([work(clients).ravel(), marked.ravel()]))


@dataclass(frozen=True)
class PersonReader(BatchReader):
    """What workers make of batches of records where a person is the unit of privacy.

    A worker chooses among all records of a person at once, by the code that chooses in memory. The
    engine may return them in any order: a record's place among the person's is that in order of
    values, as ``tacit.data.engines.persons`` has it and says what follows.

    Parameters
    ----------
    names : of all clients; empty where no column names clients.
    per_person, seed : as ``Clients.counted`` takes them.
    parts : into how many parts persons are dealt, by checksums of their ids.
    """

    names: tuple[str, ...]
    per_person: int
    seed: bytes
    parts: int

    def placed(self, table: pa.Table) -> pa.Table:
        """Records with each person's part: equal where ``as_persons`` has persons equal."""
        ids = table[str(self.columns.person)].combine_chunks().cast(pa.string())
        listed = ids.dictionary_encode()
        texts = (str(each).strip().encode() for each in listed.dictionary.to_pylist())
        parts = pa.array([crc32(text) % self.parts for text in texts], pa.int64())
        return table.append_column(adding.PART, parts.take(listed.indices).fill_null(0))

    def chosen(self, table: pa.Table) -> pa.Table:
        """The records that count of all records of some persons; in the first, who is at two.

        Raises
        ------
        DataError : for records without a person, and of another client than before.
        """
        records = self.records(table.combine_chunks().to_batches()[0])
        whose = np.zeros(table.num_rows, dtype=np.int64)
        if self.names:
            whose = self.places(records.ids, self.names)
        groups = whose if records.groups is None else records.groups
        order = np.lexsort((groups, records.labels, records.scores, whose))
        offsets = _offsets(np.bincount(whose, minlength=max(len(self.names), 1)))
        persons = records.persons[order]
        inside = counted(persons, offsets, self.per_person, self.seed, self.names)
        made = table.take(np.sort(order[inside]))
        spread = np.zeros(made.num_rows, dtype=np.int64)
        spread[:1] = spread_persons(persons, offsets)
        return made.set_column(made.num_columns - 1, adding.PART, pa.array(spread))


def changed(source: str) -> DataError:
    """The error that says that a cluster's records changed during a run."""
    return DataError(
        f"{source} changed between two steps of a run: write it to a table, or keep it in memory "
        "of the cluster, if it is computed again each time"
    )


def marks(clients: Clients) -> Integers:
    """Records, positives, and a sum of digests of scores and labels, of every client, shape (3, K).

    Every client has records. Digests are below 2**31: no sum of them overflows.
    """
    bits = clients.scores.view(np.uint64) + clients.labels.astype(np.uint64)
    # multiplication by an odd number, of which the upper bits are kept (Dietzfelbinger et al. 1997)
    digests = (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    sums = [clients.ragged(each.astype(np.int64)).sum() for each in (clients.labels, digests)]
    return np.stack([clients.sizes, *sums])


def _offsets(sizes: Integers) -> Integers:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


class ClusterRecords(Stored):
    """The records of a cluster, as ``StoredClients`` asks for them.

    Parameters
    ----------
    cluster : maps and adds up.
    columns : what is read of the records.

    Raises
    ------
    DataError : for a column that is not there or of another type, no records, a record that cannot
        be used, a cluster that fails, and what it does not read.
    """

    def __init__(self, cluster: adding.Cluster, columns: Columns) -> None:
        if columns.second or columns.drop or len(columns.scores) > 1:
            beyond = "second values, scores of each class or missing values to leave out"
            raise DataError(f"{cluster.source} cannot have {beyond}: write the records to files")
        self._cluster, self._columns = cluster, columns
        self.groups, self.knows_persons = columns.classes, columns.person is not None
        readable(Table(cluster.source, cluster.columns, iter), columns, Location(cluster.source))
        # whose records they are is read where they are drawn
        self._reader = BatchReader(cluster.source, replace(columns, person=None))
        self._names = self._reader.columns.names
        rows = cluster.added(self._names, self._reader.summary, SUMMARY).to_pylist()
        wrong = [row["client"] for row in rows if row["wrong"]]
        if wrong:
            raise DataError(min(wrong))
        if not rows:
            raise DataError(f"{cluster.source} has no records")
        are_numbers = all(row["is_number"] for row in rows)
        rows.sort(key=lambda row: int(row["client"]) if are_numbers else row["client"])
        self._all = tuple(row["client"] for row in rows)
        self.names = () if columns.client is None else self._all
        known = ("records", "positives", "digest")
        self._marks = np.array([[row[name] for row in rows] for name in known])
        self.sizes, self.positives, _ = self._marks
        self.ends = min(row["low"] for row in rows), max(row["high"] for row in rows)

    def added(self, numbers: Numbers) -> Integers:
        """The sum of the numbers of all batches, which workers compute.

        Raises
        ------
        DataError : where the records changed since they were summarised.
        """
        none = np.zeros(0, dtype=np.int64)
        groups = Categories(self.groups, none) if self.groups else None
        columns: dict[str, Any] = {"scores": none.astype(float), "labels": none.astype(np.int8)}
        columns |= {} if groups is None else {"categories": groups}
        blank = numbers(batch_of(columns, none, len(self._all)))
        work = partial(self._reader.totals, self._all, numbers)
        made = adding.summed(self._cluster.added(self._names, work, adding.TOTALS))
        if not np.array_equal(made[blank.size :], self._marks.ravel()):
            raise changed(self._cluster.source)
        return made[: blank.size].reshape(blank.shape)

    def _refused(self) -> Any:
        """No record leaves the cluster.

        Raises
        ------
        DataError : always.
        """
        raise DataError(
            f"the records of {self._cluster.source} stay on the cluster, and this needs them one "
            "by one: take a protocol that counts, or write them to Parquet files and name these"
        )

    batches = ascending = _refused

    def counted(self, per_person: int, seed: bytes) -> ClusterRecords:
        """The records that count where a person is the unit of privacy, as ``Clients.counted``.

        They stay on the cluster. Each pass is over those that were drawn first, so that a person
        has the same in all.
        """
        cluster, parts = self._cluster, 1 + int(self.sizes.sum()) // PART_ROWS
        reader = PersonReader(cluster.source, self._columns, self.names, per_person, seed, parts)
        drawn = cluster.chosen(self._columns.names, reader.placed, reader.chosen, parts)
        if self.sizes.size > 1:
            at_two = adding.total(
                drawn, [adding.PART], lambda each: np.array([pc.sum(each[0]).as_py()])
            )
            warn_of_spread(int(at_two[0]))
        return ClusterRecords(drawn, replace(self._columns, person=None))

    def marks(self, key: bytes) -> tuple[bytes, bytes]:
        """As ``Stored.marks``, whose key the workers get; persons are read for them."""
        whole = copy(self)
        whole._reader = BatchReader(self._cluster.source, self._columns)
        whole._names = self._columns.names
        return Stored.marks(whole, key)

    def pooled(self) -> ClusterRecords:
        """The same records as those of one client."""
        return ClusterRecords(self._cluster, replace(self._columns, client=None))
