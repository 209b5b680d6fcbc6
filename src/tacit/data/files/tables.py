"""The columns of a file as they are, without refusing a record."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from tacit.data.errors import no_column
from tacit.data.files.form import reads_as_number
from tacit.data.files.text import TextFile, open_csv, parsing_error
from tacit.data.files.values import Column, Problem
from tacit.data.tables.columns import as_large_text, opened_file
from tacit.data.tables.frames import Columns
from tacit.data.tables.reading import SEPARATORS, extension_of, table_of


@dataclass(frozen=True)
class RawTable:
    """The columns of a file, with the problems of its form.

    Parameters
    ----------
    columns : those that are there, by name.
    problems : of names and of records with another number of values.
    line_of : the line of a record, by its number from 1; None for a file without lines.
    """

    columns: dict[str, Column]
    problems: tuple[Problem, ...]
    line_of: Callable[[int], int | None] | None = None


def raw_table(source: str, columns: Columns, closing: ExitStack) -> RawTable:
    """The columns of a file that are there.

    Parameters
    ----------
    source : the file.
    columns : what is wanted of it, and how it is written.
    closing : closes the file.

    Raises
    ------
    DataError : for a file of another kind, and for text that no parser takes.
    pyarrow.ArrowException, OSError, UnicodeDecodeError, csv.Error : for one that is damaged.
    """
    extension = extension_of(source)
    if extension in SEPARATORS:
        text = TextFile.begun(source, extension, columns.form, columns.names, closing)
        return _text_table(text, columns, closing)
    header, table = table_of(opened_file(source, closing), extension, columns.names)
    made = {
        name: Column(name, _plain(table[name]), lambda index: index + 1)
        for name in table.column_names
    }
    return RawTable(made, tuple(names_wrong(header, columns)))


def _text_table(text: TextFile, columns: Columns, closing: ExitStack) -> RawTable:
    malformed: list[pa_csv.InvalidRow] = []

    def noted(row: pa_csv.InvalidRow) -> str:
        malformed.append(row)
        return "skip"

    problems = names_wrong(text.names, columns, is_text=True)
    if not text.header:
        problems = [Problem("there are no records")]
    present = [name for name in columns.names if text.names.count(name) == 1]
    if not text.header or not present:
        return RawTable({}, tuple(problems), text.line_of)
    try:
        batches = list(open_csv(text, present, closing, noted))
    except pa.ArrowInvalid as error:
        raise parsing_error(error, text) from None
    skipped = np.array([row.number - 1 for row in malformed], dtype=np.int64)
    # a record's number is one more than those before it, the ones that were skipped among them
    good_before = skipped - 1 - np.arange(skipped.size)

    def row_of(index: int) -> int:
        return int(index + 1 + np.searchsorted(good_before, index, side="right"))

    table = pa.Table.from_batches(batches).rename_columns(present)
    made = {name: Column(name, _plain(table[name]), row_of) for name in present}
    return RawTable(made, (*problems, *_malformed(malformed)), text.line_of)


def _malformed(rows: list[pa_csv.InvalidRow]) -> list[Problem]:
    """The records with another number of values, one problem for each number."""
    problems = []
    for actual in sorted({row.actual_columns for row in rows}):
        same = [row for row in rows if row.actual_columns == actual]
        first, many = same[0], actual > same[0].expected_columns
        remedy = "put values that hold the separator in quotation marks" if many else "complete it"
        what = f"{actual} values instead of {first.expected_columns}: {first.text!r:.60}"
        problems.append(Problem(what, remedy, len(same), first.number - 1))
    return problems


def names_wrong(header: list[str], columns: Columns, is_text: bool = False) -> list[Problem]:
    """The problems of a file's names of columns, with the options that name them otherwise."""
    if is_text and header and header[0].startswith("#"):
        return [Problem(f"the first line is a comment, {header[0]!r:.60}", "remove it", line=1)]
    if is_text and any(map(reads_as_number, header)) and set(header).isdisjoint(columns.names):
        listed = ",".join(columns.names)
        remedy = f"add a line with the names of the columns, such as {listed}"
        return [Problem("the first line holds values, not names", remedy, line=1)]
    problems = []
    for option, name in columns.by_option.items():
        count = header.count(name)
        if count > 1:
            problems.append(Problem(f"{count} columns are named {name!r}", "rename all but one"))
        if count == 0:
            problems.append(_lacking(option, name, header))
    return problems


def _lacking(option: str, name: str, header: list[str]) -> Problem:
    by_case = {each.casefold(): each for each in header}
    near = get_close_matches(name.casefold(), by_case, n=1, cutoff=0.6)
    remedy = (
        f"--{option} {shlex.quote(by_case[near[0]])}" if near else f"name it: --{option} COLUMN"
    )
    return Problem(no_column(name, header), remedy)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """One array of values, without a dictionary."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    return as_large_text(values)
