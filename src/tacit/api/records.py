"""Clients from what people have at hand: frames, arrays, files, or clients already."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.data.clients import Clients
from tacit.data.errors import DataError

ACCEPTED = (
    "records must be Clients, a data frame, a pair (scores, labels) of arrays, a triple (scores, "
    "labels, client ids), a dict of frames by client, a list of frames, or file names"
)
PAIR, TRIPLE = 2, 3


@dataclass(frozen=True)
class ColumnNames:
    """Which columns of a frame are read.

    Parameters
    ----------
    score, label : of the scores and labels.
    client : of the clients' ids; None where all records of a frame are one client's.
    unit : what the scores are; None where it is not said.
    person : of whose record it is; None where nothing is said.
    """

    score: str = "score"
    label: str = "label"
    client: str | None = None
    unit: str | None = None
    person: str | None = None


def clients_of(records: Any, columns: ColumnNames) -> Clients:
    """The clients of records in any accepted form.

    Parameters
    ----------
    records : ``Clients``; a table with an Arrow stream; a pair of arrays of shape (M,), or a triple
        with client ids; a mapping of client names to tables, or of columns to arrays; a sequence of
        tables, a client each; a file name, or several, a client each.
    columns : which columns of tables and files are read.

    Raises
    ------
    TypeError : for anything else; the message says what is accepted.
    DataError : for records that cannot be evaluated.

    Examples
    --------
    >>> clients_of(([0.1, 0.9, 0.4], [0, 1, 0]), ColumnNames()).records
    3
    """
    if isinstance(records, Clients):
        return records
    if _is_table(records):
        return _of_table(records, columns)
    if isinstance(records, Mapping):
        return _of_mapping(records, columns)
    listed = [records] if isinstance(records, str | os.PathLike) else records
    if isinstance(listed, Sequence) and listed:
        if all(isinstance(each, str | os.PathLike) for each in listed):
            return _of_files(listed, columns)
        if all(map(_is_table, listed)):
            return _named({str(number): each for number, each in enumerate(listed)}, columns)
    if isinstance(records, tuple) and len(records) in (PAIR, TRIPLE):
        return _of_arrays(records, columns)
    raise TypeError(f"{ACCEPTED}; got {_called(records)}")


def _is_table(value: Any) -> bool:
    return hasattr(value, "__arrow_c_stream__")


def _of_table(table: Any, columns: ColumnNames) -> Clients:
    return Clients.from_frame(
        table,
        columns.score,
        columns.label,
        columns.client,
        unit=columns.unit,
        person=columns.person,
    )


def _of_files(paths: Sequence[str | os.PathLike[str]], columns: ColumnNames) -> Clients:
    from tacit.data.tables.reading import read  # noqa: PLC0415 -- readers of files are slow to import

    return read(
        paths,
        columns.score,
        columns.label,
        columns.client,
        unit=columns.unit,
        person=columns.person,
    )


def _of_mapping(records: Mapping[Any, Any], columns: ColumnNames) -> Clients:
    """A table by client, or an array by column."""
    if records and all(map(_is_table, records.values())):
        return _named({str(name): table for name, table in records.items()}, columns)
    return _of_table(pa.table({str(name): values for name, values in records.items()}), columns)


def _named(tables: Mapping[str, Any], columns: ColumnNames) -> Clients:
    """One client a table, with the mapping's names."""
    if columns.client is not None:
        raise DataError(f"each table is a client: leave client={columns.client!r} out")
    parts = [replace(_of_table(each, columns), names=(name,)) for name, each in tables.items()]
    return Clients.concatenate(parts)


def _of_arrays(arrays: tuple[Any, ...], columns: ColumnNames) -> Clients:
    scores, labels, *ids = arrays
    _refuse_swapped(scores, labels)
    return Clients.from_arrays(scores, labels, ids[0] if ids else None, unit=columns.unit)


def _refuse_swapped(scores: Any, labels: Any) -> None:
    """Refuse a pair whose first array is labels and whose second is not, as elsewhere in Python."""
    first, second = np.asarray(scores), np.asarray(labels)
    kinds = first.dtype.kind, second.dtype.kind
    if set("".join(kinds)) - set("biuf") or not first.size:
        return
    if np.isin(first, (0, 1)).all() and not np.isin(second, (0, 1)).all():
        raise DataError(
            "the first array has only 0 and 1 and the second has other numbers: the order is "
            "(scores, labels)"
        )


def _called(value: Any) -> str:
    """What a value is, in an error."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{type(value).__name__}"
