"""The records of a table behind an engine: counted by its statements, or read in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data import form as forms
from tacit.data.categories import Categories
from tacit.data.checking import MUST_BE_EXACT, ROUNDED, SCORES
from tacit.data.clients import Clients
from tacit.data.columns import HELD, left_out_by_client
from tacit.data.engines import relations, statements
from tacit.data.engines.persons import counted_relation, no_person_statement, spread_statement
from tacit.data.engines.pieces import ConstantTable, ScorePieces, counting, summing
from tacit.data.engines.ranking import Ascending
from tacit.data.engines.relations import plain_text
from tacit.data.engines.stored import Stored, batch_of, image_of
from tacit.data.errors import DataError, no_column
from tacit.data.persons import DIGESTS, DIGITS, WITHOUT_PERSON, marks, warn_of_spread
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
    records : the table, or a query in brackets, as SQL; what is drawn of it is another.
    most_cells : the most cells for which a statement is faster than a pass over the records.
    """

    source: str
    records: str
    most_cells: int

    @property
    def dialect(self) -> relations.Dialect:
        """In which statements are written."""

    def kinds(self, relation: relations.Relation) -> dict[str, str]:
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


Read = tuple[Integers, list[NDArray[Any]]]
"""``classes * client + class`` of some records; their scores, second values, scores by class, and
persons as ``tacit.data.persons`` has them."""


Known = Mapping[str, Any] | None
"""The attributes of ``EngineRecords`` as it was when the records were read before; or nothing."""


class ChangedError(DataError):
    """Records that changed since they were summarised."""


class _OtherRecordsError(Exception):
    """A batch is not of the records that were summarised."""


