"""All problems of files at once, for their owner's eyes, and what may still be a mistake."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.columns import Columns, Records
from tacit.data.errors import DataError
from tacit.data.reading import FileColumns, FilePath, read_file, together
from tacit.data.tables import Problem
from tacit.data.units import UNITS

FEW_RECORDS = 50
"""A file of fewer records than this adds little but noise."""


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
    notes: tuple[str, ...] = ()
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


def check_files(paths: FilePath | Sequence[FilePath], **columns: Any) -> FilesCheck:
    """What is wrong in every file, and what is wrong between files that can be read.

    The problems describe single records: they are for their owner.

    Parameters
    ----------
    paths : as ``read`` takes them.
    columns : score, label, client, second, unit, person, missing and form, as ``read`` takes them.

    Raises
    ------
    DataError : for a file that is given twice, a unit that is none, or of a file that is not among
        these.

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
    line 4: column 'score' has no value (1 row)
    """
    of_files = FileColumns(**columns).of_files(paths)
    checks, records = [], dict[str, Records]()
    for source, each in of_files.items():
        problems = list[Problem]()
        try:
            records[source] = read_file(source, each, problems)
        except DataError as error:
            problems = [Problem(str(error))]
        checks.append(_check(source, each, problems, records.get(source)))
    if any(check.problems for check in checks):
        return FilesCheck(tuple(checks))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            together(records, of_files)
    except DataError as error:
        return FilesCheck(tuple(checks), (str(error),))
    return FilesCheck(tuple(checks), notes=tuple(str(each.message) for each in caught))


def _check(
    source: str, columns: Columns, problems: list[Problem], records: Records | None
) -> FileCheck:
    left_out = [each for each in problems if columns.drop and each.may_be_left_out]
    remaining = [each for each in problems if each not in left_out]
    if records is not None and records.scores.size and columns.unit is columns.second is None:
        remaining += _outside(records.scores)
    if remaining or records is None:
        return FileCheck(source, tuple(sorted(remaining, key=lambda each: each.row or 0)))
    notes = [f"left out: {each.description}" for each in left_out]
    return FileCheck(
        source,
        notes=tuple(notes + _notes(records, columns)),
        records=records.scores.size,
        positives=int(records.labels.sum(dtype=np.int64)),
        low=float(records.scores.min()),
        high=float(records.scores.max()),
    )


def _notes(records: Records, columns: Columns) -> list[str]:
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
    if columns.client is None and _each_twice(records):
        notes.append("every record is there at least twice: were files joined?")
    return notes


def _outside(scores: NDArray[np.float64]) -> list[Problem]:
    """That scores are no probabilities, which they are taken for where no unit is named."""
    if scores.min() >= 0 and scores.max() <= 1:
        return []
    return [Problem("scores are not from 0 to 1", _likely_unit(scores))]


def _likely_unit(scores: NDArray[np.float64]) -> str:
    if scores.min() >= 0 and scores.max() <= 100:
        return "if they are in percent: --unit percent; if any other numbers: --unit real"
    if scores.min() < 0 and np.abs(scores).max() < 50:
        return "if they are log-odds: --unit log-odds; if any other numbers: --unit real"
    return f"name what they are: --unit, one of {', '.join(UNITS[1:])}"


def _each_twice(records: Records) -> bool:
    """Whether every pair of score and label occurs more than once, and scores are not few."""
    _, counts = np.unique(records.scores + 1j * records.labels, return_counts=True)
    return bool(counts.size > 20 and counts.min() >= 2)
