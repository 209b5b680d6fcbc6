"""The result of checking files."""

from __future__ import annotations

from dataclasses import dataclass, field


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