class EngineRecords(Stored):
    """The records of a table, as ``StoredClients`` asks for them.

    Its attributes are those of ``Stored``; anyone who makes it may give the clients other names.

    Parameters
    ----------
    engine : runs the statements.
    relation : the table.
    names : what clients are called, by their ids and in the order of their answers; the ids of
        others stay. Without a column of clients the only id is empty.
    progress : begins a pass over so many records, and receives how many more were read.
    categories : what the groups are called; empty for as they are stored.
    kept : the ids of clients that stay though they have no record; None for none.
    known : the attributes in ``SUMMARY``, so that no record is read. Each pass over the records
        refuses others than these.

    Raises
    ------
    DataError : for a column that is not there or of another type, a table without records, and a
        record whose label is not 0 or 1, whose score is not a finite number, or that lacks a value.
    """

    SUMMARY = (*Stored.SUMMARY, "ids", "first_ends")
    ends: tuple[float, float]
    ids: tuple[str, ...]
    first_ends: tuple[float, float]

    def __init__(
        self,
        engine: Engine,
        relation: relations.Relation,
        names: Mapping[str, str],
        progress: Progress = unshown,
        *,
        categories: tuple[str, ...] = (),
        kept: Sequence[str] = (),
        known: Known = None,
    ) -> None:
        self._engine, self._progress = engine, progress
        self._relation, self._named = checked(engine, relation), names
        self.groups, self.by_class = categories or relation.groups, bool(relation.by_class)
        self.knows_persons = relation.person is not None
        if known is not None:
            vars(self).update(known)
            return
        self.sizes = np.zeros(0, dtype=np.int64)
        rows = self._summary(kept)
        self.ids = tuple(rows)
        called = tuple(self._named.get(each, each) for each in self.ids)
        self.names = called if any(called) else ()
        numbers = [(int(row[1]), int(row[2])) for row in rows.values()]
        self.sizes, self.positives = np.array(numbers, dtype=np.int64).T
        self._check_persons()

        lows, highs = ([row[at] for row in rows.values() if row[1]] for at in (5, 6))
        self.first_ends = float(min(lows, default=np.inf)), float(max(highs, default=-np.inf))
        largest = max(map(abs, self.first_ends))
        rounds = self._relation.score_kind in (relations.INTEGER, relations.DECIMAL)
        if rounds and np.inf > largest >= ROUNDED:
            raise DataError(f"{SCORES} {MUST_BE_EXACT}, got {largest:.0f} in {engine.source}")
        others = [self._viewed(score=name, kept=self.ids) for name in relation.by_class[1:]]
        ends = [self.first_ends, *(each.ends for each in others)]
        self.ends = min(low for low, _ in ends), max(high for _, high in ends)
        _ = self.second

    @cached_property
    def second(self) -> EngineRecords | None:
        """The same records by their second values."""
        name = self._relation.second
        return None if name is None else self._viewed(score=name, kept=self.ids)

    def counted(self, per_person: int, seed: bytes) -> EngineRecords:
        """The records that count where a person is the unit of privacy, as ``Clients.counted``."""
        names, called = marks(self.names, self.sizes.size), None
        if names == [""]:
            called = "''"
        elif self._relation.client is not None and names != list(self.ids):
            pairs = zip(map(plain_text, self.ids), map(plain_text, names), strict=True)
            cases = " ".join(f"WHEN {known} THEN {name}" for known, name in pairs)
            called = f"CASE {self._relation.dialect.quoted('client')} {cases} END"
        counted = counted_relation(self._relation, per_person, seed, called)
        engine, table = self._engine.kept(f"SELECT * FROM {counted.table}")
        named = dict(zip(self.ids, self.names, strict=False))
        # everyone who had a record has one that counts
        made = replace(counted, table=table)
        return EngineRecords(engine, made, named, self._progress, categories=self.groups)

    def pooled(self) -> EngineRecords:
        """The same records as those of one client."""
        made = replace(self._relation, client=None)
        return EngineRecords(self._engine, made, {}, self._progress, categories=self.groups)

    def of_group(self, group: int, all_clients: bool = False) -> EngineRecords:
        """The records of a group, at the clients that hold some of them, or at all clients.

        Parameters
        ----------
        group : an index into ``groups``.
        all_clients : keep clients without any record of the group, with no records.
        """
        where = (str(self._relation.group), self._relation.groups[group])
        return self._viewed(
            where=(*self._relation.where, where), kept=self.ids if all_clients else ()
        )

    def _viewed(self, kept: Sequence[str] = (), **changes: Any) -> EngineRecords:
        """Some of these records, or these by another score."""
        plain = {"group": None, "groups": (), "second": None, "by_class": (), "person": None}
        relation = replace(self._relation, **(plain | changes))
        return EngineRecords(self._engine, relation, self._named, self._progress, kept=kept)

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
        made = counting(relation, edges, self.first_ends, int(self.sizes.sum()))
        for client, found, cell, records in self._engine.rows(*made):
            whose = self._index.get(str(client))
            if whose is None or found == relations.INVALID or cell in (relations.INVALID, None):
                raise self._changed()
            stratum, label = divmod(int(found), 2)
            # several bins are of the last cell
            counts[stratum, 1 - label, min(int(cell), edges.size), whose] += records
        self._check_sizes(counts.sum(axis=(0, 1, 2)), counts[:, 0].sum(axis=(0, 1)))
        filled = np.flatnonzero(counts.sum(axis=(0, 1, 3)))
        ends = np.searchsorted(edges, self.first_ends, side="right")
        if filled.size and not np.array_equal(filled[[0, -1]], ends):
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
        ends, image_ends = image_of(maps, np.array(self.first_ends)), (np.inf, -np.inf)
        made = summing(mapped, pieces, (float(ends[0]), float(ends[1])), int(self.sizes.sum()))
        known = np.zeros((3, self.sizes.size), dtype=np.int64)
        for client, *numbers, low, high in self._engine.rows(*made):
            whose = self._index.get(str(client))
            if whose is None:
                raise self._changed()
            known[:, whose] = [int(number) for number in numbers]
            image_ends = min(image_ends[0], low), max(image_ends[1], high)
        self._check_sizes(known[0], known[1])
        if image_ends != tuple(ends):
            raise self._changed()
        return known[2]

    def batches(self) -> Iterator[Clients]:
        """All records in batches.

        Raises
        ------
        DataError : where the table changed since it was summarised.
        """
        classes, relation = 2 * self._relation.strata, self._relation
        statement = statements.records_statement(relation)
        for codes, (scores, *more) in self._read(statement, (), classes):
            whose, found = np.divmod(codes, classes)
            columns: dict[str, Any] = {"scores": scores, "labels": (found & 1).astype(np.int8)}
            if relation.person is not None:
                columns["persons"] = more.pop()
            if relation.second is not None:
                columns["second"] = more.pop(0)
            if len(self.groups) > 1:
                matrix = np.stack(more, axis=1) if more else None
                columns["categories"] = Categories(self.groups, found >> 1, matrix)
            yield batch_of(columns, whose, self.sizes.size)

    def ascending(self) -> Iterator[Ascending]:
        """All records in ascending order of their scores, by the engine's own sort.

        Raises
        ------
        DataError : where the table changed since it was summarised.
        """
        tables = []
        if self._relation.dialect.given_tables and self._relation.client is not None:
            whose = np.arange(self.sizes.size, dtype=np.int32)
            columns = {"client": np.array(self.ids), "whose": whose}
            tables.append(ConstantTable("tacit_clients", columns))
        for codes, (scores,) in self._read(statements.ascending_statement(self._plain), tables):
            yield scores, codes

    def _read(
        self, statement: str, tables: Sequence[ConstantTable] = (), classes: int = 2
    ) -> Iterator[Read]:
        """The rows of a statement's answer, as many as before."""
        try:
            yield from self._as_before(self._engine.batches(statement, tables), classes)
            return
        except _OtherRecordsError:
            pass
        # an error refers to the engine's reader, which must be closed before another statement
        raise self._changed()

    def _as_before(self, batches: Iterator[pa.RecordBatch], classes: int) -> Iterator[Read]:
        """Batches of as many records as before, and with scores from the same ends."""
        counts = np.zeros((self.sizes.size, classes), dtype=np.int64)
        ends = (np.inf, -np.inf)
        with self._progress(int(self.sizes.sum())) as advance:
            for batch in batches:
                codes, numbers = self._columns(batch, classes)
                counts += np.bincount(codes, minlength=counts.size).reshape(counts.shape)
                ends = numbers[0].min(initial=ends[0]), numbers[0].max(initial=ends[1])
                if np.any(counts.sum(axis=1) > self.sizes):
                    raise _OtherRecordsError
                yield codes, numbers
                advance(batch.num_rows)
        if ends != self.first_ends:
            raise _OtherRecordsError
        self._check_sizes(counts.sum(axis=1), counts[:, 1::2].sum(axis=1))

    def _columns(self, batch: pa.RecordBatch, classes: int) -> Read:
        """``classes * client + class`` of a batch's records, and their numbers."""
        values = list[NDArray[Any]]()
        for name in batch.schema.names:
            if name == "person":
                digests = batch.column(name).cast(pa.binary()).cast(pa.binary(DIGITS))
                values.append(np.frombuffer(digests.buffers()[1], DIGESTS)[: len(digests)])
            elif name not in (relations.CLIENT, relations.CLASS, "code"):
                column = batch.column(name)
                numbers = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
                if column.null_count or not np.all(np.isfinite(numbers)):
                    raise _OtherRecordsError
                values.append(numbers)
        if "code" in batch.schema.names:
            codes = batch.column("code")
            if codes.null_count:
                raise _OtherRecordsError
            return codes.to_numpy().astype(np.int64), values
        found = batch.column("class").to_numpy(zero_copy_only=False).astype(np.int64)
        if np.any(found == relations.INVALID):
            raise _OtherRecordsError
        if self._relation.client is None:
            return found, values
        # a name is looked up once a batch
        listed = batch.column("client").cast(pa.string()).dictionary_encode()
        known = pc.index_in(listed.dictionary, pa.array(self.ids, pa.string()))
        if known.null_count or listed.null_count:
            raise _OtherRecordsError
        whose = known.to_numpy(zero_copy_only=False).astype(np.int64)[listed.indices]
        return classes * whose + found, values

    @property
    def _plain(self) -> relations.Relation:
        """The table without groups and persons."""
        return replace(self._relation, group=None, groups=(), person=None)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.ids)}

    def _changed(self) -> ChangedError:
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
        return ChangedError(forms.with_remedy(wrong, remedy))

    def _check_sizes(self, sizes: Integers, positives: Integers) -> None:
        """Refuse other records than those that were there before."""
        same = np.array_equal(sizes, self.sizes) and np.array_equal(positives, self.positives)
        if not same:
            raise self._changed()

    def _summary(self, kept: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """The rows of ``summary_statement`` by the clients' ids, in the order of the clients."""
        rows = self._engine.rows(statements.summary_statement(self._relation))
        if not rows and not kept:
            complete = " complete" if self._relation.needed else ""
            raise DataError(f"{self._engine.source} has no{complete} records")
        if any(row[0] is None for row in rows):
            raise DataError(
                f"column {self._relation.client!r} of {self._engine.source} has no value in some "
                "records"
            )
        if any(row[3] or row[4] for row in rows):
            raise self._first_wrong()
        found = {str(row[0]): row for row in rows}
        if not found.keys() <= set(kept or found):
            raise self._changed()
        # engines sort texts in their own ways
        rest = _in_order(found, self._engine, self._relation, self._relation.client)
        ids = kept or [*(each for each in self._named if each in found), *rest]
        return {each: found.get(each, (each, 0, 0, 0, 0, None, None)) for each in ids}

    @cached_property
    def left_out(self) -> Integers | None:
        """Records of each client that were left out, as ``Clients.left_out`` has them."""
        if not self._relation.needed or self._relation.where:
            return None
        rows = self._engine.rows(statements.left_out_statement(self._plain))
        counts = {"" if row[0] is None else str(row[0]): row[1:] for row in rows}
        return left_out_by_client(counts, self.ids, self._engine.source)

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
        relation, source = self._relation, self._engine.source
        rows = self._engine.rows(statements.first_wrong_statement(relation))
        if not rows:
            return self._changed()
        score, label, client, group = rows[0]
        where = f"{source}, client {client!r}" if relation.client else source
        stored = {relation.score: score, relation.label: label, relation.group: group}
        for name, value in stored.items():
            if name is not None and value is None:
                wrong = f"column {name!r} has no value in a record of {where}"
                return DataError(forms.with_remedy(wrong, FILL_IN))
        if not (forms.reads_as_number(score) and np.isfinite(float(score))):
            return DataError(f"scores must be finite numbers, got {score} in a record of {where}")
        if relation.group is not None and group not in relation.groups:
            listed = ", ".join(self.groups)
            return DataError(f"{group!r:.60} in a record of {where} is none of {listed}")
        return DataError(f"labels must be 0 or 1, got {label} in a record of {where}")


ORDERED = (
    "order a query with LIMIT by values that differ in every record, and store what random() or a "
    "sample draws in a table first"
)
"""What to do about a query that does not determine its records."""

FILL_IN = "fill it in, or leave such records out by a query"
"""What to do about a record of a database without a value."""

_NUMBERS = (relations.NUMBER, relations.DECIMAL, relations.INTEGER)

_KINDS = {
    "score": _NUMBERS,
    "second": _NUMBERS,
    "label": (*_NUMBERS, relations.BOOLEAN, relations.TEXT),
    "person": (relations.INTEGER, relations.TEXT, "uuid", "UUID"),
}
"""Which kinds a column may have; one of clients or groups may have any but ``_NO_KEYS``."""

_NO_KEYS = (relations.BOOLEAN, relations.NUMBER, relations.DECIMAL)


def checked(
    engine: Engine, relation: relations.Relation, form: forms.FileForm = forms.PLAIN
) -> relations.Relation:
    """The relation with what its labels are and mean, or an error that names a column.

    Parameters
    ----------
    engine, relation : the table.
    form : how labels are written that are words.
    """
    kinds = engine.kinds(relation)
    read = [(option, getattr(relation, option)) for option in HELD]
    read += [("score", name) for name in relation.by_class]
    for option, name in read:
        if name is None:
            continue
        if name not in kinds:
            raise DataError(f"{engine.source} has {no_column(name, list(kinds))}")
        kind, allowed = kinds[name], _KINDS.get(option)
        if kind in _NO_KEYS if allowed is None else kind not in allowed:
            must = f"must hold {HELD[option][1]}, got type {kind}"
            raise DataError(f"column {name!r} of {engine.source} {must}")
    known = {None: relations.UNKNOWN} | kinds
    options = ("score", "label", "person")
    held: dict[str, Any] = {f"{each}_kind": known[getattr(relation, each)] for each in options}
    made = replace(relation, **held)
    if made.words is None and (form.positive or made.label_kind == relations.TEXT):
        return replace(made, words=_words(engine, made, form))
    return made


def _words(
    engine: Engine, relation: relations.Relation, form: forms.FileForm
) -> tuple[tuple[str, int], ...]:
    """The different labels as text, and what each means.

    Raises
    ------
    DataError : for one that means nothing, unless records without a label are left out and it is a
        word that stands for none.
    """
    label, needed = str(relation.label), relation.needed
    complete = replace(relation, needed=tuple(name for name in needed if name != label))
    values = values_of(engine, complete, label)
    if label in needed:
        values = [value for value in values if forms.canonical(value) not in forms.MISSING_WORDS]
    meant, negative = forms.meanings(values, form)
    must, remedy = forms.label_requirement(values, form, negative)
    for value, meaning in zip(values, meant, strict=True):
        if meaning == forms.NO_LABEL:
            wrong = f"{must}, got {value!r:.60} in a record of {engine.source}"
            raise DataError(forms.with_remedy(wrong, remedy))
    if not values:
        raise DataError(f"column {label!r} of {engine.source} has no value in any record")
    return tuple(zip(values, meant, strict=True))


def values_of(engine: Engine, relation: relations.Relation, column: str) -> list[str]:
    """The different values of a column as text, in order; without that of records without one.

    Raises
    ------
    DataError : for more than ``MAX_WORDS`` of them.
    """
    rows = engine.rows(statements.values_statement(relation, column, forms.MAX_WORDS + 2))
    values = [str(value) for (value,) in rows if value is not None]
    if len(values) > forms.MAX_WORDS:
        raise DataError(
            f"column {column!r} of {engine.source} has more than {forms.MAX_WORDS:,} values"
        )
    return _in_order(values, engine, relation, column)


def _in_order(
    values: Iterable[str], engine: Engine, relation: relations.Relation, column: str | None
) -> list[str]:
    """A column's values in the order of memory: whole numbers by size, others as texts."""
    are_whole = column is not None and engine.kinds(relation)[column] == relations.INTEGER
    return sorted(values, key=int if are_whole else None)
