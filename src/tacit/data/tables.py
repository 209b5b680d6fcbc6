"""Files and frames as tables: names of columns, batches of records in Arrow, and what is wrong.

A wrong record is named by its row and, in a file of text, by its line in an editor. Anyone who
reads records gets the error of the first one; anyone who checks them for their owner gets all.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from tacit.data.errors import DataError, ProblemError
from tacit.data.form import (
    DROPPED,
    SEPARATORS,
    FileForm,
    reads_as_number,
    remedy_of_name,
    with_remedy,
)

PACKINGS = {"": None, ".gz": "gzip", ".bz2": "bz2"}
"""Arrow's name of the packing that a file of text ends with."""
TEXTS = {f"{kind}{packing}": packing for kind in (".csv", ".tsv") for packing in PACKINGS}
FEATHER = (".feather", ".arrow")
RECORD_FILES = (*TEXTS, ".parquet", ".pq", *FEATHER)
"""How the names of files of records end."""

GZIP_BEGIN = b"\x1f\x8b"
"""How what gzip packed begins, whatever it is called."""

BLOCK_BYTES = 1 << 20
"""Bytes of text that are parsed at once; no record may be longer."""
BATCH_ROWS = 1 << 16
BUFFER_BYTES = 1 << 20
"""Rows of Parquet that are read at once, and bytes."""

MAX_QUOTED = 60
"""Largest number of characters that are shown of a wrong value."""

_MALFORMED_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_LONG_ROW = "straddles two block boundaries"
_READ_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error)


@dataclass(frozen=True)
class Problem:
    """One reason for which a file cannot be read, with all rows that have it.

    Parameters
    ----------
    what : the reason, with an example.
    remedy : what to do about it; empty where the reason says so.
    rows : how many records have it; 0 where it is the whole file's.
    row : the first of these records, from 1; None where it is the whole file's.
    line : the line on which that begins, as an editor counts; None for what has no lines.
    may_be_left_out : whether these records may be left out, as ones without a value.
    """

    what: str
    remedy: str = ""
    rows: int = 0
    row: int | None = None
    line: int | None = None
    may_be_left_out: bool = False

    @property
    def sentence(self) -> str:
        """The problem in one line."""
        return with_remedy(self.description, self.remedy)

    @property
    def description(self) -> str:
        """The problem without its remedy."""
        at = f"line {self.line}: " if self.line else f"row {self.row}: " if self.row else ""
        rows = f" ({self.rows:,} row{'s' * (self.rows > 1)})" if self.rows else ""
        return f"{at}{self.what}{rows}"


@dataclass(frozen=True)
class Location:
    """The location of a batch of records in its source, and what becomes of wrong ones.

    Parameters
    ----------
    source : the file or table.
    before : the number of its records before the batch.
    line_of : the line on which a record begins, by its number from 1; None for no lines.
    rows : which of them the batch holds, shape (rows,); None for all.
    problems : where all wrong values are listed; None where the first one is an error.
    remedy : what to do about a record without a value.

    Examples
    --------
    >>> Location("north.csv", 100).row(0)
    'north.csv, row 101'
    """

    source: str
    before: int = 0
    line_of: Callable[[int], int | None] | None = None
    rows: NDArray[np.int64] | None = None
    problems: list[Problem] | None = None
    remedy: str = DROPPED

    def row(self, index: int) -> str:
        """The location of a record of the batch; ``index`` counts from 0."""
        number = self._number(index)
        line = None if self.line_of is None else self.line_of(number)
        return f"{self.source}, row {number}" + (f" (line {line})" if line is not None else "")

    def refuse(
        self,
        wrong: NDArray[np.bool_],
        values: Any,
        must: str,
        remedy: str = "",
        advice: str = "correct it",
        may_be_left_out: bool = False,
    ) -> None:
        """Refuse the first of some values, or list them.

        Parameters
        ----------
        wrong : which values, shape (rows,).
        values : of the batch.
        must : what they must be.
        remedy : what to do about them; where it is empty, a list has ``advice``.
        may_be_left_out : as a problem has it.

        Raises
        ------
        DataError : naming the first such value and its location.
        """
        if not wrong.any():
            return
        first = int(np.argmax(wrong))
        value = values[first]
        quoted = _quoted(value) if value.is_valid else ""
        if self.problems is None:
            got = f", got {quoted}" if quoted else ""
            raise ProblemError(with_remedy(f"{must}{got} in {self.row(first)}", remedy))
        number = self._number(first)
        what = f"{must}: {quoted}" if quoted else must
        rows, line = int(np.count_nonzero(wrong)), self.line_of and self.line_of(number)
        problem = Problem(what, remedy or advice, rows, number, line, may_be_left_out)
        if problem not in self.problems:
            self.problems.append(problem)

    def refuse_missing(
        self, wrong: NDArray[np.bool_], values: Any, name: str, remedy: str | None = None
    ) -> None:
        """Refuse records without a value of a column, or list them."""
        must, remedy = f"column {name!r} has no value", self.remedy if remedy is None else remedy
        self.refuse(wrong, values, must, remedy, "fill it in", may_be_left_out=remedy == DROPPED)

    def refuse_whole(self, wrong: str, advice: str, line: int | None = None) -> None:
        """Refuse the whole source, or list that."""
        if self.problems is None:
            raise ProblemError(with_remedy(wrong, advice))
        self.problems.append(Problem(wrong, advice, line=line))

    def _number(self, index: int) -> int:
        return self.before + (int(index) if self.rows is None else int(self.rows[index])) + 1


