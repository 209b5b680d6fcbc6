"""Columns of Arrow tables as arrays: numbers, labels, names, and the location of a wrong value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.data.arrays import MUST_BE_EXACT, ROUNDED, SCORES
from tacit.data.errors import DataError, NotFiniteError

MAX_QUOTED = 60
"""Largest number of characters that are shown of a wrong value."""


@dataclass(frozen=True)
class Location:
    """The location of a batch of records in its source.

    Parameters
    ----------
    source : the file or table.
    before : the number of its records before the batch.

    Examples
    --------
    >>> Location("north.csv", 100).row(0)
    'north.csv, row 101'
    """

    source: str
    before: int = 0

    def row(self, index: int) -> str:
        """The location of a record of the batch; ``index`` counts from 0."""
        return f"{self.source}, row {self.before + int(index) + 1}"


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_label(kind: pa.DataType) -> bool:
    """Whether a column of this type may hold labels."""
    return is_number(kind) or bool(pa.types.is_boolean(kind))


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds text."""
    return str(kind) in {"string", "large_string", "string_view"}


def is_id(kind: pa.DataType) -> bool:
    """Whether a column of this type may name clients or groups."""
    return is_text(kind) or bool(pa.types.is_integer(kind))


def column_of(batch: pa.RecordBatch, name: str, location: Location) -> Any:
    """A column as one array without missing values; dictionaries are replaced by their values.

    Raises
    ------
    DataError : for a missing value, naming its location.
    """
    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = as_large_text(column.dictionary).take(column.indices)
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise DataError(f"column {name!r} has no value in {location.row(first)}")
    return column


def numbers_of(column: Any, called: str, location: Location) -> NDArray[np.float64]:
    """Finite numbers, shape (rows,); whole ones are those that float64 holds.

    Raises
    ------
    DataError : for a value that is not a number of this kind, naming ``called``, the value and its
        location.
    """
    numbers = _as_float64(column, f"{called} must be numbers", location)
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


def labels_of(column: Any, location: Location) -> NDArray[np.int8]:
    """Labels from numbers, or the words true and false, shape (rows,).

    Raises
    ------
    DataError : for what is no label, naming the value and its location.
    """
    must = "labels must be 0 or 1"
    values = _as_float64(_truth_as_digit(column), must, location)
    _refuse_first((values != 0) & (values != 1), must, column, location)
    return values.astype(np.int8)


def _truth_as_digit(column: Any) -> Any:
    """The labels with the words true and false as 1 and 0."""
    if not is_text(column.type):
        return column
    word = pc.ascii_lower(pc.ascii_trim_whitespace(column))
    if not pc.any(pc.ends_with(word, pattern="e")).as_py():
        return column
    digit = pc.if_else(pc.equal(word, "true"), "1", column)
    return pc.if_else(pc.equal(word, "false"), "0", digit)


def as_large_text(column: Any) -> Any:
    """Text with 64-bit offsets, which every kernel takes; other columns as they are."""
    return column.cast(pa.large_string()) if is_text(column.type) else column


def _as_float64(column: Any, must: str, location: Location) -> NDArray[np.float64]:
    text = pc.ascii_trim_whitespace(column) if is_text(column.type) else column
    try:
        numbers: NDArray[np.float64] = np.from_dlpack(text.cast(pa.float64(), safe=False))
    except pa.ArrowInvalid:
        first = _first_that_is_no_number(text)
        raise DataError(
            f"{must}, got {_short(repr(column[first].as_py()))} in {location.row(first)}"
        ) from None
    return numbers


def _first_that_is_no_number(text: Any) -> int:
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
