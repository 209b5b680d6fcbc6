"""Files of records opened for Arrow, and columns of Arrow tables as arrays.

Columns of Arrow tables as arrays: numbers, labels, names, and the location of a wrong value. Files
of records, opened for Arrow: natively, whole, and unchanged while they are read.
"""

from __future__ import annotations

import csv
import errno
import os
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.data.checking import MUST_BE_EXACT, ROUNDED, SCORES
from tacit.data.errors import DataError, NotFiniteError
from tacit.data.files.form import (
    MAX_WORDS,
    NO_LABEL,
    PLAIN,
    FileForm,
    label_requirement,
    meanings,
    reads_as_number,
    remedy_of_number,
)

MAX_QUOTED = 60
"""Largest number of characters that are shown of a wrong value."""


@dataclass(frozen=True)
class Location:
    """The location of a batch of records in its source.

    Parameters
    ----------
    source : the file or table.
    before : the number of its records before the batch.
    line_of : the line of a file of text on which a record begins, by its number from 1; None where
        there are no lines.
    rows : which of them the batch holds, shape (rows,); None for all.

    Examples
    --------
    >>> Location("north.csv", 100).row(0)
    'north.csv, row 101'
    """

    source: str
    before: int = 0
    line_of: Callable[[int], int | None] | None = None
    rows: NDArray[np.int64] | None = None

    def row(self, index: int) -> str:
        """The location of a record of the batch; ``index`` counts from 0."""
        place = int(index) if self.rows is None else int(self.rows[index])
        number = self.before + place + 1
        line = None if self.line_of is None else self.line_of(number)
        return f"{self.source}, row {number}" + (f" (line {line})" if line is not None else "")


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_written_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers, or text that may be numbers."""
    return is_number(kind) or is_text(kind)


def is_label(kind: pa.DataType) -> bool:
    """Whether a column of this type may hold labels."""
    return is_written_number(kind) or bool(pa.types.is_boolean(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return str(kind) in {"string", "large_string", "string_view"}


def is_id(kind: pa.DataType) -> bool:
    """Whether a column of this type may name clients or groups."""
    return is_text(kind) or bool(pa.types.is_integer(kind))


def column_of(batch: pa.RecordBatch, name: str, location: Location, remedy: str = "") -> Any:
    """A column as one array without missing values; dictionaries are replaced by their values.

    Parameters
    ----------
    remedy : what to do about a missing value, for the error.

    Raises
    ------
    DataError : for a missing value, naming its location.
    """
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = as_large_text(column.dictionary).take(column.indices)
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise DataError(f"column {name!r} has no value in {location.row(first)}{remedy}")
    return column


def numbers_of(
    column: Any, called: str, location: Location, form: FileForm = PLAIN
) -> NDArray[np.float64]:
    """Finite numbers, shape (rows,); whole ones are those that float64 holds.

    Parameters
    ----------
    form : how they are written, where they are text.

    Raises
    ------
    DataError : for a value that is not a number of this kind, naming ``called``, the value and its
        location.
    """
    column = as_large_text(column)
    text = plain_numbers(column, form) if is_text(column.type) else column
    try:
        numbers: NDArray[np.float64] = np.from_dlpack(text.cast(pa.float64(), safe=False))
    except pa.ArrowInvalid:
        first = first_that_is_no_number(text)
        value = str(column[first])
        said = f"{called} must be numbers, got {_short(repr(value))} in {location.row(first)}"
        raise DataError(f"{said}{remedy_of_number(value, form)}") from None
    must, kind = f"{called} must be finite", NotFiniteError if called == SCORES else DataError
    _refuse_first(~np.isfinite(numbers), must, column, location, kind)
    _refuse_first(_rounded(numbers, column), f"{called} {MUST_BE_EXACT}", column, location)
    return numbers


def _rounded(numbers: NDArray[np.float64], column: Any) -> NDArray[np.bool_]:
    """Which numbers were whole and may have been rounded, so that different ones would tie."""
    large = np.abs(numbers) >= ROUNDED
    if pa.types.is_floating(column.type):
        return np.zeros_like(large)
    if large.any() and is_text(column.type):
        whole = pc.match_substring_regex(column, r"^\s*[+-]?[0-9]+\s*$")
        large &= whole.to_numpy(zero_copy_only=False)
    return large


def labels_of(
    column: Any, location: Location, form: FileForm = PLAIN, negative: str | None = None
) -> tuple[NDArray[np.int8], str | None]:
    """Labels, shape (rows,), and the word that means 0, as far as it is known.

    Parameters
    ----------
    form : its words mean 1; without them labels are numbers, or the words true and false.
    negative : the word that means 0 in earlier rows; None where there was none.

    Raises
    ------
    DataError : for what is no label, naming the value and its location.
    """
    column = as_large_text(column)
    encoded = column.dictionary_encode()
    values = encoded.dictionary[:MAX_WORDS].to_pylist()
    meant, negative = meanings(values, form, negative)
    of_word = np.full(len(encoded.dictionary), NO_LABEL, dtype=np.int8)
    of_word[: len(meant)] = meant
    labels = of_word[encoded.indices.to_numpy()]
    if (labels == NO_LABEL).any():
        first = int(np.argmax(labels == NO_LABEL))
        must, remedy = label_requirement(values, form, negative)
        raise DataError(f"{must}, got {_quoted(column[first])} in {location.row(first)}{remedy}")
    return labels, negative


def _quoted(value: Any) -> str:
    """A value as a sentence holds it: a word in quotation marks, a number as it is."""
    text = str(value)
    is_word = is_text(value.type) and not reads_as_number(text)
    return _short(repr(text) if is_word else text)


def as_large_text(column: Any) -> Any:
    """Text with 64-bit offsets, which every kernel takes; other columns as they are."""
    return column.cast(pa.large_string()) if is_text(column.type) else column


def plain_numbers(text: Any, form: FileForm) -> Any:
    """Text with numbers as Arrow reads them: no spaces around, a point, no percent sign."""
    text = pc.ascii_trim_whitespace(text)
    if form.percent:
        text = pc.replace_substring_regex(text, r"\s*%$", "")
    if form.decimal == ",":
        both = pc.and_(pc.match_substring(text, ","), pc.match_substring(text, "."))
        text = pc.if_else(both, text, pc.replace_substring(text, ",", "."))
    return text


def first_that_is_no_number(text: Any) -> int:
    """The index of the first text that is no number, by bisection; such a text exists."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            text[low:middle].cast(pa.float64(), safe=False)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _refuse_first(
    wrong: NDArray[np.bool_],
    must: str,
    column: Any,
    location: Location,
    kind: type[DataError] = DataError,
) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        raise kind(f"{must}, got {_short(str(column[first]))} in {location.row(first)}")


