"""Tables in memory as arrays of scores, labels, client ids, second values and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.data.arrays import SCORES, SECOND
from tacit.data.columns import (
    Location,
    as_large_text,
    column_of,
    is_id,
    is_label,
    is_number,
    is_text,
    labels_of,
    numbers_of,
)
from tacit.data.errors import DataError
from tacit.data.opening import reason
from tacit.data.persons import as_persons

MAX_LISTED = 20
"""Names of columns that an error lists."""


@dataclass(frozen=True)
class Columns:
    """The columns that are read; None for one that is not.

    Parameters
    ----------
    score, label, client, second, group, person : the columns' names.
    """

    score: str
    label: str | None
    client: str | None
    second: str | None
    group: str | None = None
    person: str | None = None

    @property
    def names(self) -> list[str]:
        """The names of the columns, each once."""
        names = (self.score, self.label, self.client, self.second, self.group, self.person)
        return list(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, eq=False)
class Records:
    """The values of the columns, each of shape (M,).

    Parameters
    ----------
    scores, labels : of the records; without labels they are all 0.
    ids, second : the client ids, and second values; None without.
    groups : the groups; empty without.
    persons : digests of whose records they are; None without.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    ids: Any
    second: Any
    groups: Any
    persons: Any = None


def columns_of_frame(
    frame: Any,
    score: str,
    label: str | None,
    client: str | None,
    second: str | None = None,
    person: str | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int8], Any, Any, Any]:
    """The scores, labels, client ids, second values and persons of a table, each of shape (M,).

    Parameters
    ----------
    frame : M rows of a pandas, polars or Arrow table, or anything with an Arrow stream.
    score, label : the names of the score and label columns; without labels they are all 0.
    client : the name of the column of client ids, integers or strings; without it ids are None.
    second : the name of the column of second values; without it they are None.
    person : the name of the column of persons, integers or strings; without it they are None.

    Raises
    ------
    DataError : when the frame has no Arrow stream or lacks a column, or a column has the wrong
        type, a missing value, a score that is not finite or a label other than 0 and 1. Row 17 is
        the frame's 17th.

    Examples
    --------
    >>> table = pa.table({"score": [0.2, 0.9], "label": [False, True]})
    >>> columns_of_frame(table, "score", "label", None)
    (array([0.2, 0.9]), array([0, 1], dtype=int8), None, None, None)
    """
    source, columns = "the table", Columns(score, label, client, second, person=person)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            "a table must have an Arrow stream, as pandas 2.2, polars and Arrow tables do, "
            f"got {type(frame).__name__}"
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{source} cannot be read as Arrow: {reason(error)}") from None
    require_columns(table.column_names, columns, source)
    require_types(table.schema, columns, source)
    records = collect(table.select(columns.names).to_batches(), columns, source)
    ids = None if client is None else records.ids.to_numpy()
    return records.scores, records.labels, ids, records.second, records.persons


def collect(batches: Iterable[pa.RecordBatch], columns: Columns, source: str) -> Records:
    """Decode batches one after the other and join what is kept of them."""
    parts: list[Records] = []
    before = 0
    for batch in batches:
        parts.append(_decode(batch, columns, Location(source, before)))
        before += batch.num_rows
    if not before:
        raise DataError(f"{source} has no records")
    return Records(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        None if columns.client is None else pa.chunked_array([part.ids for part in parts]),
        None if columns.second is None else np.concatenate([part.second for part in parts]),
        np.concatenate([part.groups for part in parts]),
        None if columns.person is None else np.concatenate([part.persons for part in parts]),
    )


def require_columns(header: list[str], columns: Columns, source: str) -> None:
    """Refuse a source that lacks a column, or has it twice."""
    for name in columns.names:
        if header.count(name) > 1:
            raise DataError(f"{source} has {header.count(name)} columns named {name!r}")
        if name not in header:
            raise DataError(f"{source} has no column {name!r}, its columns are {_listed(header)}")


def _listed(names: Sequence[str]) -> str:
    """The first of some names, and how many there are more."""
    shown = [f"{name!r:.60}" for name in names[:MAX_LISTED]]
    more = [f"{len(names) - MAX_LISTED} more"] if len(names) > MAX_LISTED else []
    return ", ".join([*shown, *more]) or "none"


def require_types(schema: pa.Schema, columns: Columns, source: str) -> None:
    """Refuse columns whose type does not suit their use."""
    requirements: list[tuple[str | None, Callable[[Any], bool], str]] = [
        (columns.score, is_number, "numbers"),
        (columns.label, is_label, "0/1 or booleans"),
        (columns.client, is_id, "integers or strings"),
        (columns.second, is_number, "numbers"),
        (columns.group, is_id, "integers or strings"),
        (columns.person, is_id, "integers or strings"),
    ]
    for name, accepts, description in (entry for entry in requirements if entry[0] is not None):
        kind = schema.field(name).type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (accepts(values) or pa.types.is_null(values)):
            raise DataError(f"column {name!r} of {source} must hold {description}, got type {kind}")


def _decode(batch: pa.RecordBatch, columns: Columns, location: Location) -> Records:
    def column(name: str) -> Any:
        return column_of(batch, name, location)

    return Records(
        numbers_of(column(columns.score), SCORES, location),
        np.zeros(batch.num_rows, dtype=np.int8)
        if columns.label is None
        else labels_of(column(columns.label), location),
        None if columns.client is None else as_large_text(column(columns.client)),
        None if columns.second is None else numbers_of(column(columns.second), SECOND, location),
        np.zeros(0) if columns.group is None else _as_names(column(columns.group)),
        None if columns.person is None else _persons_of(batch, columns.person, location),
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
