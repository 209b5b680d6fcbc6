"""Reading clients from CSV and Parquet files and from data frames, through Arrow."""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.errors import DataError, NotFiniteError
from tacit.data.file_units import Units, check_scales, in_one_unit, units_of
from tacit.data.frames import Columns, Records, collect, require_columns, require_types
from tacit.data.groups import Groups
from tacit.data.opening import opened_file, opened_text, unchanging
from tacit.data.persons import PersonWarning, spread_persons
from tacit.data.units import ENDS_OF_LOG_ODDS, LOG_ODDS

FilePath = str | os.PathLike[str]

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_EXTENSIONS = (*_SEPARATORS, ".parquet", ".pq")
_PARQUET_BATCH_ROWS = 1 << 16
_PARQUET_BUFFER_BYTES = 1 << 20
_CSV_BLOCK_BYTES = 1 << 20
_MALFORMED_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_LONG_ROW = "straddles two block boundaries"


def read(
    paths: FilePath | Sequence[FilePath],
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    second: str | None = None,
    unit: Units = None,
    person: str | None = None,
) -> Clients:
    """Read clients from CSV or Parquet files.

    Only the needed columns are read, batch by batch: memory grows with those columns' records, and
    not with the other columns a file has.

    Parameters
    ----------
    paths : one file or several; the format follows the extension, which is .csv, .tsv (both also
        with .gz), .parquet or .pq.
    score : the column of scores, finite numbers, whole ones below 2**53 in size; higher means more
        likely positive.
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
    person : the column that says whose record it is, integers or strings, none of them missing;
        None where nothing is said. It is read as a key (``tacit.data.persons``).

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
    PersonWarning : when persons have records at two clients or more.

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
    return _read_all(paths, Columns(score, label, client, second, person=person), unit)[0]


def read_with_groups(
    paths: FilePath | Sequence[FilePath],
    group: str,
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    second: str | None = None,
    unit: Units = None,
    group_names: Sequence[str] | None = None,
    person: str | None = None,
) -> tuple[Clients, Groups]:
    """Read clients as ``read`` does, and to which public group each of their records belongs.

    Parameters
    ----------
    paths, score, label, client, second, unit, person : as ``read`` takes them.
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
    columns = Columns(score, label, client, second, group, person)
    clients, groups = _read_all(paths, columns, unit)
    return clients, Groups.from_arrays(groups, names=group_names)


def _read_all(
    paths: FilePath | Sequence[FilePath], columns: Columns, unit: Units
) -> tuple[Clients, NDArray[Any]]:
    """All files' clients, and the groups of their records in the same order."""
    sources = _distinct_sources(paths)
    units = units_of(sources, unit)
    records = (
        _read_file(source, columns, named) for source, named in zip(sources, units, strict=True)
    )
    if columns.client is None:
        names = _file_names(sources)
        parts = [_one_client(part, name) for part, name in zip(records, names, strict=True)]
    else:
        parts = [_grouped(part) for part in records]
        _refuse_shared_clients(sources, [clients for clients, _ in parts])
    groups = np.concatenate([part_groups for _, part_groups in parts])
    clients = [part_clients for part_clients, _ in parts]
    if columns.label is not None:
        check_scales(sources, clients, units)
    clients = in_one_unit(clients, units)
    together = clients[0] if len(parts) == 1 else Clients.concatenate(clients)
    _warn_of_spread_persons(together)
    return together, groups


def _warn_of_spread_persons(clients: Clients) -> None:
    """Say on the reader's screen alone how many persons are at two clients: it is about records."""
    persons = clients.persons
    number = 0 if persons is None else spread_persons(persons, clients.offsets)
    if number:
        warnings.warn(
            f"{number:,} person{'s' * (number > 1)} with records at two clients or more: the "
            "guarantee is about a person's records at one client, and does not cover them",
            PersonWarning,
            stacklevel=4,
        )


def _distinct_sources(paths: FilePath | Sequence[FilePath]) -> list[str]:
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not listed:
        raise DataError("at least one file is needed, got none")
    sources = [os.fspath(path) for path in listed]
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


