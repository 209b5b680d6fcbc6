"""Tables in memory as arrays of scores, labels, client ids, second values and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.data.checking import SCORES, SECOND
from tacit.data.errors import DataError, no_column
from tacit.data.files.form import DROPPED, PLAIN, FileForm
from tacit.data.persons import as_persons
from tacit.data.tables.columns import (
    Location,
    as_large_text,
    column_of,
    is_id,
    is_label,
    is_text,
    is_written_number,
    labels_of,
    numbers_of,
    reason,
)
from tacit.data.tables.missing import COMPLETE, check_rule, incompleteness, left_out_of


@dataclass(frozen=True)
class Columns:
    """The columns that are read; None for one that is not.

    Parameters
    ----------
    score, label, client, second, group, person : the columns' names.
    form : how their values are written.
    negative : the word that means a label of 0, once it was read; None before, and where labels
        are 0 and 1.
    drop : whether records without a score, second value or label are left out.
    """

    score: str
    label: str | None
    client: str | None
    second: str | None
    group: str | None = None
    person: str | None = None
    drop: bool = False
    form: FileForm = PLAIN
    negative: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns, each once."""
        return list(dict.fromkeys(self.by_option.values()))

    @property
    def by_option(self) -> dict[str, str]:
        """The columns that are read, by what they hold."""
        named = {
            "score": self.score,
            "label": self.label,
            "client": self.client,
            "second": self.second,
            "groups": self.group,
            "person": self.person,
        }
        return {option: name for option, name in named.items() if name is not None}


