"""What the workers of a Spark or Ray cluster compute of batches of records, and its sum.

Spark computes by ``mapInArrow`` (the extra ``spark``), Ray by ``map_batches`` of its own datasets
(the extra ``ray``). The cluster adds up what workers return, and this process receives the sum.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.arrays import Integers
from tacit.data.errors import DataError

Tally = dict[str, tuple[pa.DataType, str]]
"""The columns that workers return: a key, and how the values of rows with one key are combined."""

TOTALS: Tally = {"place": (pa.int64(), "key"), "number": (pa.int64(), "sum")}
"""The numbers of a flat array other than 0, and the last, by their place."""

BATCH_ROWS = 1 << 17
"""The most records that a worker reads at once."""

CAUSE = re.compile(r"[\w.]+(Error|Exception)\b[^:]*: ")
"""How the line of an error begins in the text of another."""

OURS = f"{DataError.__name__}: "
"""How that of records that cannot be used begins."""

FAN_IN = 13
"""How many tables are added up at once, and batches are read: Spark's have 10,000 rows or less."""

Work = Callable[[pa.RecordBatch], pa.Table]
"""What a worker does with a batch of records: it returns a table of a tally's columns."""

Tables = Callable[[pa.Table], pa.Table]
"""What a worker makes of records."""

PART = "tacit_part"
"""The column that says which records a worker sees together."""


@contextmanager
def named_errors(source: str, user: str = "") -> Iterator[None]:
    """Whatever an engine raises, as one sentence.

    Parameters
    ----------
    source : what it calls the records.
    user : of the database, whom the sentence does not name.

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
        said = without_user((causes or lines or [type(error).__name__])[0], user)
        if OURS in said:
            raise DataError(said.partition(OURS)[2]) from None
        if "No module named 'tacit" in said:
            said = "tacit is not installed in its workers' Python"
        raise DataError(f"{source} cannot be read: {said:.300}") from None


def without_user(said: str, user: str) -> str:
    """What a server said, without the user that it repeats, in whatever language it says so.

    Examples
    --------
    >>> without_user('authentication failed for user "reader"', "reader")
    'authentication failed for user "..."'
    """
    return re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", "...", said) if user else said


class SparkCluster:
    """A Spark frame, also of Spark Connect: it maps all batches of records, and adds up.

    Attributes
    ----------
    source : what errors call the records.
    columns : the names of the columns.
    """

    source = "the Spark frame"

    @named_errors(source)
    def __init__(self, frame: Any, columns: Sequence[str] = ()) -> None:
        self._frame, self.columns = frame, list(columns or frame.columns)

    @named_errors(source)
    def added(self, names: Sequence[str], work: Work, tally: Tally) -> pa.Table:
        """What workers return for all batches: one row a key.

        Parameters
        ----------
        names : of the columns that they read.
        work : what they do with a batch.
        tally : the columns that they return.
        """
        of_table = partial(_worked, work, tally)
        types = {"string": "string", "int64": "bigint", "double": "double"}
        declared = ", ".join(f"{name} {types[str(kind)]}" for name, (kind, _) in tally.items())
        parts = self._of(names).mapInArrow(
            lambda each: combined(map(of_table, _tables(names, each)), tally).to_batches(), declared
        )
        # rows of a key meet in one task
        by_key = parts.repartition(next(iter(tally)))
        rows = by_key.mapInArrow(partial(_packed, tally), "part binary").collect()
        return combined((pa.ipc.open_stream(bytes(row.part)).read_all() for row in rows), tally)

    @named_errors(source)
    def chosen(
        self, names: Sequence[str], place: Tables, choose: Tables, parts: int
    ) -> SparkCluster:
        """Some of the records, which Spark keeps for as long as the answer is used.

        Parameters
        ----------
        names : of their columns.
        place : gives records another column, ``PART``, of whole numbers below ``parts``.
        choose : takes some of all records that have a number, and may change that column.
        parts : how many numbers there are.
        """
        frame = self._of(names)
        schema = frame.selectExpr("*", f"BIGINT(0) AS {PART}").schema
        placed = frame.mapInArrow(lambda each: _batches(map(place, _tables(names, each))), schema)
        by_part = placed.repartition(parts, PART)
        more = [*names, PART]
        drawn = by_part.mapInArrow(
            lambda each: _batches(map(choose, _tables(more, each, None))), schema
        )
        persisted = drawn.persist()
        made = SparkCluster(persisted, more)
        weakref.finalize(made, _released, persisted).atexit = False
        return made

    def _of(self, names: Sequence[str]) -> Any:
        """Some columns, by number: Spark takes dots and backticks of names for its own signs."""
        numbered = self._frame.toDF(*(f"c{index}" for index in range(len(self.columns))))
        return numbered.select([f"c{self.columns.index(name)}" for name in names])


def _released(frame: Any) -> None:
    # its session may have ended before
    with suppress(Exception):
        frame.unpersist()


def _tables(
    names: Iterable[str], batches: Iterable[pa.RecordBatch], most: int | None = FAN_IN
) -> Iterator[pa.Table]:
    """Tables of so many batches, whose columns get these names; None for one of all."""
    each = iter(batches)
    while held := list(islice(each, most)):
        yield pa.Table.from_batches(held).combine_chunks().rename_columns(list(names))


def _batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(table.to_batches() for table in tables)


def _worked(work: Work, tally: Tally, table: pa.Table) -> pa.Table:
    """What is returned for some records."""
    if table.num_rows < table.column(0).num_chunks * BATCH_ROWS // 4:
        # a copy costs less than many small batches
        table = table.combine_chunks()
    return combined(map(work, table.to_batches(BATCH_ROWS)), tally)


def _packed(tally: Tally, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a partition's keys as one value, which any version of Spark collects fast."""
    made = combined(_tables(tally, batches), tally)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    yield pa.record_batch({"part": [sink.getvalue().to_pybytes()]})


