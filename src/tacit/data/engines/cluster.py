"""Records of a Spark frame or a Ray dataset: counted by the cluster's workers, where they are.

A worker decodes its batches as batches of files are decoded, makes clients of them, and computes
whole numbers of these by the code that computes them in memory. The cluster adds them up, and the
driver receives the sums: no record reaches it.

Every pass over the records also sums a digest of scores and labels, so that a frame that is
computed again with other records is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.columns import Columns, Records, decoded, readable
from tacit.data.engines.pieces import ScorePieces
from tacit.data.engines.ranking import Ascending
from tacit.data.engines.stored import Numbers, Stored, StoredClients, batch_of
from tacit.data.errors import DataError
from tacit.data.reading import clients_of_records
from tacit.data.tables import Location, Table
from tacit.data.units import LinearMap

Tally = dict[str, tuple[pa.DataType, str]]
"""The columns that workers return: a key, and how the values of rows with one key are combined."""

SUMMARY: Tally = {
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

TOTALS: Tally = {"place": (pa.int64(), "key"), "number": (pa.int64(), "sum")}
"""The numbers of an array other than 0, by their place."""

CHANGED = -1
"""The place that says that there is another record than before."""

ONE = ("",)
"""The names where no column names clients."""

BATCH_ROWS = 1 << 17
"""The least records of which a worker makes clients at once: batches of engines are small."""

CAUSE = re.compile(r"[\w.]+(Error|Exception)\b[^:]*: ")
"""How the line of an error begins in the text of another."""

FAN_IN = 16
"""How many tables a task of Ray adds up."""

Work = Callable[[pa.RecordBatch], pa.Table]
"""What a worker does with a batch of records: it returns a table of a tally's columns."""


class Cluster(Protocol):
    """What maps all batches of records, and adds up.

    Attributes
    ----------
    source : what errors call the records.
    columns : the names of the columns.
    """

    source: str
    columns: list[str]

    def added(self, names: Sequence[str], work: Work, tally: Tally) -> pa.Table:
        """What workers return for all batches: one row a key.

        Parameters
        ----------
        names : of the columns that they read.
        work : what they do with a batch.
        tally : the columns that they return.
        """


class SparkCluster:
    """A Spark frame, also of Spark Connect."""

    source = "the Spark frame"

    def __init__(self, frame: Any) -> None:
        self._frame, self.columns = frame, list(frame.columns)

    def added(self, names: Sequence[str], work: Work, tally: Tally) -> pa.Table:
        """What workers return for all batches; rows of a key meet in one task."""
        types = {"string": "string", "int64": "bigint", "double": "double"}
        declared = ", ".join(f"{name} {types[str(kind)]}" for name, (kind, _) in tally.items())
        # Spark takes dots and backticks of names for its own signs: they are read by number
        numbered = self._frame.toDF(*(f"c{index}" for index in range(len(self.columns))))
        chosen = numbered.select([f"c{self.columns.index(name)}" for name in names])
        parts = chosen.mapInArrow(partial(_of_partition, names, work, tally), declared)
        by_key = parts.repartition(next(iter(tally)))
        rows = by_key.mapInArrow(partial(_packed, tally), "part binary").collect()
        return combined((pa.ipc.open_stream(bytes(row.part)).read_all() for row in rows), tally)


