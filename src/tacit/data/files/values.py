"""All wrong values of a column at once, each kind with its number of rows.

The result of checking files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.data.files.form import (
    MISSING_REMEDY,
    NO_LABEL,
    FileForm,
    label_requirement,
    meanings,
    remedy_of_number,
)
from tacit.data.tables.columns import as_large_text, is_text, plain_numbers
from tacit.data.tables.missing import absent
from tacit.data.units import RANGES, outside


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
        return self.description + (f"; {self.remedy}" if self.remedy else "")

    @property
    def description(self) -> str:
        """The problem without its remedy."""
        at = f"line {self.line}: " if self.line else f"row {self.row}: " if self.row else ""
        rows = f" ({self.rows:,} row{'s' * (self.rows > 1)})" if self.rows else ""
        return f"{at}{self.what}{rows}"


@dataclass(frozen=True)
class FileCheck:
    """The result of checking one file.

    Parameters
    ----------
    source : the file.
    problems : reasons for which it cannot be read; empty where it can.
    notes : what can be read and may still be a mistake.
    records, positives : how many there are; None where the file cannot be read.
    low, high : the least and the largest score; None likewise.
    """

    source: str
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = field(default=())
    records: int | None = None
    positives: int | None = None
    low: float | None = None
    high: float | None = None

    @property
    def headline(self) -> str:
        """The file in one line."""
        if self.problems:
            number = len(self.problems)
            return f"{self.source}: {number} problem{'s' * (number > 1)}"
        return (
            f"{self.source}: {self.records:,} record{'s' * (self.records != 1)}, "
            f"{self.positives:,} positive, scores {self.low:.6g} to {self.high:.6g}"
        )


@dataclass(frozen=True)
class FilesCheck:
    """The result of checking several files.

    Parameters
    ----------
    files : a check of each.
    problems : reasons for which files cannot be read together.
    notes : what may be a mistake between files.
    """

    files: tuple[FileCheck, ...]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The number of problems."""
        return len(self.problems) + sum(len(each.problems) for each in self.files)

    @property
    def lines(self) -> list[str]:
        """Everything that was found, a line each."""
        lines = []
        for each in self.files:
            lines.append(each.headline)
            lines += [f"  {problem.sentence}" for problem in each.problems]
            lines += [f"  note: {note}" for note in each.notes]
        lines += [f"together: {sentence}" for sentence in self.problems]
        return [*lines, *(f"together: note: {sentence}" for sentence in self.notes)]


MAX_DIFFERENT = 1000
"""Different wrong values that are looked at; the others count as the last of these."""
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_NOT_FINITE = r"(?i)^[+-]?(inf|infinity)$"


@dataclass(frozen=True)
class Column:
    """A column of a file, with what is said of its records.

    Parameters
    ----------
    name : of the column.
    values : one array, shape (M,), without dictionaries; missing values are null.
    row_of : the number of a record, from 1, by its index from 0.
    """

    name: str
    values: Any
    row_of: Callable[[int], int]

    def problem(self, wrong: NDArray[np.bool_], what: str, remedy: str = "") -> list[Problem]:
        """A problem of some records, with the first one's value; or none."""
        if not wrong.any():
            return []
        first = int(np.argmax(wrong))
        value = self.values[first].as_py()
        example = "" if value is None else f": {str(value)!r:.60}"
        rows = int(np.count_nonzero(wrong))
        return [Problem(f"{what}{example}", remedy, rows, self.row_of(first))]


def numbers_wrong(column: Column, called: str, form: FileForm, unit: str | None) -> list[Problem]:
    """The problems of a column of numbers.

    Parameters
    ----------
    column : the column.
    called : what a number of it is called, such as ``score``.
    form : how numbers are written.
    unit : what they are; None where that is not said.
    """
    missing = absent(column.values)
    problems = _missing_problem(column, called, missing)
    if not is_text(column.values.type):
        values = column.values.cast(pa.float64(), safe=False)
        numbers = np.where(missing, 0.0, values.to_numpy(zero_copy_only=False))
        return [*problems, *_sizes_wrong(column, called, numbers, unit)]
    text = plain_numbers(as_large_text(column.values), form)
    infinite = _mask(pc.match_substring_regex(text, _NOT_FINITE))
    no_number = ~_mask(pc.match_substring_regex(text, _NUMBER)) & ~missing & ~infinite
    good = pa.array(~no_number & ~missing & ~infinite)
    numbers = pc.if_else(good, text, "0").cast(pa.float64()).to_numpy(zero_copy_only=False)
    return [
        *problems,
        *_no_numbers(column, called, no_number, form),
        *column.problem(infinite, f"{called} is not finite", "correct it"),
        *_sizes_wrong(column, called, numbers, unit),
    ]


def _missing_problem(column: Column, called: str, missing: NDArray[np.bool_]) -> list[Problem]:
    problems = column.problem(missing, f"{called} is missing", MISSING_REMEDY)
    return [replace(problem, may_be_left_out=True) for problem in problems]


def _sizes_wrong(
    column: Column, called: str, numbers: NDArray[np.float64], unit: str | None
) -> list[Problem]:
    problems = column.problem(~np.isfinite(numbers), f"{called} is not finite", "correct it")
    if unit is not None:
        low, high = RANGES[unit]
        what = f"{called} is not of unit {unit}, from {low:g} to {high:g}"
        problems += column.problem(outside(numbers, unit), what, "name another --unit")
    return problems


def _no_numbers(
    column: Column, called: str, wrong: NDArray[np.bool_], form: FileForm
) -> list[Problem]:
    """What is no number, by what is to be done about it."""
    if not wrong.any():
        return []
    encoded = pc.if_else(pa.array(wrong), column.values, None).dictionary_encode()
    remedies = [
        remedy_of_number(str(each), form).removeprefix("; ")
        for each in encoded.dictionary[:MAX_DIFFERENT]
    ]
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    by_word = np.minimum(index, MAX_DIFFERENT - 1)
    problems = []
    for remedy in dict.fromkeys(remedies):
        same = np.array([each == remedy for each in remedies])
        problems += column.problem(
            wrong & same[by_word], f"{called} is no number", remedy or "correct it"
        )
    return problems


def labels_wrong(column: Column, form: FileForm) -> list[Problem]:
    """The problems of a column of labels; ``numbers_wrong`` says what the others are."""
    missing = absent(column.values)
    problems = _missing_problem(column, "label", missing)
    present = pc.if_else(pa.array(~missing), column.values, None)
    encoded = as_large_text(present).dictionary_encode()
    values = encoded.dictionary[:MAX_DIFFERENT].to_pylist()
    meant, negative = meanings(values, form)
    of_word = np.full(len(encoded.dictionary) + 1, NO_LABEL)
    of_word[: len(meant)] = meant
    wrong = of_word[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)] == NO_LABEL
    must, remedy = label_requirement(values, form, negative)
    words = ", ".join(f"{str(each)!r:.30}" for each in values[:5])
    more = f" and {len(encoded.dictionary) - 5:,} more" if len(encoded.dictionary) > 5 else ""
    return problems + column.problem(
        wrong & ~missing,
        must,
        remedy.removeprefix("; ") or f"the values are {words}{more}: correct them",
    )


def _mask(array: Any) -> NDArray[np.bool_]:
    """An array of truth as NumPy has it; nothing is false."""
    mask: NDArray[np.bool_] = array.fill_null(False).to_numpy(zero_copy_only=False)
    return mask
