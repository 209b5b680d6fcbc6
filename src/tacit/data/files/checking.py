"""All problems of files at once, for their owner's eyes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.data.errors import DataError
from tacit.data.file_units import ByFile, Units, units_of
from tacit.data.files import values
from tacit.data.files.form import PLAIN, FileForm
from tacit.data.files.tables import RawTable, raw_table
from tacit.data.tables.columns import is_label, is_written_number, unchanging
from tacit.data.tables.frames import Columns, Records
from tacit.data.tables.missing import Rule, check_rule
from tacit.data.tables.reading import FilePath, columns_of, read, read_file
from tacit.data.units import PERCENT, UNITS

FEW_RECORDS = 50
"""A file of fewer records than this adds little but noise."""


def check_files(
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
) -> values.FilesCheck:
    """What is wrong in every file, and what is wrong between files that can be read.

    The problems describe single records: they are for their owner.

    Parameters
    ----------
    paths, score, label, client, second, unit, person, missing, form : as ``read`` takes them.

    Raises
    ------
    DataError : for a unit that is none, or of a file that is not among these.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "clinic.csv")
    ...     _ = path.write_text("score,label\\n0.2,no\\n0.9,yes\\n,yes\\n")
    ...     checked = check_files(path)
    >>> for problem in checked.files[0].problems:
    ...     print(problem.sentence.partition(";")[0])
    line 2: labels must be 0 or 1: 'no' (3 rows)
    line 4: score is missing (1 row)
    """
    listed = [paths] if isinstance(paths, str | os.PathLike) else paths
    sources = [os.fspath(path) for path in listed]
    drop = check_rule(missing)
    named = Columns("", "", client, second, person=person, drop=drop)
    columns = columns_of(sources, named, score, label, form)
    checks = tuple(map(check_file, sources, columns, units_of(sources, unit)))
    if any(check.problems for check in checks):
        return values.FilesCheck(checks)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read(sources, score, label, client, second, unit, person, missing, form=form)
    except DataError as error:
        return values.FilesCheck(checks, (str(error),))
    return values.FilesCheck(checks, notes=tuple(str(each.message) for each in caught))


def check_file(source: str, columns: Columns, unit: str | None) -> values.FileCheck:
    """What is wrong in one file; a file without a problem was read.

    Parameters
    ----------
    source : the file.
    columns : what is read of it, and how it is written.
    unit : what its scores are; None where that is not said.
    """
    try:
        all_problems = _problems(source, columns, unit)
        left_out = [each for each in all_problems if columns.drop and each.may_be_left_out]
        problems = [each for each in all_problems if each not in left_out]
        if problems:
            return values.FileCheck(source, tuple(problems))
        records = read_file(source, columns, unit)
    except DataError as error:
        return values.FileCheck(source, (values.Problem(str(error)),))
    return values.FileCheck(
        source,
        notes=(
            *(f"left out: {each.description}" for each in left_out),
            *_notes(records, columns, unit),
        ),
        records=records.scores.size,
        positives=int(records.labels.sum(dtype=np.int64)),
        low=float(records.scores.min()),
        high=float(records.scores.max()),
    )


def _problems(source: str, columns: Columns, unit: str | None) -> list[values.Problem]:
    percent = columns.form.percent or unit == PERCENT
    columns = replace(columns, form=replace(columns.form, percent=percent))
    with unchanging(source), ExitStack() as closing:
        table = raw_table(source, columns, closing)
        problems = [*table.problems, *_of_values(table, columns, unit)]
        placed = [_with_line(problem, table) for problem in problems]
        return sorted(placed, key=lambda problem: problem.row or 0)


def _of_values(table: RawTable, columns: Columns, unit: str | None) -> list[values.Problem]:
    problems: list[values.Problem] = []
    for option, name in columns.by_option.items():
        column = table.columns.get(name)
        if column is not None:
            problems += _of_column(option, column, columns, unit)
    return problems


def _of_column(
    option: str, column: values.Column, columns: Columns, unit: str | None
) -> list[values.Problem]:
    kind = column.values.type
    if option in ("score", "second"):
        if not (is_written_number(kind) or pa.types.is_null(kind)):
            return [values.Problem(f"column {column.name!r} holds {kind}, not numbers")]
        called = "score" if option == "score" else "second value"
        return values.numbers_wrong(
            column, called, columns.form, unit if option == "score" else None
        )
    if option == "label":
        if not (is_label(kind) or pa.types.is_null(kind)):
            return [values.Problem(f"column {column.name!r} holds {kind}, not labels")]
        return values.labels_wrong(column, columns.form)
    nothing = column.values.is_null().to_numpy(zero_copy_only=False)
    return column.problem(nothing, f"{option} is missing", "fill it in")


def _with_line(problem: values.Problem, table: RawTable) -> values.Problem:
    if problem.row is None or table.line_of is None:
        return problem
    return replace(problem, line=table.line_of(problem.row))


def _notes(records: Records, columns: Columns, unit: str | None) -> list[str]:
    """What can be read and may still be a mistake."""
    scores, notes = records.scores, []
    if columns.label is not None and records.labels.min() == records.labels.max():
        notes.append(f"all labels are {records.labels[0]}: there is no AUC of this file alone")
    if scores.size < FEW_RECORDS:
        notes.append(f"only {scores.size} records: noise may be larger than what they say")
    different = np.unique(scores).size
    if different == 1:
        notes.append(f"all scores are {scores[0]:g}: they order nothing")
    elif different <= min(20, scores.size // 10):
        notes.append(f"only {different} different scores: many records tie")
    if unit is None and (scores.min() < 0 or scores.max() > 1):
        notes.append(f"scores are not from 0 to 1; {_likely_unit(scores)}")
    if columns.client is None and _each_twice(records):
        notes.append("every record is there at least twice: were files joined?")
    return notes


def _likely_unit(scores: NDArray[np.float64]) -> str:
    if scores.min() >= 0 and scores.max() <= 100:
        return "if they are in percent: --unit percent"
    if scores.min() < 0 and np.abs(scores).max() < 50:
        return "if they are log-odds: --unit log-odds; if any other numbers: --unit real"
    return f"name what they are: --unit, one of {', '.join(UNITS[1:])}"


def _each_twice(records: Records) -> bool:
    """Whether every pair of score and label occurs more than once, and scores are not few."""
    _, counts = np.unique(records.scores + 1j * records.labels, return_counts=True)
    return bool(counts.size > 20 and counts.min() >= 2)