def _read_file(source: str, columns: Columns, unit: str | None) -> Records:
    extension = _extension(source)
    try:
        with unchanging(source):
            return collect(_batches(source, extension, columns), columns, source)
    except NotFiniteError as error:
        if unit != LOG_ODDS:
            raise
        raise NotFiniteError(f"{error}; {ENDS_OF_LOG_ODDS}") from None


def _batches(source: str, extension: str, columns: Columns) -> Iterator[pa.RecordBatch]:
    with ExitStack() as closing:
        if extension not in _SEPARATORS:
            yield from _parquet_batches(opened_file(source, closing), columns, source)
            return
        begun = opened_text(source, extension, closing)
        header = _csv_header(begun, _SEPARATORS[extension], source)
        if header:
            stream = opened_text(source, extension, closing)
            yield from _csv_batches(stream, header, _SEPARATORS[extension], columns, source)


def _parquet_batches(
    stream: pa.NativeFile, columns: Columns, source: str
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 -- a party with a CSV file does without

    file = pq.ParquetFile(
        stream, buffer_size=_PARQUET_BUFFER_BYTES, page_checksum_verification=True
    )
    require_columns(file.schema_arrow.names, columns, source)
    require_types(file.schema_arrow, columns, source)
    for batch in file.iter_batches(_PARQUET_BATCH_ROWS, columns=columns.names):
        batch.validate(full=True)
        yield batch


def _csv_batches(
    stream: pa.NativeFile, header: list[str], separator: str, columns: Columns, source: str
) -> Iterator[pa.RecordBatch]:
    require_columns(header, columns, source)
    try:
        yield from _open_csv(stream, separator, columns)
    except pa.ArrowInvalid as error:
        if _LONG_ROW in str(error):
            raise DataError(
                f"a record of {source} must have at most {_CSV_BLOCK_BYTES:,} bytes, got more; "
                "is a quotation mark not closed?"
            ) from None
        malformed = _MALFORMED_ROW.search(str(error))
        if malformed is None:
            raise
        row, fields, actual = map(int, malformed.groups())
        raise DataError(
            f"a record must have {fields} fields, got {actual} in {source}, row {row - 1}"
        ) from None


def _csv_header(stream: pa.NativeFile, separator: str, source: str) -> list[str]:
    """The names in the first line, up to a block long; none when nothing follows it."""
    begun = stream.read(_CSV_BLOCK_BYTES)
    line, end, followed = begun.partition(b"\n")
    if not end and b"\r" in line.removesuffix(b"\r"):
        raise DataError(f"lines of {source} must end in LF or CR LF, got CR alone")
    if not (followed or stream.read(1)):
        return []
    return next(csv.reader([(line + end).decode("utf-8-sig")], delimiter=separator), [])


def _open_csv(stream: pa.NativeFile, separator: str, columns: Columns) -> pa_csv.CSVStreamingReader:
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


def _one_client(records: Records, name: str) -> tuple[Clients, NDArray[Any]]:
    client = Clients.from_arrays(records.scores, records.labels, second=records.second)
    return replace(client, names=(name,), persons=records.persons), records.groups


def _grouped(records: Records) -> tuple[Clients, NDArray[Any]]:
    """The records' clients in order of their ids, and their records' groups."""
    encoded = records.ids.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    client_indices = rank[encoded.indices.to_numpy()]
    numbered = Clients.from_arrays(records.scores, records.labels, client_indices, records.second)
    by_client = np.argsort(client_indices, kind="stable")
    groups, persons = records.groups, records.persons
    named = replace(
        numbered,
        names=tuple(map(str, encoded.dictionary.take(order).to_pylist())),
        persons=None if persons is None else persons[by_client],
    )
    return named, groups[by_client] if groups.size else groups


def _refuse_shared_clients(sources: list[str], parts: list[Clients]) -> None:
    source_of: dict[str, str] = {}
    for source, part in zip(sources, parts, strict=True):
        for name in part.names:
            first = source_of.setdefault(name, source)
            if first != source:
                raise DataError(f"duplicate client {name!r}, found in both {first} and {source}")
