"""Files of text: how they begin, their columns as text, and lines as an editor counts them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa
import pyarrow.csv as pa_csv

from tacit.data.errors import DataError
from tacit.data.files.form import SEPARATORS, FileForm
from tacit.data.tables.columns import Location, opened_text

BLOCK_BYTES = 1 << 20
"""Bytes that are parsed at once; no record may be longer."""

_MALFORMED_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_LONG_ROW = "straddles two block boundaries"


@dataclass(frozen=True)
class TextFile:
    """A file of text and its first line.

    Parameters
    ----------
    source : the file.
    extension : the end of its name.
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
    ) -> TextFile:
        """A file after a look at its first line, up to a block long.

        Parameters
        ----------
        source, extension : the file, and the end of its name.
        form : its separator, where that is named; else the usual one or, where the header has all
            wanted columns with another only, that one.
        wanted : columns.
        closing : closes the file.

        Raises
        ------
        DataError : for lines that end in CR alone.
        """
        line = _first_line(source, extension, closing)
        usual = "\t" if extension.startswith(".tsv") else ","
        first = form.separator or usual
        header = _split(line, first)
        others = () if form.separator else (mark for mark in SEPARATORS if mark != usual)
        for mark in () if _has(header, wanted) else others:
            if mark in line and _has(_split(line, mark), wanted):
                return cls(source, extension, mark, _split(line, mark))
        return cls(source, extension, first, header)

    @property
    def names(self) -> list[str]:
        """The names of the columns without spaces around."""
        return [name.strip() for name in self.header]

    def line_of(self, row: int) -> int | None:
        """The line on which a record begins; None where the file cannot be read as text.

        Blank lines are no records, and a record may go on over several lines.

        Parameters
        ----------
        row : the record's number from 1; the header is number 0.
        """
        with ExitStack() as closing:
            packed = opened_text(self.source, self.extension, closing)
            text = io.TextIOWrapper(packed, encoding="utf-8", errors="replace", newline="")
            reader = csv.reader(text, delimiter=self.separator)
            try:
                fields = next(islice(filter(None, reader), row, None), None)
            except (csv.Error, OSError):
                return None
            if fields is None:
                return None
            return reader.line_num - sum(field.count("\n") for field in fields)


def _first_line(source: str, extension: str, closing: ExitStack) -> str:
    """The first line; empty when nothing follows it."""
    stream = opened_text(source, extension, closing)
    begun = stream.read(BLOCK_BYTES)
    line, end, followed = begun.partition(b"\n")
    if not end and b"\r" in line.removesuffix(b"\r"):
        raise DataError(f"lines of {source} must end in LF or CR LF, got CR alone")
    if not (followed or stream.read(1)):
        return ""
    return (line + end).decode("utf-8-sig")


def _has(header: Sequence[str], wanted: Sequence[str]) -> bool:
    return {name.strip() for name in header}.issuperset(wanted)


def _split(line: str, separator: str) -> tuple[str, ...]:
    return tuple(next(csv.reader([line], delimiter=separator), []))


def open_csv(
    text: TextFile,
    names: Sequence[str],
    closing: ExitStack,
    on_malformed: Callable[[pa_csv.InvalidRow], str] | None = None,
) -> pa_csv.CSVStreamingReader:
    """A reader of some columns as text; it counts rows, as it has no threads.

    Parameters
    ----------
    text : the file.
    names : columns, without spaces around; each is there once.
    closing : closes the file.
    on_malformed : what to do about a record with another number of fields, ``"skip"`` or
        ``"error"``; None ends with an error.
    """
    by_name = dict(zip(text.names, text.header, strict=True))
    written = [by_name[name] for name in names]
    return pa_csv.open_csv(
        opened_text(text.source, text.extension, closing),
        read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(
            delimiter=text.separator, newlines_in_values=True, invalid_row_handler=on_malformed
        ),
        convert_options=pa_csv.ConvertOptions(
            include_columns=written,
            column_types={name: pa.string() for name in written},
            strings_can_be_null=True,
            null_values=[""],
        ),
    )


def parsing_error(error: pa.ArrowInvalid, text: TextFile) -> Exception:
    """What an error of Arrow's parser means, with the row and line; else the error itself."""
    if _LONG_ROW in str(error):
        return DataError(
            f"a record of {text.source} must have at most {BLOCK_BYTES:,} bytes, got more; "
            "is a quotation mark not closed?"
        )
    malformed = _MALFORMED_ROW.search(str(error))
    if malformed is None:
        return error
    row, fields, actual = map(int, malformed.groups())
    location = Location(text.source, line_of=text.line_of)
    # the header is the first row
    where = location.row(row - 2)
    return DataError(f"a record must have {fields} fields, got {actual} in {where}")