def _quoted(value: Any) -> str:
    """A value as a sentence holds it: a word in quotation marks, a number as it is, neither long.

    A damaged file may hold one of a million characters.
    """
    text = str(value)
    shown = repr(text) if is_text(value.type) and not reads_as_number(text) else text
    return shown if len(shown) <= MAX_QUOTED else f"{shown[:MAX_QUOTED]}..."


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return str(kind) in {"string", "large_string", "string_view"}


@dataclass(frozen=True)
class Table:
    """An opened file or frame.

    Parameters
    ----------
    source : what messages call it.
    header : the names of its columns.
    batches : reads the columns of some names in batches of records, in their order.
    schema : the types of its columns; None for text, and where batches say it.
    line_of : the line on which a record begins, by its number from 1 (the header is number 0); None
        where there are no lines.
    malformed : records of text with another number of values, which were skipped.
    """

    source: str
    header: list[str]
    batches: Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
    schema: pa.Schema | None = None
    line_of: Callable[[int], int | None] | None = None
    malformed: list[pa_csv.InvalidRow] = field(default_factory=list)


def table_of_frame(frame: Any) -> Table:
    """A pandas, polars or Arrow table, or anything with an Arrow stream.

    Raises
    ------
    DataError : for anything else.
    """
    if not hasattr(frame, "__arrow_c_stream__"):
        raise DataError(
            "a table must have an Arrow stream, as pandas 2.2, polars and Arrow tables do, "
            f"got {type(frame).__name__}"
        )
    try:
        table = pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"the table cannot be read as Arrow: {reason(error)}") from None
    schema = table.schema
    return Table(
        "the table", schema.names, lambda names: iter(table.select(names).to_batches()), schema
    )


@contextmanager
def opened_table(
    source: str,
    form: FileForm,
    wanted: Sequence[str],
    skips: bool = False,
    extension: str | None = None,
) -> Iterator[Table]:
    """A file, which must not change before it is closed.

    Parameters
    ----------
    source : the file.
    form : how it is written.
    wanted : the columns by which the separator is found.
    skips : whether records with another number of values are skipped and noted, or refused.
    extension : how it is written; None for what the end of its name says.

    Raises
    ------
    DataError : for a file that cannot be read, naming it and the reason.
    """
    extension = extension or extension_of(source)
    with unchanging(source), ExitStack() as closing:
        if extension in TEXTS:
            yield _TextFile.begun(source, extension, form, wanted, closing).table(closing, skips)
        else:
            read = _feather if extension in FEATHER else _parquet
            schema, batches = read(opened_file(source, closing))
            yield Table(source, schema.names, lambda names: map(_valid, batches(names)), schema)


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
    sentence = f"files must end in {', '.join(RECORD_FILES)}, got {source}"
    raise DataError(with_remedy(sentence, remedy_of_name(name)))


def file_names(sources: Sequence[str]) -> tuple[str, ...]:
    """What clients are called that are a file each: stems, or paths where stems are the same."""
    stems = [Path(source).name[: -len(extension_of(source))] for source in sources]
    shared = Counter(stems)
    return tuple(
        source if shared[stem] > 1 else stem for source, stem in zip(sources, stems, strict=True)
    )