def _of_partition(
    names: Sequence[str], work: Work, tally: Tally, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What is returned for the batches of a partition, whose columns get these names."""
    named = (batch.rename_columns(list(names)) for batch in batches)
    yield from combined(map(work, _larger(named)), tally).to_batches()


def _packed(tally: Tally, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a partition's keys as one value, which any version of Spark collects fast."""
    made = combined((pa.Table.from_batches([batch]) for batch in batches), tally)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    yield pa.record_batch({"part": [sink.getvalue().to_pybytes()]})


class RayCluster:
    """A Ray dataset."""

    source = "the Ray dataset"

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.columns = dataset, list(dataset.columns() or ())
        if not self.columns:
            raise DataError(f"{self.source} has no records")

    def added(self, names: Sequence[str], work: Work, tally: Tally) -> pa.Table:
        """What workers return for all batches; tasks add up, ``FAN_IN`` tables each."""
        import ray  # noqa: PLC0415 -- anyone with a dataset has it

        def of_block(block: pa.Table) -> pa.Table:
            batches = block.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
            return combined(map(work, batches), tally)

        chosen = self._dataset.select_columns(list(names))
        mapped = chosen.map_batches(of_block, batch_format="pyarrow", batch_size=None)
        parts = mapped.to_arrow_refs()
        add = ray.remote(lambda *tables: combined(tables, tally))
        while len(parts) > 1:
            parts = [add.remote(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return combined(ray.get(parts), tally)


def combined(tables: Iterable[pa.Table], tally: Tally) -> pa.Table:
    """The rows of tables, those of one key as one."""
    schema = pa.schema([(name, kind) for name, (kind, _) in tally.items()])
    key, *others = tally
    rows = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
    made = rows.group_by(key).aggregate([(name, tally[name][1]) for name in others])
    return made.select([key, *(f"{name}_{tally[name][1]}" for name in others)]).rename_columns(
        list(tally)
    )


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of batches in batches of at least ``BATCH_ROWS``, but for the last."""
    held, rows = list[pa.RecordBatch](), 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= BATCH_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
    if rows:
        yield from pa.Table.from_batches(held).combine_chunks().to_batches()


class _Somewhere(Location):
    """Where a record of a cluster is: rows have no numbers there."""

    def row(self, index: int) -> str:
        return f"a record of {self.source}"

    def refuse_missing(
        self,
        wrong: NDArray[np.bool_],
        values: Any,
        name: str,
        remedy: str = "fill it in, or filter such records out",
    ) -> None:
        super().refuse_missing(wrong, values, name, remedy)


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
        location, columns = _Somewhere(self.source), self.columns
        readable(Table(self.source, batch.schema.names, iter, batch.schema), columns, location)
        records = Records.joined([decoded(batch, columns, location)])
        is_number = records.ids is not None and pa.types.is_integer(records.ids.type)
        return clients_of_records(records, columns, self.source)[0], is_number

    def summary(self, batch: pa.RecordBatch) -> pa.Table:
        """The columns of ``SUMMARY``: of every client of a batch, or what is wrong in it."""
        try:
            clients, is_number = self.clients(batch)
        except DataError as error:
            return _table(SUMMARY, [str(error)], *([0],) * 4, [1], [0.0], [0.0])
        names = clients.names or ONE
        low, high = ([end] * len(names) for end in clients.ends)
        numbers = [int(is_number)] * len(names), [0] * len(names)
        return _table(SUMMARY, names, *marks(clients), *numbers, low, high)

    def totals(self, names: tuple[str, ...], work: Numbers, batch: pa.RecordBatch) -> pa.Table:
        """The columns of ``TOTALS``: the numbers of a batch of all clients, and its marks.

        Parameters
        ----------
        names : of all clients, in their order.
        work : gives the numbers.
        batch : the records.
        """
        try:
            here, _ = self.clients(batch)
        except DataError:
            return _table(TOTALS, [CHANGED], [1])
        place = {name: index for index, name in enumerate(names)}
        whose = [place.get(name, CHANGED) for name in here.names or ONE]
        if CHANGED in whose:
            return _table(TOTALS, [CHANGED], [1])
        sizes = np.zeros(len(names), dtype=np.int64)
        # a batch has its clients in the order of all
        sizes[whose] = here.sizes
        clients = replace(here, offsets=_offsets(sizes), names=(), _checked=True)
        numbers = np.concatenate([work(clients).ravel(), marks(clients).ravel()])
        places = np.flatnonzero(numbers)
        return _table(TOTALS, places, numbers[places])


def marks(clients: Clients) -> Integers:
    """Records, positives, and a sum of digests of scores and labels, of every client, shape (3, K).

    Sums of less than 2**31 a record are exact in any order.
    """
    bits = clients.scores.view(np.uint64) + clients.labels.astype(np.uint64)
    # multiplication by an odd number, of which the upper bits are kept (Dietzfelbinger et al. 1997)
    digests = (bits * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    columns = np.stack([np.ones(clients.records), clients.labels, digests]).astype(np.int64)
    below = np.zeros((3, clients.records + 1), dtype=np.int64)
    np.cumsum(columns, axis=1, out=below[:, 1:])
    return np.diff(below[:, clients.offsets], axis=1)


def _offsets(sizes: Integers) -> Integers:
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def _table(tally: Tally, *columns: Any) -> pa.Table:
    return pa.table(
        {
            name: pa.array(column, kind)
            for (name, (kind, _)), column in zip(tally.items(), columns, strict=True)
        }
    )


class ClusterRecords(Stored):
    """The records of a cluster, as ``StoredClients`` asks for them.

    Parameters
    ----------
    cluster : maps and adds up.
    columns : what is read of the records.

    Raises
    ------
    DataError : for a column that is not there or of another type, no records, a record that cannot
        be used, and a cluster that fails.
    """

    def __init__(self, cluster: Cluster, columns: Columns) -> None:
        self._cluster, self._reader = cluster, BatchReader(cluster.source, columns)
        self.groups, self.knows_persons = columns.classes, False
        header = Table(cluster.source, cluster.columns, iter)
        self._names = readable(header, columns, Location(cluster.source))
        rows = self._added(self._reader.summary, SUMMARY).to_pylist()
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
        rows = self._added(partial(self._reader.totals, self._all, numbers), TOTALS)
        places = rows["place"].to_numpy()
        made = np.zeros(blank.size + self._marks.size, dtype=np.int64)
        made[places] = rows["number"].to_numpy()
        seen = made[blank.size :].reshape(self._marks.shape)
        if CHANGED in places or not np.array_equal(seen, self._marks):
            raise DataError(
                f"{self._cluster.source} changed between two steps of a run: write it to a table, "
                "or keep it in memory of the cluster, if it is computed again each time"
            )
        return made[: blank.size].reshape(blank.shape)

    def counts(self, edges: Floats, by_group: bool = False) -> None:
        """None: a pass over the records counts them."""

    def sums(self, pieces: ScorePieces, maps: Sequence[LinearMap] = ()) -> None:
        """None: a pass over the records sums."""

    def batches(self) -> Iterator[Clients]:
        """No record leaves the cluster.

        Raises
        ------
        DataError : always.
        """
        raise self._stays

    def ascending(self) -> Iterator[Ascending]:
        """No record leaves the cluster.

        Raises
        ------
        DataError : always.
        """
        raise self._stays

    def counted(self, per_person: int, seed: bytes) -> ClusterRecords:
        """Nothing is known of persons.

        Raises
        ------
        DataError : always.
        """
        raise NO_PERSONS

    def pooled(self) -> ClusterRecords:
        """The same records as those of one client."""
        return ClusterRecords(self._cluster, replace(self._reader.columns, client=None))

    @property
    def _stays(self) -> DataError:
        return DataError(
            f"the records of {self._cluster.source} stay on the cluster, and this needs them one "
            "by one: take a protocol that counts, or write them to Parquet files and name these"
        )

    def _added(self, work: Work, tally: Tally) -> pa.Table:
        with named_errors(self._cluster.source):
            return self._cluster.added(self._names, work, tally)


NO_PERSONS = DataError(
    "a person's records are not drawn on a cluster: write the records to Parquet files, and name "
    "these with the column of persons"
)


@contextmanager
def named_errors(source: str) -> Iterator[None]:
    """Whatever an engine raises, as one sentence.

    Raises
    ------
    DataError : with what the error's text names first as its cause.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        causes = [line for line in lines if CAUSE.match(line)]
        said = (causes or lines or [type(error).__name__])[0]
        if "No module named 'tacit" in said:
            said = "tacit is not installed in its workers' Python"
        raise DataError(f"{source} cannot be read: {said:.300}") from None


ENGINES: dict[str, type[SparkCluster | RayCluster]] = {"pyspark": SparkCluster, "ray": RayCluster}
"""The cluster of a frame, by the package of its type."""


def from_cluster(
    records: Any,
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    unit: str | None = None,
    person: str | None = None,
    group: str | None = None,
    group_names: Sequence[str] = (),
) -> Clients:
    """Clients whose records stay on a cluster.

    Parameters
    ----------
    records : a Spark frame or a Ray dataset.
    score, label, client, unit : as ``tacit.read`` takes them.
    person : None.
    group, group_names : the column of private groups, and their agreed names.

    Raises
    ------
    DataError : for records that cannot be used, as ``tacit.read``; for a column of persons.
    """
    cluster = ENGINES[type(records).__module__.partition(".")[0]]
    if person is not None:
        raise NO_PERSONS
    columns = Columns((score,), label, client, None, group, unit=unit, classes=tuple(group_names))
    with named_errors(cluster.source):
        opened = cluster(records)
    return StoredClients(ClusterRecords(opened, columns), unit)