def _short(value: str) -> str:
    """A value as a sentence holds it; a damaged file may hold one of a million characters."""
    return value if len(value) <= MAX_QUOTED else f"{value[:MAX_QUOTED]}..."


PACKINGS = {".gz": "gzip", ".bz2": "bz2"}
"""Arrow's name of the packing that an extension ends with."""

_READ_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error)


@contextmanager
def unchanging(source: str) -> Iterator[None]:
    """Refuse a file when it cannot be read or changes before it is closed.

    Raises
    ------
    DataError : naming the file and the reason.
    """
    try:
        before = _stamp(source)
        try:
            yield
        finally:
            if _stamp(source) != before:
                raise DataError(f"{source} changed while it was being read") from None
    except FileNotFoundError:
        raise DataError(f"{source} does not exist") from None
    except _READ_ERRORS as error:
        raise DataError(f"{source} cannot be read: {reason(error)}") from None


def _stamp(source: str) -> tuple[int, ...]:
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
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text.splitlines() or [type(error).__name__])[0].rstrip(".")


def opened_file(source: str, closing: ExitStack) -> pa.NativeFile:
    """A file that Arrow's threads read by themselves.

    The threads read ahead. If a reader is left before its end, they may still read when the
    interpreter ends. A file that is a Python object would then call into an interpreter that no
    longer exists, which ends the process by SIGABRT.
    """
    return closing.enter_context(pa.OSFile(source))


def opened_text(source: str, extension: str, closing: ExitStack) -> pa.NativeFile:
    """The same for a file of text, from its beginning; UTF-16 is read whole, and is then UTF-8."""
    file = opened_file(source, closing)
    packing = next((name for end, name in PACKINGS.items() if extension.endswith(end)), None)
    if packing is not None:
        return closing.enter_context(pa.CompressedInputStream(file, packing))
    mark = file.read(len(BOM_UTF16_LE))
    file.seek(0)
    if mark in (BOM_UTF16_LE, BOM_UTF16_BE):
        text = file.read().decode("utf-16")
        return closing.enter_context(pa.BufferReader(text.encode()))
    return file