def parquet_file(source: Any) -> Any:
    """An opened Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415 -- a party with a CSV file does without

    return pq.ParquetFile(source, buffer_size=BUFFER_BYTES, page_checksum_verification=True)


def _parquet(stream: pa.NativeFile) -> tuple[pa.Schema, Any]:
    file = parquet_file(stream)
    return file.schema_arrow, lambda names: file.iter_batches(BATCH_ROWS, columns=names)


def refuse_twice(sources: Sequence[str]) -> None:
    """Refuse a file that is given twice, also by another path."""
    seen = set[Path]()
    for source in sources:
        path = Path(source).resolve()
        if path in seen:
            raise DataError(f"duplicate file {source}")
        seen.add(path)


def _feather(stream: pa.NativeFile) -> tuple[pa.Schema, Any]:
    file = pa.ipc.open_file(stream)
    numbers = range(file.num_record_batches)
    return file.schema, lambda names: (file.get_batch(number).select(names) for number in numbers)


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch whose offsets and texts are valid: kernels trust them."""
    batch.validate(full=True)
    return batch


@dataclass(frozen=True)
class _TextFile:
    """A file of text after a look at its first line.

    Parameters
    ----------
    source, extension : the file, and the end of its name.
    separator : what stands between its values.
    header : the names of its columns as written; empty where no record follows them.
    """

    source: str
    extension: str
    separator: str
    header: tuple[str, ...]

    @classmethod
    def begun(
        cls, source: str, extension: str, form: FileForm, wanted: Sequence[str], closing: ExitStack
    ) -> _TextFile:
        """A file with the separator of its form, if that is named.

        Else it is the usual one or, where the header has all wanted columns with another only, that
        one. Where it has them with none, it is the one that gives most columns.
        """
        line = _first_line(source, extension, closing)
        usual = "\t" if extension.startswith(".tsv") else ","
        first, *others = [form.separator] if form.separator else [usual, *SEPARATORS]
        headers = {
            mark: tuple(next(csv.reader([line], delimiter=mark), []))
            for mark in (first, *(mark for mark in others if mark in line))
        }
        for mark, header in headers.items():
            if {name.strip() for name in header}.issuperset(wanted):
                return cls(source, extension, mark, header)
        mark = max(headers, key=lambda each: len(headers[each]))
        return cls(source, extension, mark, headers[mark])

    def table(self, closing: ExitStack, skips: bool) -> Table:
        """Its columns as text; names are without spaces around."""
        malformed: list[pa_csv.InvalidRow] = []

        def noted(row: pa_csv.InvalidRow) -> str:
            malformed.append(row)
            return "skip"

        names = [name.strip() for name in self.header]
        by_name = dict(zip(names, self.header, strict=True))
        # Arrow's threads may not call into an interpreter that has ended: who skips reads all
        handler = noted if skips else None

        def batches(chosen: Sequence[str]) -> Iterator[pa.RecordBatch]:
            if not self.header:
                return
            rows = 0
            try:
                for batch in self._parsed([by_name[name] for name in chosen], closing, handler):
                    rows += batch.num_rows
                    yield batch.rename_columns(list(chosen))
                self._check_closed(rows, closing)
            except pa.ArrowInvalid as error:
                raise self._meaning(error) from None

        return Table(self.source, names, batches, None, self.line_of, malformed)

    def line_of(self, row: int) -> int | None:
        """The line on which a record begins; None where the file cannot be read as text.

        Blank lines are no records, and a record may go on over several lines.
        """
        with ExitStack() as closing:
            packed = _opened_text(self.source, self.extension, closing)
            text = io.TextIOWrapper(packed, encoding="utf-8", errors="replace", newline="")
            reader = csv.reader(text, delimiter=self.separator)
            before, number = 0, 0
            try:
                for fields in reader:
                    if fields and number == row:
                        return before + 1
                    before, number = reader.line_num, number + bool(fields)
            except (csv.Error, OSError):
                return None
            return None

    def _parsed(
        self,
        written: list[str],
        closing: ExitStack,
        on_malformed: Callable[[pa_csv.InvalidRow], str] | None,
    ) -> pa_csv.CSVStreamingReader:
        """A reader of some columns; it counts rows, as it has no threads."""
        return pa_csv.open_csv(
            _opened_text(self.source, self.extension, closing),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, invalid_row_handler=on_malformed
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=written,
                column_types=dict.fromkeys(written, pa.large_string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )

    def _check_closed(self, rows: int, closing: ExitStack) -> None:
        """Refuse a quotation mark that is not closed: its record would take in those after it.

        It ends at the next mark that opens a value, or with the file. So records are fewer than
        lines, and Python's parser, which goes on after other faults, tells such a record from one
        with line ends in its values.
        """
        packed, quotes, lines, last = _opened_text(self.source, self.extension, closing), 0, 0, b""
        while block := packed.read(BLOCK_BYTES):
            quotes, lines, last = quotes + block.count(b'"'), lines + block.count(b"\n"), block[-1:]
        if not quotes or rows + 1 >= lines + (last != b"\n"):
            return
        packed = _opened_text(self.source, self.extension, closing)
        text = io.TextIOWrapper(packed, encoding="utf-8", errors="replace", newline="")
        reader, line, is_read = csv.reader(text, delimiter=self.separator, strict=True), 1, False
        limit = csv.field_size_limit(BLOCK_BYTES)
        try:
            while not is_read:
                try:
                    for _ in reader:
                        line = reader.line_num + 1
                    is_read = True
                except csv.Error:
                    if reader.line_num > line:
                        raise DataError(
                            f"a quotation mark of {self.source} is not closed, in the record that "
                            f"begins on line {line} and goes on to line {reader.line_num}"
                        ) from None
                    line = reader.line_num + 1
        finally:
            csv.field_size_limit(limit)

    def _meaning(self, error: pa.ArrowInvalid) -> Exception:
        """What an error of Arrow's parser means, with the row and line; else the error itself."""
        if _LONG_ROW in str(error):
            return DataError(
                f"a record of {self.source} must have at most {BLOCK_BYTES:,} bytes, got more; "
                "is a quotation mark not closed?"
            )
        malformed = _MALFORMED_ROW.search(str(error))
        if malformed is None:
            return error
        row, fields, actual = map(int, malformed.groups())
        # the header is the first row
        where = Location(self.source, line_of=self.line_of).row(row - 2)
        return DataError(f"a record must have {fields} fields, got {actual} in {where}")


def _first_line(source: str, extension: str, closing: ExitStack) -> str:
    """The first line, up to a block long; empty when nothing follows it."""
    stream = _opened_text(source, extension, closing)
    begun = stream.read(BLOCK_BYTES)
    line, end, followed = begun.partition(b"\n")
    if not end and b"\r" in line.removesuffix(b"\r"):
        raise DataError(f"lines of {source} must end in LF or CR LF, got CR alone")
    if not (followed or stream.read(1)):
        return ""
    return (line + end).decode("utf-8-sig")


@contextmanager
def unchanging(source: str) -> Iterator[None]:
    """Refuse a file when it cannot be read or changes before it is closed.

    Raises
    ------
    DataError : naming the file and the reason.
    """
    try:
        before = stamp(source)
        try:
            yield
        finally:
            if stamp(source) != before:
                raise DataError(f"{source} changed while it was being read") from None
    except FileNotFoundError:
        raise DataError(f"{source} does not exist") from None
    except _READ_ERRORS as error:
        remedy = ""
        if isinstance(error, UnicodeDecodeError):
            is_packed = error.object.startswith(GZIP_BEGIN)
            remedy = "it is packed: end its name in .gz" if is_packed else "save it as UTF-8"
        raise DataError(with_remedy(f"{source} cannot be read: {reason(error)}", remedy)) from None


def stamp(source: str) -> tuple[int, ...]:
    """Which file a path leads to, and its state.

    Raises
    ------
    OSError : for what is no regular file: a pipe can be read only once.
    """
    status = Path(source).stat()
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is no regular file")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def reason(error: BaseException) -> str:
    """The first line of an error's message, without its full stop."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error).strip()
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")


def opened_file(source: str, closing: ExitStack) -> pa.NativeFile:
    """A file that Arrow's threads read by themselves.

    The threads read ahead. If a reader is left before its end, they may still read when the
    interpreter ends. A file that is a Python object would then call into an interpreter that no
    longer exists, which ends the process by SIGABRT.
    """
    return closing.enter_context(pa.OSFile(source))


def _opened_text(source: str, extension: str, closing: ExitStack) -> pa.NativeFile:
    """The same for a file of text, from its beginning; UTF-16 is read whole, and is then UTF-8."""
    file, packing = opened_file(source, closing), PACKINGS[TEXTS[extension]]
    if packing is not None:
        return closing.enter_context(pa.CompressedInputStream(file, packing))
    mark = file.read(len(BOM_UTF16_LE))
    file.seek(0)
    if mark in (BOM_UTF16_LE, BOM_UTF16_BE):
        text = file.read().decode("utf-16")
        return closing.enter_context(pa.BufferReader(text.encode()))
    return file
