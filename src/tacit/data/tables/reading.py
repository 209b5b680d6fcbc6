"""Reading clients from CSV and Parquet files, through Arrow."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.errors import DataError, NotFiniteError
from tacit.data.file_units import ByFile, Units, by_file, check_scales, in_one_unit, units_of
from tacit.data.files.form import LIKELY_NEGATIVE, PLAIN, FileForm, remedy_of_name
from tacit.data.files.text import TextFile, open_csv, parsing_error
from tacit.data.groups import Groups
from tacit.data.persons import PersonWarning, spread_persons
from tacit.data.tables import frames
from tacit.data.tables.columns import PACKINGS, opened_file, unchanging
from tacit.data.tables.missing import Rule, check_rule
from tacit.data.units import ENDS_OF_LOG_ODDS, LOG_ODDS, PERCENT

FilePath = str | os.PathLike[str]

SEPARATORS = {
    f"{kind}{packing}": separator
    for kind, separator in ((".csv", ","), (".tsv", "\t"))
    for packing in ("", *PACKINGS)
}
_FEATHER = (".feather", ".arrow")
RECORD_FILES = (*SEPARATORS, ".parquet", ".pq", *_FEATHER)
"""How the names of files of records end."""
_PARQUET_BATCH_ROWS = 1 << 16
_PARQUET_BUFFER_BYTES = 1 << 20


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
    form : how values are written that are text: words for labels, separator, decimal mark; for all
        files, or a mapping from paths.
    missing : what is done with records without a score, second value or label: ``"refuse"`` raises
        an error, ``"drop"`` leaves them out and counts them (``Clients.left_out``). Missing is what
        is null, NaN, or in CSV empty or a word such as NA, n/d or null.

    Raises
    ------
    DataError : when a file is missing, unreadable, without records, given twice, or changed while
        it was being read; when it lacks a column; when a score or second value is not a finite
        number, a label not 0 or 1, or a value missing, naming file, row and value; when two files
        hold the same client; when a score cannot be of its unit, units do not go together, or
        no unit is named and files with labels are evidently of different scales. Row 17 is a
        file's 17th record, the header not counted; of a file of text the line is named too.

    Warns
    -----
    ScaleWarning : when files may be of different scales, or a file of another one than named.
    PersonWarning : when persons have records at two clients or more.
    MissingWarning : when all records of a client are left out.

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
    sources = _distinct_sources(paths)
    named = frames.Columns("", "", client, second, person=person, drop=check_rule(missing))
    return _read_all(sources, columns_of(sources, named, score, label, form), unit)[0]


def read_with_groups(
    paths: FilePath | Sequence[FilePath],
    group: str,
    score: ByFile = "score",
    label: ByFile | None = "label",
    client: str | None = None,
    second: str | None = None,
    unit: Units = None,
    group_names: Sequence[str] | None = None,
    person: str | None = None,
    missing: Rule = "refuse",
    *,
    form: FileForm | Mapping[str, FileForm] = PLAIN,
) -> tuple[Clients, Groups]:
    """Read clients as ``read`` does, and to which public group each of their records belongs.

    Parameters
    ----------
    paths, score, label, client, second, unit, person, missing, form : as ``read`` takes them.
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
    sources = _distinct_sources(paths)
    named = frames.Columns("", "", client, second, group, person, check_rule(missing))
    columns = columns_of(sources, named, score, label, form)
    clients, groups = _read_all(sources, columns, unit)
    return clients, Groups.from_arrays(groups, names=group_names)


def columns_of(
    sources: Sequence[str],
    columns: frames.Columns,
    score: ByFile,
    label: ByFile | None,
    form: FileForm | Mapping[str, FileForm],
) -> list[frames.Columns]:
    """What is read of each file.

    Parameters
    ----------
    sources : the files' paths as given.
    columns : the columns that have the same name in all files.
    score, label, form : as ``read`` takes them.

    Raises
    ------
    DataError : for a path that is not among the files.
    """
    scores = by_file(sources, score, "score", "a column of scores")
    labels = by_file(sources, label, "label", "a column of labels")
    forms = by_file(sources, form, PLAIN, "a form")
    return [
        replace(columns, score=each, label=its_label, form=its_form)
        for each, its_label, its_form in zip(scores, labels, forms, strict=True)
    ]


def _read_all(
    sources: list[str], columns: Sequence[frames.Columns], unit: Units
) -> tuple[Clients, NDArray[Any]]:
    """All files' clients, and the groups of their records in the same order."""
    units = units_of(sources, unit)
    records = list(map(read_file, sources, columns, units))
    _refuse_strange_words(sources, records)
    if columns[0].client is None:
        names = file_names(sources)
        parts = [
            _one_client(part, name, source)
            for part, name, source in zip(records, names, sources, strict=True)
        ]
    else:
        parts = [_grouped(part, source) for part, source in zip(records, sources, strict=True)]
        _refuse_shared_clients(sources, [clients for clients, _ in parts])
    groups = np.concatenate([part_groups for _, part_groups in parts])
    clients = [part_clients for part_clients, _ in parts]
    if columns[0].label is not None:
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
        extension_of(source)
    return sources


def extension_of(source: str) -> str:
    """The end of a file's name, which says how it is written.

    Raises
    ------
    DataError : for another end, with the remedy.
    """
    name = Path(source).name.lower()
    for extension in RECORD_FILES:
        if name.endswith(extension):
            return extension
    raise DataError(
        f"files must end in {', '.join(RECORD_FILES)}, got {source}{remedy_of_name(name)}"
    )