@dataclass(frozen=True, eq=False)
class Records:
    """The values of the columns, each of shape (M,).

    Parameters
    ----------
    scores, labels : of the records; without labels they are all 0.
    ids, second : the client ids, and second values; None without.
    groups : the groups; empty without.
    persons : digests of whose records they are; None without.
    negative : the word that means a label of 0; None where it is not known.
    missing, missing_ids : of records that were left out, what each lacks, shape (D,), and its
        client id; None where none may be.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    ids: Any
    second: Any
    groups: Any
    persons: Any = None
    negative: str | None = None
    missing: Any = None
    missing_ids: Any = None


def columns_of_frame(
    frame: Any,
    score: str,
    label: str | None,
    client: str | None,
    second: str | None = None,
    person: str | None = None,
    missing: str = "refuse",
    *,
    form: FileForm = PLAIN,
) -> tuple[NDArray[np.float64], NDArray[np.int8], Any, Any, Any, Any]:
    """The scores, labels, client ids, second values and persons of a table, each of shape (M,).

    The last value is the number of records that were left out, by what they lack and by client,
    shape (2, K); None where none may be.

    Parameters
    ----------
    frame : M rows of a pandas, polars or Arrow table, or anything with an Arrow stream.
    score, label : the names of the score and label columns; without labels they are all 0.
    client : the name of the column of client ids, integers or strings; without it ids are None.
    second : the name of the column of second values; without it they are None.
    person : the name of the column of persons, integers or strings; without it they are None.
    form : how values are written that are text.
    missing : ``"refuse"`` or ``"drop"``, as ``tacit.read`` takes it.

    Raises
    ------
    DataError : when the frame has no Arrow stream or lacks a column, or a column has the wrong
        type, a missing value, a score that is not finite or a label other than 0 and 1. Row 17 is
        the frame's 17th.

    Examples
    --------
    >>> table = pa.table({"score": [0.2, 0.9], "label": [False, True]})
    >>> columns_of_frame(table, "score", "label", None)
    (array([0.2, 0.9]), array([0, 1], dtype=int8), None, None, None, None)
    """
    source = "the table"
    columns = Columns(score, label, client, second, person=person, form=form)
    columns = replace(columns, drop=check_rule(missing))
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            "a table must have an Arrow stream, as pandas 2.2, polars and Arrow tables do, "
            f"got {type(frame).__name__}"
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{source} cannot be read as Arrow: {reason(error)}") from None
    require_types(table.schema, columns, source)
    records = collect(table.select(columns.names).to_batches(), columns, source)
    ids = None if client is None else records.ids.to_numpy()
    names = [] if ids is None else np.unique(ids).tolist()
    left_out = left_out_records(records, names, source)
    return records.scores, records.labels, ids, records.second, records.persons, left_out


def left_out_records(
    records: Records, names: Sequence[Any], source: str
) -> NDArray[np.int64] | None:
    """How many records each client lacks, shape (2, K); None where none may be left out.

    Parameters
    ----------
    records : as they were collected.
    names : of the clients that have records, in their order; empty where the source is one client.
    source : the file or table.
    """
    if records.missing is None:
        return None
    if records.missing_ids is None:
        return left_out_of(records.missing, [source] * records.missing.size, [source], source)
    texts = [str(name) for name in names]
    return left_out_of(records.missing, records.missing_ids.to_pylist(), texts, source)


def collect(
    batches: Iterable[pa.RecordBatch],
    columns: Columns,
    source: str,
    line_of: Callable[[int], int | None] | None = None,
) -> Records:
    """Decode batches one after the other and join what is kept of them."""
    parts: list[Records] = []
    before = 0
    for batch in batches:
        parts.append(_decode(batch, columns, Location(source, before, line_of)))
        columns = replace(columns, negative=parts[-1].negative)
        before += batch.num_rows
    if not before:
        raise DataError(f"{source} has no records")
    if not any(part.scores.size for part in parts):
        raise DataError(f"{source} has no complete record: all {before:,} lack a score or label")
    return Records(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        None if columns.client is None else pa.chunked_array([part.ids for part in parts]),
        None if columns.second is None else np.concatenate([part.second for part in parts]),
        np.concatenate([part.groups for part in parts]),
        None if columns.person is None else np.concatenate([part.persons for part in parts]),
        columns.negative,
        np.concatenate([part.missing for part in parts]) if columns.drop else None,
        pa.chunked_array([part.missing_ids for part in parts])
        if columns.drop and columns.client is not None
        else None,
    )


def require_columns(header: list[str], columns: Columns, source: str) -> None:
    """Refuse a source that lacks a column, or has it twice."""
    for name in columns.names:
        if header.count(name) > 1:
            raise DataError(f"{source} has {header.count(name)} columns named {name!r}")
        if name not in header:
            raise DataError(f"{source} has {no_column(name, header)}")


def require_types(schema: pa.Schema, columns: Columns, source: str) -> None:
    """Refuse a source without a column, or with one that is there twice or of an unfit type."""
    require_columns(schema.names, columns, source)
    requirements: list[tuple[str | None, Callable[[Any], bool], str]] = [
        (columns.score, is_written_number, "numbers"),
        (columns.label, is_label, "0/1, booleans or words"),
        (columns.client, is_id, "integers or strings"),
        (columns.second, is_written_number, "numbers"),
        (columns.group, is_id, "integers or strings"),
        (columns.person, is_id, "integers or strings"),
    ]
    for name, accepts, description in (entry for entry in requirements if entry[0] is not None):
        kind = schema.field(name).type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (accepts(values) or pa.types.is_null(values)):
            raise DataError(
                f"column {name!r} of {source} must hold {description}, got type {values}"
            )


def _decode(batch: pa.RecordBatch, columns: Columns, location: Location) -> Records:
    if not columns.drop:
        return _decode_complete(batch, columns, location)
    values = [batch.column(name) for name in (columns.score, columns.second) if name is not None]
    kinds = incompleteness(values, None if columns.label is None else batch.column(columns.label))
    inside = np.flatnonzero(kinds == COMPLETE)
    complete = batch.take(pa.array(inside))
    ids = None
    if columns.client is not None:
        ids = as_large_text(batch.column(columns.client)).take(pa.array(np.flatnonzero(kinds)))
    decoded = _decode_complete(complete, columns, replace(location, rows=inside))
    return replace(decoded, missing=kinds[kinds != COMPLETE], missing_ids=ids)


def _decode_complete(batch: pa.RecordBatch, columns: Columns, location: Location) -> Records:
    def column(name: str, remedy: str = "") -> Any:
        return column_of(batch, name, location, remedy)

    form = columns.form
    scores = numbers_of(column(columns.score, DROPPED), SCORES, location, form)
    labels, negative = np.zeros(batch.num_rows, dtype=np.int8), columns.negative
    if columns.label is not None:
        labels, negative = labels_of(column(columns.label, DROPPED), location, form, negative)
    second = columns.second
    return Records(
        scores,
        labels,
        None if columns.client is None else as_large_text(column(columns.client)),
        None if second is None else numbers_of(column(second, DROPPED), SECOND, location, form),
        np.zeros(0) if columns.group is None else _as_names(column(columns.group)),
        None if columns.person is None else _persons_of(batch, columns.person, location),
        negative,
    )


def _persons_of(batch: pa.RecordBatch, name: str, location: Location) -> NDArray[np.bytes_]:
    """Whose records they are; the column's values end here."""
    persons = column_of(batch, name, location)
    empty = np.flatnonzero(
        [not text.strip() for text in persons.to_pylist()] if is_text(persons.type) else ()
    )
    if empty.size:
        raise DataError(f"column {name!r} has no value in {location.row(int(empty[0]))}")
    return as_persons(persons.to_numpy(zero_copy_only=False))


def _as_names(column: Any) -> NDArray[Any]:
    """Groups as integers or as strings."""
    values = column.to_numpy(zero_copy_only=False)
    return values if values.dtype.kind in "iu" else values.astype(np.str_)
