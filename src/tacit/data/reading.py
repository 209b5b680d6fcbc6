"""Clients from CSV, Parquet and Feather files, and from frames.

Records of Parquet files that are a client each are numbered over all files, and any range of them
can be read separately.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tacit.arrays import Integers
from tacit.data import tables
from tacit.data.categories import Categories, Groups, is_permuted
from tacit.data.clients import Clients
from tacit.data.columns import (
    Columns,
    Records,
    Rule,
    check_rule,
    decoded,
    left_out_records,
    readable,
    records_of,
)
from tacit.data.errors import DataError
from tacit.data.form import LIKELY_NEGATIVE, PLAIN, FileForm
from tacit.data.persons import spread_persons, warn_of_spread
from tacit.data.ragged import by_place, client_order
from tacit.data.scales import ByFile, Units, by_file, check_scales, in_one_unit, units_of
from tacit.data.units import converted

FilePath = str | os.PathLike[str]


@dataclass(frozen=True)
class FileColumns:
    """Which columns of files are read, and how: what ``read`` takes besides the files.

    Parameters
    ----------
    score, label, client, second, unit, person, missing, form : as ``read`` takes them.
    """

    score: ByFile = "score"
    label: ByFile | None = "label"
    client: str | None = None
    second: str | None = None
    unit: Units = None
    person: str | None = None
    missing: Rule = "refuse"
    form: FileForm | Mapping[str, FileForm] = PLAIN

    def of_files(
        self,
        paths: FilePath | Sequence[FilePath],
        group: str | None = None,
        classes: Sequence[str] = (),
        scores: tuple[str, ...] = (),
    ) -> dict[str, Columns]:
        """What is read of each file, by its path as given.

        Parameters
        ----------
        paths : the files.
        group : the column of groups or classes; None for none.
        classes : their agreed names; empty for public groups.
        scores : the columns of scores of every class; empty where a record has one score.

        Raises
        ------
        DataError : for a file that is given twice, a path that is not among the files, a rule for
            missing values that there is not, and columns of scores that are not the classes'.
        """
        _check_classes(scores, classes)
        drop = check_rule(self.missing)
        listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not listed:
            raise DataError("at least one file is needed, got none")
        sources = [os.fspath(path) for path in listed]
        each = zip(
            sources,
            by_file(sources, self.score, "score", "a column of scores"),
            by_file(sources, self.label, "label", "a column of labels"),
            by_file(sources, self.form, PLAIN, "a form"),
            units_of(sources, self.unit),
            strict=True,
        )
        tables.refuse_twice(sources)
        shared = (self.client, self.second, group, self.person)
        return {
            source: Columns(scores or (score,), label, *shared, drop, form, unit, tuple(classes))
            for source, score, label, form, unit in each
        }


def read(
    paths: FilePath | Sequence[FilePath],
    score: ByFile = "score",
    label: ByFile | None = "label",
    client: str | None = None,
    second: str | None = None,
    unit: Units = None,
    person: str | None = None,
    missing: Rule = "refuse",
    *,
    form: FileForm | Mapping[str, FileForm] = PLAIN,
) -> Clients:
    """Read clients from CSV, Parquet or Feather files.

    Only the needed columns are read, batch by batch: memory grows with those columns' records, and
    not with the other columns a file has.

    Parameters
    ----------
    paths : one file or several; the format follows the extension, which is .csv, .tsv (both also
        with .gz or .bz2), .parquet, .pq, .feather or .arrow. Text is UTF-8, or UTF-16 with a mark.
    score : the column of scores, finite numbers, whole ones below 2**53 in size; higher means more
        likely positive. A mapping from paths as given names a file's own column; one that it leaves
        out has ``"score"``.
    label : the column of labels, 0/1 or true/false, or a mapping as for scores; None for records
        without labels, which are then all 0.
    client : the column of client ids, integers or strings; CSV ids are strings, as written. Records
        of one id are one client's, whatever their files; clients come in order of their ids.
        Without it each file is one client, named by its stem, or by its path as given where several
        files have that stem.
    second : the column of a second value of each record, finite numbers; None where there is none.
    unit : what the scores are: ``"probability"`` (from 0 to 1), ``"percent"``, ``"log-odds"`` or
        ``"real"`` (any numbers, as ranking needs), or a mapping from paths as given to such words;
        a file that it leaves out holds probabilities. Scores of one unit stay as they are, those of
        several become probabilities. None names none.
    person : the column that says whose record it is, integers or strings, none of them missing;
        None where nothing is said. It is read as a key (``tacit.data.persons``).
    form : how values are written that are text: words for labels, separator, decimal mark; for all
        files, or a mapping from paths.
    missing : what is done with records without a score, second value or label: ``"refuse"`` raises
        an error, ``"drop"`` leaves them out and counts them (``Clients.left_out``). Missing is what
        is null, NaN, or in CSV empty or a word such as NA, n/d or null.

    Raises
    ------
    DataError : when a file is missing, unreadable, without records, given twice, or changed while
        it was being read; when it lacks a column; when a score or second value is not a finite
        number, a label not 0 or 1, or a value missing, naming file, row and value; when a score
        cannot be of its unit, units do not go together, or no unit is named and files with labels
        are evidently of different scales. Row 17 is a file's 17th record, the header not counted;
        of a file of text the line is named too.

    Warns
    -----
    ScaleWarning : when files may be of different scales, or a file of another one than named.
    PersonWarning : when persons have records at two clients or more.
    MissingWarning : when all records of a client are left out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clinic.csv")
    ...     _ = path.write_text("score,label\\n0.2,0\\n0.9,1\\n")
    ...     clients = read(path)
    >>> clients.names, clients.scores
    (('clinic',), array([0.2, 0.9]))
    """
    columns = FileColumns(score, label, client, second, unit, person, missing, form)
    return read_columns(columns.of_files(paths))[0]


def read_with_groups(
    paths: FilePath | Sequence[FilePath],
    group: str,
    *,
    group_names: Sequence[str] | None = None,
    **columns: Any,
) -> tuple[Clients, Groups]:
    """Read clients as ``read`` does, and to which public group each of their records belongs.

    Parameters
    ----------
    paths : as ``read`` takes them.
    group : the column of groups, integers or strings; CSV groups are strings, as written.
    group_names : the agreed groups; None reads them off the records.
    columns : score, label, client, second, unit, person, missing and form, as ``read`` takes them.

    Raises
    ------
    DataError : as ``read`` does; for a missing group, for too many, and for one that is not agreed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clinic.csv")
    ...     _ = path.write_text("score,label,ward\\n0.2,0,east\\n0.9,1,west\\n")
    ...     clients, groups = read_with_groups(path, "ward")
    >>> clients.records, groups.names, groups.of_record.tolist()
    (2, ('east', 'west'), [0, 1])
    """
    clients, groups = read_columns(FileColumns(**columns).of_files(paths, group))
    return clients, Groups.from_arrays(groups, names=group_names)


def _check_classes(scores: tuple[str, ...], names: Sequence[str]) -> None:
    """Refuse columns of scores that are not those of the classes, in their order.

    Parameters
    ----------
    scores : the columns' names; empty where a record has one score.
    names : the classes.

    Raises
    ------
    DataError : for another number of them, and for the classes' names in another order.
    """
    if scores and not 2 <= len(scores) == len(names):
        raise DataError(
            f"every class needs a column of scores, got {len(scores)} columns for "
            f"{len(names)} classes"
        )
    if is_permuted(scores, tuple(names)):
        raise DataError(
            f"columns of scores must be in the order of the classes, {', '.join(names)}, "
            f"got {', '.join(scores)}"
        )


def clients_of_table(table: tables.Table, columns: Columns) -> Clients:
    """Clients of a frame, or of the answer of a database.

    Parameters
    ----------
    table : the table.
    columns : what is read of it.

    Raises
    ------
    DataError : when the table lacks a column, or a column has the wrong type, a missing value, a
        score that is not finite or a label other than 0 and 1. Row 17 is the table's 17th.
    """
    records = records_of(table, columns)
    return clients_of_records(records, columns, table.source)[0].in_named_unit(columns.unit)


def read_columns(columns: Mapping[str, Columns]) -> tuple[Clients, Any]:
    """All files' clients, and the groups of their records in the same order.

    Parameters
    ----------
    columns : what is read of each file.

    Raises
    ------
    DataError : as ``read`` does.
    """
    for source in columns:
        tables.extension_of(source)
    return together({source: read_file(source, each) for source, each in columns.items()}, columns)


def read_file(
    source: str, columns: Columns, problems: list[tables.Problem] | None = None
) -> Records:
    """The records of one file.

    Parameters
    ----------
    source : the file.
    columns : what is read of it, and how it is written.
    problems : as ``records_of`` takes it.

    Raises
    ------
    DataError : as ``read`` does.
    """
    with tables.opened_table(source, columns.form, columns.names, problems is not None) as table:
        return records_of(table, columns, problems)


def together(records: Mapping[str, Records], columns: Mapping[str, Columns]) -> tuple[Clients, Any]:
    """The clients of several files, and the groups of their records in the same order.

    Parameters
    ----------
    records : of each file.
    columns : what was read of it.

    Raises
    ------
    DataError : for files that cannot be read together.
    """
    sources, first = list(columns), next(iter(columns.values()))
    units = [each.unit for each in columns.values()]
    _refuse_strange_words(records)
    parts = [
        clients_of_records(records[source], columns[source], source, (name,))
        for source, name in zip(sources, tables.file_names(sources), strict=True)
    ]
    clients = [part for part, _ in parts]
    if first.label is not None:
        check_scales(sources, clients, units)
    clients = in_one_unit(clients, units)
    groups = None if first.group is None else np.concatenate([groups for _, groups in parts])
    if len(parts) == 1:
        made = clients[0]
    elif first.client is None:
        made = Clients.concatenate(clients)
    else:
        are_numbers = all(pa.types.is_integer(part.ids.type) for part in records.values())
        made, order = _by_id(clients, int if are_numbers else str)
        groups = None if groups is None else groups[order]
    if made.persons is not None:
        warn_of_spread(spread_persons(made.persons, made.offsets))
    return made, groups


def _by_id(parts: Sequence[Clients], kind: type[int | str]) -> tuple[Clients, Integers]:
    """The clients of several files in order of their ids, and the order of the records.

    Records of one id are one client's, whatever their files.

    Parameters
    ----------
    parts : the clients of each file.
    kind : what the ids are.
    """
    names = sorted({name for part in parts for name in part.names}, key=kind)
    place = {name: index for index, name in enumerate(names)}
    owners = np.array([place[name] for part in parts for name in part.names])
    apart = Clients.concatenate([replace(part, names=(), _checked=True) for part in parts])
    order = client_order(owners[apart.client_of_record], len(names))
    sizes = np.bincount(owners, apart.sizes, len(names)).astype(np.int64)
    made = apart.taken(order, np.concatenate(([0], np.cumsum(sizes))))
    left_out = apart.left_out
    if left_out is not None:
        left_out = np.stack([np.bincount(owners, each, len(names)) for each in left_out])
        left_out = left_out.astype(np.int64)
    return replace(made, names=tuple(names), left_out=left_out), order


def _refuse_strange_words(records: Mapping[str, Records]) -> None:
    """Refuse a file whose labels are one word that means 0 here alone: it may mean 1."""
    known = {part.negative for part in records.values() if part.labels.any()} - {None}
    for source, part in records.items():
        word = part.negative
        if word is None or part.labels.any() or word in LIKELY_NEGATIVE:
            continue
        if known and word not in known:
            raise DataError(
                f"all labels of {source} are {word!r}, which other files do not have: "
                f"if it means 1, add --positive {word}"
            )


def clients_of_records(
    records: Records, columns: Columns, source: str, names: tuple[str, ...] = ()
) -> tuple[Clients, Any]:
    """The clients of one source in order of their ids, and their records' groups.

    Parameters
    ----------
    records : as they were decoded.
    columns : what was read.
    source : the file or table.
    names : of the only client, where no column names clients.
    """
    scores, groups, whose = records.scores, records.groups, None
    categories = None if not columns.classes else _categories(records, columns.classes)
    if scores.ndim > 1:
        scores = np.zeros(len(scores))
    order: Any = slice(None)
    offsets = np.array([0, len(scores)], dtype=np.int64)
    if records.ids is not None:
        encoded = records.ids.combine_chunks().dictionary_encode()
        ascending = pc.sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(ascending.size, dtype=np.int64)
        rank[ascending] = np.arange(ascending.size)
        whose = rank[encoded.indices.to_numpy()]
        names = tuple(map(str, encoded.dictionary.take(ascending).to_pylist()))
        order, offsets = by_place(whose, len(names))
        groups = None if groups is None else groups[order]
    values: dict[str, Any] = {"scores": scores, "labels": records.labels}
    values |= {"second": records.second, "persons": records.persons}
    present = {name: each[order] for name, each in values.items() if each is not None}
    left_out = left_out_records(records, names, source)
    made = Clients(offsets=offsets, names=names, left_out=left_out, **present)
    return (made if categories is None else made.with_categories(categories, whose)), groups


def _categories(records: Records, names: tuple[str, ...]) -> Categories:
    """The classes of records with a score of each, or their private groups."""
    if records.scores.ndim > 1:
        return Categories.of_values(names, records.groups, records.scores)
    return Categories(names, Groups.from_arrays(records.groups, names=names).of_record)


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
            scores = converted(scores, unit, self.target)
        offsets = np.arange(scores.size + 1)
        return Clients(scores, made.labels, offsets, unit=self.target, _checked=True)

    def _batches(self, group: RowGroup, start: int, stop: int) -> Iterator[Records]:
        """The records of a group that are in a range."""
        names, place = self.columns.names, group.start
        with tables.unchanging(group.file), tables.parquet_file(group.file) as file:
            for batch in file.iter_batches(
                tables.BATCH_ROWS, row_groups=[group.index], columns=names
            ):
                low, high = max(start - place, 0), min(stop - place, batch.num_rows)
                if low < high:
                    location = tables.Location(group.file, group.before + place - group.start + low)
                    yield decoded(batch.slice(low, high - low), self.columns, location)
                place += batch.num_rows
                if place >= stop:
                    return


def _group_sizes(file: str, columns: Columns) -> list[int]:
    """The numbers of records of a file's row groups."""
    with tables.unchanging(file), tables.parquet_file(file) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        table = tables.Table(file, schema.names, iter, schema)
        readable(table, columns, tables.Location(file))
        return [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