class RayCluster:
    """A Ray dataset, as ``SparkCluster``."""

    source = "the Ray dataset"

    @named_errors(source)
    def __init__(self, dataset: Any) -> None:
        self._dataset, self.columns = dataset, list(dataset.columns() or ())
        if not self.columns:
            raise DataError(f"{self.source} has no records")

    @named_errors(source)
    def added(self, names: Sequence[str], work: Work, tally: Tally) -> pa.Table:
        """What workers return for all batches; tasks add up, ``FAN_IN`` tables each."""
        import ray  # noqa: PLC0415 -- anyone with a dataset has it

        chosen = self._dataset.select_columns(list(names))
        of_table = partial(_worked, work, tally)
        mapped = chosen.map_batches(of_table, batch_format="pyarrow", batch_size=None)
        parts = mapped.to_arrow_refs()
        add = ray.remote(lambda *tables: combined(tables, tally))
        while len(parts) > FAN_IN:
            parts = [add.remote(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return combined(ray.get(parts), tally)

    @named_errors(source)
    def chosen(self, names: Sequence[str], place: Tables, choose: Tables, parts: int) -> RayCluster:
        """Some of the records, which Ray keeps for as long as the answer is used."""
        read = self._dataset.select_columns(list(names))
        placed = read.map_batches(place, batch_format="pyarrow", batch_size=None)
        by_part = placed.groupby(PART, parts).map_groups(choose, batch_format="pyarrow")
        return RayCluster(by_part.materialize())


def combined(tables: Iterable[pa.Table], tally: Tally) -> pa.Table:
    """The rows of tables, those of one key as one."""
    schema, (key, *others) = _schema(tally), tally
    made, each = schema.empty_table(), iter(tables)
    while some := list(islice(each, FAN_IN)):
        rows = pa.concat_tables([made, *(table.cast(schema) for table in some)])
        grouped = rows.group_by(key).aggregate([(name, tally[name][1]) for name in others])
        chosen = grouped.select([key, *(f"{name}_{tally[name][1]}" for name in others)])
        made = chosen.rename_columns(list(tally))
    return made


def total(
    cluster: Cluster, names: Sequence[str], numbers: Callable[[pa.RecordBatch], Integers]
) -> Integers:
    """The sum of flat arrays of whole numbers, of one length, of all batches.

    Parameters
    ----------
    cluster : computes them.
    names : of the columns that workers read.
    numbers : gives the array of a batch.

    Raises
    ------
    DataError : for records that cannot be used, and a cluster that fails.
    """
    return summed(cluster.added(names, lambda batch: totals_of(numbers(batch)), TOTALS))


def totals_of(numbers: Integers) -> pa.Table:
    """The columns of ``TOTALS`` of an array."""
    is_listed = numbers != 0
    is_listed[-1:] = True
    places = np.flatnonzero(is_listed)
    return table_of(TOTALS, places, numbers[places])


def summed(totals: pa.Table) -> Integers:
    """The array of such columns; of no rows it is empty."""
    places = totals["place"].to_numpy()
    made = np.zeros(places.max(initial=-1) + 1, dtype=np.int64)
    made[places] = totals["number"].to_numpy()
    return made


def table_of(tally: Tally, *columns: Any) -> pa.Table:
    """A table of a tally's columns, of their values in its order."""
    return pa.Table.from_arrays(list(columns), schema=_schema(tally))


def _schema(tally: Tally) -> pa.Schema:
    return pa.schema([(name, kind) for name, (kind, _) in tally.items()])


Cluster = SparkCluster | RayCluster

ENGINES: dict[str, type[Cluster]] = {"pyspark": SparkCluster, "ray": RayCluster}
"""The cluster of a frame, by the package of its type."""


def cluster_of(frame: Any) -> Cluster:
    """The cluster of a Spark frame or a Ray dataset.

    Raises
    ------
    DataError : for anything else.
    """
    package, name = type(frame).__module__.partition(".")[0], type(frame).__name__
    if package not in ENGINES:
        raise DataError(f"records must be a Spark frame, a Ray dataset or Ibis table, got {name}")
    return ENGINES[package](frame)
