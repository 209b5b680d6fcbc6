"""The records of a table behind an engine: counted by its statements, or read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.engines import statements
from tacit.data.engines.persons import counted_relation, no_person_statement, spread_statement
from tacit.data.engines.pieces import ScorePieces, counting, summing
from tacit.data.engines.ranking import Ascending
from tacit.data.engines.statements import ConstantTable, plain_text
from tacit.data.engines.stored import Stored, batch_of
from tacit.data.errors import DataError, no_column
from tacit.data.form import reads_as_number, with_remedy
from tacit.data.persons import WITHOUT_PERSON, marks, warn_of_spread
from tacit.data.units import LinearMap

Progress = Callable[[int], AbstractContextManager[Callable[[int], None]]]


@contextmanager
def unshown(records: int) -> Iterator[Callable[[int], None]]:
    """A pass over records of which nothing is shown."""
    yield lambda more: None


class Engine(Protocol):
    """What runs statements.

    Attributes
    ----------
    source : what errors call the table: never with a password.
    most_cells : the most cells for which a statement is faster than a pass over the records.
    """

    source: str
    most_cells: int

    def kinds(self, relation: statements.Relation) -> dict[str, str]:
        """The kind of every column by its name: number, boolean, text, or the engine's own word."""

    def rows(self, statement: str, tables: Sequence[ConstantTable] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement's answer, which are few.

        Parameters
        ----------
        statement : the statement.
        tables : small tables that it reads, for a dialect that is given them.
        """

    def batches(
        self, statement: str, tables: Sequence[ConstantTable] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a statement's answer in batches, in the statement's order, or as stored."""

    def kept(self, query: str) -> tuple[Engine, str]:
        """An engine and a table in it, as SQL, with the rows of a query that many statements read.

        The query is run once, where the engine has a place for its rows.
        """


class _OtherRecordsError(Exception):
    """A batch is not of the records that were summarised."""


class EngineRecords(Stored):
    """The records of a table, as ``StoredClients`` asks for them.

    Its attributes are those of ``Stored``; anyone who makes it may give the clients other names.

    Parameters
    ----------
    engine : runs the statements.
    relation : the table.
    name : the only client's name, where no column names clients; empty for none.
    progress : begins a pass over so many records, and receives how many more were read.

    Raises
    ------
    DataError : for a column that is not there or of another type, a table without records, and a
        record whose label is not 0 or 1, whose score is not a finite number, or that lacks a value.
    """

    def __init__(
        self,
        engine: Engine,
        relation: statements.Relation,
        name: str = "",
        progress: Progress = unshown,
    ) -> None:
        self._engine, self._progress = engine, progress
        self._relation = checked(engine, relation)
        self.groups, self.knows_persons = relation.groups, relation.person is not None
        self.sizes = np.zeros(0, dtype=np.int64)
        rows = self._summary()
        self._ids = tuple(str(row[0]) for row in rows)
        self.names = self._ids if relation.client is not None else (name,) * bool(name)
        numbers = [(int(row[1]), int(row[2])) for row in rows]
        self.sizes, self.positives = np.array(numbers, dtype=np.int64).T
        self.ends = min(float(row[5]) for row in rows), max(float(row[6]) for row in rows)
        self._check_groups()
        self._check_persons()

    def counted(self, per_person: int, seed: bytes) -> EngineRecords:
        """The records that count where a person is the unit of privacy, as ``Clients.counted``."""
        called = None
        names = marks(self.names, self.sizes.size)
        if self._relation.client is not None and names != list(self._ids):
            called = self._renamed(names)
        counted = counted_relation(self._relation, per_person, seed, called)
        engine, table = self._engine.kept(f"SELECT * FROM {counted.table}")
        made = EngineRecords(engine, replace(counted, table=table), progress=self._progress)
        # everyone who had a record has one that counts
        made.names = self.names
        return made

    def _renamed(self, names: Sequence[str]) -> str:
        """Other names of the clients than their ids, as SQL."""
        if len(names) == 1:
            return "''"
        pairs = zip(self._ids, names, strict=True)
        cases = (f"WHEN {plain_text(known)} THEN {plain_text(name)}" for known, name in pairs)
        dialect = self._relation.dialect
        client = f"CAST({dialect.quoted('client')} AS {dialect.text})"
        return f"CASE {client} {' '.join(cases)} END"

    def pooled(self) -> EngineRecords:
        """The same records as those of one client."""
        relation = replace(self._relation, client=None)
        return EngineRecords(self._engine, relation, progress=self._progress)

    def counts(self, edges: Floats, by_group: bool = False) -> Integers | None:
        """Positives and negatives by cell and client, by a statement; None for too many cells.

        Parameters
        ----------
        edges : the inner edges of B cells, ascending, shape (B-1,).
        by_group : whether they are counted for each group, shape (G, 2, B, K).

        Raises
        ------
        DataError : where the table changed since it was summarised.
        """
        if edges.size >= self._engine.most_cells:
            return None
        relation = self._relation if by_group else self._plain
        counts = np.zeros((relation.strata, 2, edges.size + 1, self.sizes.size), dtype=np.int64)
        made = counting(relation, edges, self.ends, int(self.sizes.sum()))
        for client, found, cell, records in self._engine.rows(*made):
            whose = self._index.get(str(client))
            if whose is None or found == statements.INVALID or cell in (statements.INVALID, None):
                raise self._changed()
            stratum, label = divmod(int(found), 2)
            # several bins are of the last cell
            counts[stratum, 1 - label, min(int(cell), edges.size), whose] += records
        self._check_sizes(counts.sum(axis=(0, 1, 2)), counts[:, 0].sum(axis=(0, 1)))
        filled = np.flatnonzero(counts.sum(axis=(0, 1, 3)))
        if filled[[0, -1]].tolist() != np.searchsorted(edges, self.ends, side="right").tolist():
            raise self._changed()
        return counts if by_group else counts[0]

    def sums(self, pieces: ScorePieces, maps: Sequence[LinearMap] = ()) -> Integers | None:
        """The sum over each client's records, by a statement; None for too many pieces.

        Parameters
        ----------
        pieces : the whole numbers, of images.
        maps : through which scores go one after another.

        Raises
        ------
        DataError : where the table changed since it was summarised.
        """
        if pieces.edges.size >= self._engine.most_cells:
            return None
        mapped = replace(self._plain, maps=tuple(maps))
        ends = np.array(self.ends)
        for each in maps:
            ends = each(ends)
        made = summing(mapped, pieces, (float(ends[0]), float(ends[1])), int(self.sizes.sum()))
        known = np.zeros((3, self.sizes.size), dtype=np.int64)
        for client, *numbers in self._engine.rows(*made):
            whose = self._index.get(str(client))
            if whose is None:
                raise self._changed()
            known[:, whose] = [int(number) for number in numbers]
        self._check_sizes(known[0], known[1])
        return known[2]

    def batches(self) -> Iterator[Clients]:
        """All records in batches.

        Raises
        ------
        DataError : where the table changed since it was summarised.
        """
        classes = 2 * self._relation.strata
        for codes, scores in self._read(statements.records_statement(self._relation), (), classes):
            whose, found = np.divmod(codes, classes)
            groups = Categories(self.groups, found >> 1) if len(self.groups) > 1 else None
            labels = (found & 1).astype(np.int8)
            yield batch_of(scores, labels, whose, self.sizes.size, groups)

    def ascending(self) -> Iterator[Ascending]:
        """All records in ascending order of their scores, by the engine's own sort.

        Raises
        ------
        DataError : where the table changed since it was summarised.
        """
        tables = []
        if self._relation.dialect.given_tables and self._relation.client is not None:
            whose = np.arange(self.sizes.size, dtype=np.int32)
            columns = {"client": np.array(self._ids), "whose": whose}
            tables.append(ConstantTable("tacit_clients", columns))
        for codes, scores in self._read(statements.ascending_statement(self._plain), tables):
            yield scores, codes

    def _read(
        self, statement: str, tables: Sequence[ConstantTable] = (), classes: int = 2
    ) -> Iterator[tuple[Integers, Floats]]:
        """``classes * client + class`` and scores of a statement's rows, as many as before."""
        try:
            yield from self._as_before(self._engine.batches(statement, tables), classes)
            return
        except _OtherRecordsError:
            pass
        # an error refers to the engine's reader, which must be closed before another statement
        raise self._changed()

    def _as_before(
        self, batches: Iterator[pa.RecordBatch], classes: int
    ) -> Iterator[tuple[Integers, Floats]]:
        """Codes and scores of batches, of as many records as before and from the same ends."""
        counts = np.zeros((self.sizes.size, classes), dtype=np.int64)
        ends = (np.inf, -np.inf)
        with self._progress(int(self.sizes.sum())) as advance:
            for batch in batches:
                codes, scores = self._columns(batch, classes)
                counts += np.bincount(codes, minlength=counts.size).reshape(counts.shape)
                ends = scores.min(initial=ends[0]), scores.max(initial=ends[1])
                if np.any(counts.sum(axis=1) > self.sizes):
                    raise _OtherRecordsError
                yield codes, scores
                advance(batch.num_rows)
        if ends != self.ends:
            raise _OtherRecordsError
        self._check_sizes(counts.sum(axis=1), counts[:, 1::2].sum(axis=1))

    def _columns(self, batch: pa.RecordBatch, classes: int) -> tuple[Integers, Floats]:
        """``classes * client + class`` of a batch's records, and their scores."""
        scores = batch.column("score")
        values = scores.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        if scores.null_count or not np.all(np.isfinite(values)):
            raise _OtherRecordsError
        if "code" in batch.schema.names:
            codes = batch.column("code")
            if codes.null_count:
                raise _OtherRecordsError
            return codes.to_numpy().astype(np.int64), values
        found = batch.column("class").to_numpy(zero_copy_only=False).astype(np.int64)
        if np.any(found == statements.INVALID):
            raise _OtherRecordsError
        if self._relation.client is None:
            return found, values
        # a name is looked up once a batch
        listed = batch.column("client").cast(pa.string()).dictionary_encode()
        known = pc.index_in(listed.dictionary, pa.array(self._ids, pa.string()))
        if known.null_count or listed.null_count:
            raise _OtherRecordsError
        whose = known.to_numpy(zero_copy_only=False).astype(np.int64)[listed.indices]
        return classes * whose + found, values

    @property
    def _plain(self) -> statements.Relation:
        """The table without groups."""
        return replace(self._relation, group=None, groups=())

    @cached_property
    def _index(self) -> dict[str, int]:
        if self._relation.client is None:
            return {"": 0}
        return {name: index for index, name in enumerate(self._ids)}

    def _changed(self) -> DataError:
        """It says no number: messages are stored in logs, and counts are exact.

        Two readings at once tell a query that does not determine its records from a table that was
        written to. As many records as before are a sign of either.
        """
        statement = statements.summary_statement(self._plain)
        first, second = (sorted(self._engine.rows(statement), key=repr) for _ in range(2))
        wrong, remedy = f"{self._engine.source} changed between two steps of a run", ""
        if first != second:
            wrong, remedy = f"{self._engine.source} has other records each time it is read", ORDERED
        elif sum(int(row[1]) for row in first) == self.sizes.sum():
            wrong, remedy = f"{wrong}, or its query does not determine its records", ORDERED
        return DataError(with_remedy(wrong, remedy))

    def _check_sizes(self, sizes: Integers, positives: Integers) -> None:
        """Refuse other records than those that were there before."""
        same = np.array_equal(sizes, self.sizes) and np.array_equal(positives, self.positives)
        if not same:
            raise self._changed()

    def _summary(self) -> list[tuple[Any, ...]]:
        """The rows of ``summary_statement``, one a client, in order of the ids."""
        rows = self._engine.rows(statements.summary_statement(self._plain))
        if not rows:
            raise DataError(f"{self._engine.source} has no records")
        if any(row[0] is None for row in rows):
            raise DataError(
                f"column {self._relation.client!r} of {self._engine.source} has no value in some "
                "records"
            )
        if any(row[3] or row[4] for row in rows):
            raise self._first_wrong()
        # engines sort texts in their own ways
        return sorted(rows, key=lambda row: str(row[0]))

    def _check_groups(self) -> None:
        """Refuse a record that is in none of the agreed groups."""
        if self._relation.group is None:
            return
        unknown = self._engine.rows(statements.unknown_group_statement(self._relation))
        if not unknown:
            return
        called, source = self._relation.group, self._engine.source
        if unknown[0][0] is None:
            raise DataError(f"column {called!r} has no value in some records of {source}")
        listed = ", ".join(self.groups)
        raise DataError(f"{unknown[0][0]!r:.60} in a record of {source} is none of {listed}")

    def _check_persons(self) -> None:
        """Refuse records without a person; say on the screen that persons are at two clients."""
        if not self.knows_persons:
            return
        if self._engine.rows(no_person_statement(self._relation)):
            called = self._relation.person
            raise DataError(
                f"column {called!r} of {self._engine.source} has no value in some records: "
                f"{WITHOUT_PERSON}"
            )
        if self.sizes.size > 1:
            warn_of_spread(int(self._engine.rows(spread_statement(self._relation))[0][0]))

    def _first_wrong(self) -> DataError:
        """The error of a record that cannot be used, with its value."""
        relation, source = self._plain, self._engine.source
        rows = self._engine.rows(statements.first_wrong_statement(relation))
        if not rows:
            return self._changed()
        score, label, client = rows[0]
        where = f"{source}, client {client!r}" if relation.client else source
        if score is None:
            return DataError(_missing(relation.score, where))
        if not (reads_as_number(score) and np.isfinite(float(score))):
            return DataError(f"scores must be finite numbers, got {score} in a record of {where}")
        if label is None:
            return DataError(_missing(relation.label, where))
        return DataError(f"labels must be 0 or 1, got {label} in a record of {where}")


def require_columns(engine: Engine, kinds: Mapping[str, str], names: Sequence[str]) -> None:
    """Refuse a table that lacks a column.

    Parameters
    ----------
    engine : of the table.
    kinds : the kind of every column by its name.
    names : of the columns that are read.
    """
    for name in names:
        if name not in kinds:
            raise DataError(f"{engine.source} has {no_column(name, list(kinds))}")


ORDERED = (
    "order a query with LIMIT by values that differ in every record, and store what random() or a "
    "sample draws in a table first"
)
"""What to do about a query that does not determine its records."""

_NUMBERS = (statements.NUMBER, statements.INTEGER)

_KINDS: dict[str, tuple[Callable[[str], bool], str]] = {
    "score": (lambda kind: kind in _NUMBERS, "numbers"),
    "client": (lambda kind: kind != statements.BOOLEAN, "integers or strings"),
    "label": (lambda kind: kind in {*_NUMBERS, statements.BOOLEAN}, "0/1 or booleans"),
    "person": (
        lambda kind: kind.lower() in {statements.INTEGER, statements.TEXT, "uuid"},
        "integers or strings",
    ),
}
"""Which kinds a column may have, and what messages call them."""


def _missing(column: str | None, where: str) -> str:
    """The refusal of a record of a database without a value."""
    wrong = f"column {column!r} has no value in a record of {where}"
    return with_remedy(wrong, "fill it in, or leave such records out by a query")


def checked(engine: Engine, relation: statements.Relation) -> statements.Relation:
    """The relation with the kind of its labels, or an error that names a column."""
    kinds = engine.kinds(relation)
    named = (relation.score, relation.label, relation.client, relation.group, relation.person)
    require_columns(engine, kinds, [name for name in named if name is not None])
    for option, (accepts, description) in _KINDS.items():
        name = getattr(relation, option)
        if name is not None and not accepts(kinds[name]):
            raise DataError(
                f"column {name!r} of {engine.source} must hold {description}, "
                f"got type {kinds[name]}"
            )
    of_label, of_person = (
        statements.UNKNOWN if name is None else kinds[name]
        for name in (relation.label, relation.person)
    )
    return replace(relation, label_kind=of_label, person_kind=of_person)
