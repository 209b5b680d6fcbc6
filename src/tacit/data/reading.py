"""Reading clients from CSV and Parquet files and from data frames, through Arrow."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from tacit.data.clients import SECOND, Clients, DataError
from tacit.data.columns import (
    Place,
    as_large_text,
    column_of,
    is_id,
    is_label,
    is_number,
    labels_of,
    numbers_of,
)
from tacit.data.file_units import Units, check_scales, in_one_unit, units_of
from tacit.data.groups import Groups
from tacit.data.opening import opened_file, opened_text, reason, unchanging

FilePath = str | os.PathLike[str]

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_EXTENSIONS = (*_SEPARATORS, ".parquet", ".pq")
_PARQUET_BATCH_ROWS = 1 << 16
_PARQUET_BUFFER_BYTES = 1 << 20
_CSV_BLOCK_BYTES = 1 << 20
_MALFORMED_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True)
class _Columns:
    score: str
    label: str | None
    client: str | None
    second: str | None
    group: str | None = None

    @property
    def names(self) -> list[str]:
        wanted = (self.score, self.label, self.client, self.second, self.group)
        return list(dict.fromkeys(name for name in wanted if name is not None))


@dataclass(frozen=True, eq=False)
class _Records:
    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    ids: Any
    second: Any
    groups: Any


def read(
    paths: FilePath | Sequence[FilePath],
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    second: str | None = None,
    unit: Units = None,
) -> Clients:
    """Read clients from CSV or Parquet files.

    Only the needed columns are read, batch by batch: memory grows with those columns' records, and
    not with the other columns a file has.

    Parameters
    ----------
    paths : one file or several; the format follows the extension, which is .csv, .tsv (both also
        with .gz), .parquet or .pq.
    score : the column of scores, finite numbers; higher means more likely positive.
    label : the column of labels, 0/1 or true/false; None for records without labels, which are
        then all 0.
    client : the column of client ids, integers or strings; CSV ids are strings, as written. Clients
        come in order of file and then of id. Without it each file is one client, named by its stem,
        or by its path as given where several files have that stem.
    second : the column of a second value of each record, finite numbers; None where there is none.
    unit : what the scores are: ``"probability"`` (from 0 to 1), ``"percent"``, ``"log-odds"`` or
        ``"real"`` (any numbers, as ranking needs), or a mapping from paths as given to such words;
        a file that it leaves out holds probabilities. Scores of one unit stay as they are, those of
        several become probabilities. None names none.

    Raises
    ------
    DataError : when a file is missing, unreadable, without records, given twice, or changed while
        it was being read; when it lacks a column; when a score or second value is not a finite
        number, a label not 0 or 1, or a value missing, naming file, row and value; when two files
        hold the same client; when a score cannot be of its unit, units do not go together, or
        no unit is named and files with labels are evidently of different scales. Row 17 is a
        file's 17th record, the header not counted.

    Warns
    -----
    ScaleWarning : when files may be of different scales, or a file of another one than named.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clinic.csv")
    ...     _ = path.write_text("score,label\\n0.2,0\\n0.9,1\\n")
    ...     clients = read(path)
    >>> clients.names, clients.scores
    (('clinic',), array([0.2, 0.9]))
    """
    return _read_all(paths, _Columns(score, label, client, second), unit)[0]


def read_with_groups(
    paths: FilePath | Sequence[FilePath],
    group: str,
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    second: str | None = None,
    unit: Units = None,
    group_names: Sequence[str] | None = None,
) -> tuple[Clients, Groups]:
    """Read clients as ``read`` does, and to which public group each of their records belongs.

    Parameters
    ----------
    paths, score, label, client, second, unit : as ``read`` takes them.
    group : the column of groups, integers or strings; CSV groups are strings, as written.
    group_names : the agreed groups; None reads them off the records.

    Raises
    ------
    DataError : as ``read`` does; for a missing group, for too many, and for one that is not agreed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clinic.csv")
    ...     _ = path.write_text("score,label,ward\\n0.2,0,east\\n0.9,1,west\\n")
    ...     clients, groups = read_with_groups(path, "ward")
    >>> clients.records, groups.names, groups.of_record.tolist()
    (2, ('east', 'west'), [0, 1])
    """
    clients, groups = _read_all(paths, _Columns(score, label, client, second, group), unit)
    return clients, Groups.from_arrays(groups, names=group_names)


def _read_all(
    paths: FilePath | Sequence[FilePath], columns: _Columns, unit: Units
) -> tuple[Clients, NDArray[Any]]:
    """All files' clients, and the groups of their records in the same order."""
    sources = _distinct_sources(paths)
    units = units_of(sources, unit)
    records = (_read_file(source, columns) for source in sources)
    if columns.client is None:
        names = _file_names(sources)
        parts = [_one_client(part, name) for part, name in zip(records, names, strict=True)]
    else:
        parts = [_grouped(part) for part in records]
        _refuse_shared_clients(sources, [clients for clients, _ in parts])
    groups = np.concatenate([own for _, own in parts])
    clients = [found for found, _ in parts]
    if columns.label is not None:
        check_scales(sources, clients, units)
    clients = in_one_unit(clients, units)
    return clients[0] if len(parts) == 1 else Clients.concatenate(clients), groups