def file_names(sources: Sequence[str]) -> tuple[str, ...]:
    """What clients are called that are a file each: stems, or paths where stems are the same."""
    stems = [Path(source).name[: -len(extension_of(source))] for source in sources]
    shared = Counter(stems)
    return tuple(
        source if shared[stem] > 1 else stem for source, stem in zip(sources, stems, strict=True)
    )


def read_file(source: str, columns: frames.Columns, unit: str | None) -> frames.Records:
    """The records of one file.

    Parameters
    ----------
    source : the file.
    columns : what is read of it, and how it is written.
    unit : what its scores are; None where that is not said.

    Raises
    ------
    DataError : as ``read`` does.
    """
    extension = extension_of(source)
    form = replace(columns.form, percent=columns.form.percent or unit == PERCENT)
    columns = replace(columns, form=form)
    try:
        with unchanging(source), ExitStack() as closing:
            if extension not in SEPARATORS:
                read_binary = _feather_batches if extension in _FEATHER else _parquet_batches
                stream = opened_file(source, closing)
                return frames.collect(read_binary(stream, columns, source), columns, source)
            text = TextFile.begun(source, extension, form, columns.names, closing)
            batches = _csv_batches(text, columns, closing)
            return frames.collect(batches, columns, source, text.line_of)
    except NotFiniteError as error:
        if unit != LOG_ODDS:
            raise
        raise NotFiniteError(f"{error}; {ENDS_OF_LOG_ODDS}") from None


def table_of(
    stream: pa.NativeFile, extension: str, names: Sequence[str]
) -> tuple[list[str], pa.Table]:
    """The header of a Parquet or Feather file, and those of its columns that are named once."""
    import pyarrow.parquet as pq  # noqa: PLC0415 -- a party with a CSV file does without

    if extension in _FEATHER:
        table = pa.ipc.open_file(stream).read_all()
        header = table.column_names
        return header, table.select(_named_once(header, names))
    file = pq.ParquetFile(stream, page_checksum_verification=True)
    header = file.schema_arrow.names
    return header, file.read(columns=_named_once(header, names))


def _named_once(header: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in names if header.count(name) == 1]


def _parquet_batches(
    stream: pa.NativeFile, columns: frames.Columns, source: str
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq  # noqa: PLC0415 -- a party with a CSV file does without

    file = pq.ParquetFile(
        stream, buffer_size=_PARQUET_BUFFER_BYTES, page_checksum_verification=True
    )
    frames.require_types(file.schema_arrow, columns, source)
    for batch in file.iter_batches(_PARQUET_BATCH_ROWS, columns=columns.names):
        batch.validate(full=True)
        yield batch


def _feather_batches(
    stream: pa.NativeFile, columns: frames.Columns, source: str
) -> Iterator[pa.RecordBatch]:
    file = pa.ipc.open_file(stream)
    frames.require_types(file.schema, columns, source)
    for number in range(file.num_record_batches):
        batch = file.get_batch(number)
        batch.validate(full=True)
        yield batch.select(columns.names)


def _csv_batches(
    text: TextFile, columns: frames.Columns, closing: ExitStack
) -> Iterator[pa.RecordBatch]:
    if not text.header:
        return
    frames.require_columns(text.names, columns, text.source)
    try:
        for batch in open_csv(text, columns.names, closing):
            yield batch.rename_columns(columns.names)
    except pa.ArrowInvalid as error:
        raise parsing_error(error, text) from None


def _refuse_strange_words(sources: Sequence[str], parts: Sequence[frames.Records]) -> None:
    """Refuse a file whose labels are one word that means 0 here alone: it may mean 1."""
    known = {part.negative for part in parts if part.labels.any()} - {None}
    for source, part in zip(sources, parts, strict=True):
        word = part.negative
        if word is None or part.labels.any() or word in LIKELY_NEGATIVE:
            continue
        if known and word not in known:
            raise DataError(
                f"all labels of {source} are {word!r}, which other files do not have: "
                f"if it means 1, add --positive {word}"
            )


def _one_client(records: frames.Records, name: str, source: str) -> tuple[Clients, NDArray[Any]]:
    client = Clients.from_arrays(
        records.scores, records.labels, second=records.second, persons=records.persons
    )
    left_out = frames.left_out_records(records, (), source)
    return replace(client, names=(name,), left_out=left_out), records.groups


def _grouped(records: frames.Records, source: str) -> tuple[Clients, NDArray[Any]]:
    """The records' clients in order of their ids, and their records' groups."""
    encoded = records.ids.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    client_indices = rank[encoded.indices.to_numpy()]
    numbered = Clients.from_arrays(
        records.scores, records.labels, client_indices, records.second, persons=records.persons
    )
    names = tuple(map(str, encoded.dictionary.take(order).to_pylist()))
    left_out = frames.left_out_records(records, names, source)
    groups = records.groups
    if groups.size:
        groups = groups[np.argsort(client_indices, kind="stable")]
    return replace(numbered, names=names, left_out=left_out), groups


def _refuse_shared_clients(sources: list[str], parts: list[Clients]) -> None:
    source_of: dict[str, str] = {}
    for source, part in zip(sources, parts, strict=True):
        for name in part.names:
            first = source_of.setdefault(name, source)
            if first != source:
                raise DataError(f"duplicate client {name!r}, found in both {first} and {source}")