def columns_of_frame(
    frame: Any, score: str, label: str | None, client: str | None, second: str | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int8], NDArray[Any] | None, NDArray[np.float64] | None]:
    """The scores, labels, client ids and second values of a table, each of shape (M,).

    Parameters
    ----------
    frame : M rows of a pandas, polars or Arrow table, or anything with an Arrow stream.
    score, label : the names of the score and label columns; without labels they are all 0.
    client : the name of the column of client ids, integers or strings; without it ids are None.
    second : the name of the column of second values; without it they are None.

    Raises
    ------
    DataError : when the frame has no Arrow stream or lacks a column, or a column has the wrong
        type, a missing value, a score that is not finite or a label other than 0 and 1. Row 17 is
        the frame's 17th.

    Examples
    --------
    >>> table = pa.table({"score": [0.2, 0.9], "label": [False, True]})
    >>> columns_of_frame(table, "score", "label", None)
    (array([0.2, 0.9]), array([0, 1], dtype=int8), None, None)
    """
    source, columns = "the table", _Columns(score, label, client, second)
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            "a table must have an Arrow stream, as pandas 2.2, polars and Arrow tables do, "
            f"got {type(frame).__name__}"
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"{source} cannot be read as Arrow: {reason(error)}") from None
    _require_columns(table.column_names, columns, source)
    _require_types(table.schema, columns, source)
    records = _collect(table.select(columns.names).to_batches(), columns, source)
    ids = None if client is None else records.ids.to_numpy()
    return records.scores, records.labels, ids, records.second


def _distinct_sources(paths: FilePath | Sequence[FilePath]) -> list[str]:
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not given:
        raise DataError("at least one file is needed, got none")
    sources = [os.fspath(path) for path in given]
    seen: set[Path] = set()
    for source in sources:
        path = Path(source).resolve()
        if path in seen:
            raise DataError(f"duplicate file {source}")
        seen.add(path)
        _extension(source)
    return sources


def _extension(source: str) -> str:
    name = Path(source).name.lower()
    for extension in _EXTENSIONS:
        if name.endswith(extension):
            return extension
    raise DataError(f"files must end in {', '.join(_EXTENSIONS)}, got {source}")


def _file_names(sources: list[str]) -> list[str]:
    stems = [Path(source).name[: -len(_extension(source))] for source in sources]
    shared = Counter(stems)
    return [
        source if shared[stem] > 1 else stem for source, stem in zip(sources, stems, strict=True)
    ]


def _read_file(source: str, columns: _Columns) -> _Records:
    extension = _extension(source)
    with unchanging(source):
        return _collect(_batches(source, extension, columns), columns, source)


def _collect(batches: Iterable[pa.RecordBatch], columns: _Columns, source: str) -> _Records:
    """Decode batches one after the other and join what is kept of them."""
    parts: list[_Records] = []
    before = 0
    for batch in batches:
        parts.append(_decode(batch, columns, Place(source, before)))
        before += batch.num_rows
    if not before:
        raise DataError(f"{source} has no records")
    return _Records(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.labels for part in parts]),
        None if columns.client is None else pa.chunked_array([part.ids for part in parts]),
        None if columns.second is None else np.concatenate([part.second for part in parts]),
        np.concatenate([part.groups for part in parts]),
    )


def _batches(source: str, extension: str, columns: _Columns) -> Iterator[pa.RecordBatch]:
    with ExitStack() as opened:
        if extension not in _SEPARATORS:
            yield from _parquet_batches(opened_file(source, opened), columns, source)
            return
        header = _csv_header(opened_text(source, extension, opened), _SEPARATORS[extension])
        if header:
            stream = opened_text(source, extension, opened)
            yield from _csv_batches(stream, header, _SEPARATORS[extension], columns, source)


def _parquet_batches(
    opened: pa.NativeFile, columns: _Columns, source: str
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 -- a party with a CSV file does without

    file = pq.ParquetFile(opened, buffer_size=_PARQUET_BUFFER_BYTES)
    _require_columns(file.schema_arrow.names, columns, source)
    _require_types(file.schema_arrow, columns, source)
    for batch in file.iter_batches(_PARQUET_BATCH_ROWS, columns=columns.names):
        batch.validate(full=True)
        yield batch


def _csv_batches(
    stream: pa.NativeFile, header: list[str], separator: str, columns: _Columns, source: str
) -> Iterator[pa.RecordBatch]:
    _require_columns(header, columns, source)
    try:
        yield from _open_csv(stream, separator, columns)
    except pa.ArrowInvalid as error:
        malformed = _MALFORMED_ROW.search(str(error))
        if malformed is None:
            raise
        row, fields, found = map(int, malformed.groups())
        raise DataError(
            f"a record must have {fields} fields, got {found} in {source}, row {row - 1}"
        ) from None


def _csv_header(stream: pa.NativeFile, separator: str) -> list[str]:
    """The names in the first line, up to a block long; none when nothing follows it."""
    begun = stream.read(_CSV_BLOCK_BYTES)
    line, end, followed = begun.partition(b"\n")
    if not (followed or stream.read(1)):
        return []
    return next(csv.reader([(line + end).decode("utf-8-sig")], delimiter=separator), [])


def _open_csv(
    stream: pa.NativeFile, separator: str, columns: _Columns
) -> pa_csv.CSVStreamingReader:
    """A reader of the needed columns as text; its errors count rows, as it has no threads."""
    return pa_csv.open_csv(
        stream,
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=_CSV_BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            include_columns=columns.names,
            column_types={name: pa.string() for name in columns.names},
            strings_can_be_null=True,
            null_values=[""],
        ),
    )


def _require_columns(found: list[str], columns: _Columns, source: str) -> None:
    for name in columns.names:
        if found.count(name) > 1:
            raise DataError(f"{source} has {found.count(name)} columns named {name!r}")
        if name not in found:
            listed = ", ".join(repr(other) for other in found) or "none"
            raise DataError(f"{source} has no column {name!r}, its columns are {listed}")


def _require_types(schema: pa.Schema, columns: _Columns, source: str) -> None:
    wanted: list[tuple[str | None, Callable[[Any], bool], str]] = [
        (columns.score, is_number, "numbers"),
        (columns.label, is_label, "0/1 or booleans"),
        (columns.client, is_id, "integers or strings"),
        (columns.second, is_number, "numbers"),
        (columns.group, is_id, "integers or strings"),
    ]
    for name, accepts, description in (entry for entry in wanted if entry[0] is not None):
        kind = schema.field(name).type
        values = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (accepts(values) or pa.types.is_null(values)):
            raise DataError(f"column {name!r} of {source} must hold {description}, got type {kind}")


def _decode(batch: pa.RecordBatch, columns: _Columns, place: Place) -> _Records:
    def column(name: str) -> Any:
        return column_of(batch, name, place)

    return _Records(
        numbers_of(column(columns.score), "scores", place),
        np.zeros(batch.num_rows, dtype=np.int8)
        if columns.label is None
        else labels_of(column(columns.label), place),
        None if columns.client is None else as_large_text(column(columns.client)),
        None if columns.second is None else numbers_of(column(columns.second), SECOND, place),
        np.zeros(0) if columns.group is None else _as_names(column(columns.group)),
    )


def _as_names(column: Any) -> NDArray[Any]:
    """Groups as integers or as strings."""
    values = column.to_numpy(zero_copy_only=False)
    return values if values.dtype.kind in "iu" else values.astype(np.str_)


def _one_client(records: _Records, name: str) -> tuple[Clients, NDArray[Any]]:
    one = Clients.from_arrays(records.scores, records.labels, second=records.second)
    return replace(one, names=(name,)), records.groups


def _grouped(records: _Records) -> tuple[Clients, NDArray[Any]]:
    """The records' clients in order of their ids, and their records' groups."""
    encoded = records.ids.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    holders = rank[encoded.indices.to_numpy()]
    numbered = Clients.from_arrays(records.scores, records.labels, holders, records.second)
    named = replace(numbered, names=tuple(map(str, encoded.dictionary.take(order).to_pylist())))
    groups = records.groups
    return named, groups[np.argsort(holders, kind="stable")] if groups.size else groups


def _refuse_shared_clients(sources: list[str], parts: list[Clients]) -> None:
    holder: dict[str, str] = {}
    for source, part in zip(sources, parts, strict=True):
        for name in part.names:
            first = holder.setdefault(name, source)
            if first != source:
                raise DataError(f"duplicate client {name!r}, found in both {first} and {source}")
