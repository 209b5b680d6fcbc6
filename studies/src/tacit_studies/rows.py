"""What a reproduced table consists of: numbers beside the paper's, and targets of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

STATISTICS = ("mean", "std")
"""The last word of a row's name, where the paper prints a mean and a standard deviation."""


@dataclass(frozen=True)
class Row:
    """One cell of a paper's table, or one point of a figure.

    Parameters
    ----------
    table, row, column : where the number stands.
    paper : the printed number; None where the paper prints none, as in a figure.
    ours : the measured number; NaN where the noise left no signal.

    Examples
    --------
    >>> Row("fedauc-table-1", "eps=1 RR", "any K", paper=0.5, ours=0.25).ratio
    0.5
    """

    table: str
    row: str
    column: str
    paper: float | None
    ours: float

    @property
    def ratio(self) -> float | None:
        """``ours / paper``; None without a paper's number to divide by, or without our own."""
        if not self.paper or not math.isfinite(self.ours):
            return None
        return self.ours / self.paper

    @property
    def statistic(self) -> str:
        """``"mean"`` or ``"std"`` where the row is named so, else an empty text."""
        last = self.row.rsplit(" ", 1)[-1]
        return last if last in STATISTICS else ""

    def to_dict(self) -> dict[str, Any]:
        """The row for JSON; a number that is not finite becomes None."""
        return {
            "table": self.table,
            "row": self.row,
            "column": self.column,
            "paper": None if self.paper is None else _finite(self.paper),
            "ours": _finite(self.ours),
            "ratio": None if self.ratio is None else _finite(self.ratio),
        }


@dataclass(frozen=True)
class Target:
    """A measured number that must lie between bounds which we set ourselves.

    Parameters
    ----------
    table, row, column : where the number stands.
    ours : the measured number.
    at_least, at_most : the bounds, both included; None leaves a side open.

    Examples
    --------
    >>> target = Target("coverage", "eps=1", "K=10", 0.95, at_least=0.93, at_most=0.97)
    >>> target.target, target.met
    ('0.93..0.97', True)
    """

    table: str
    row: str
    column: str
    ours: float
    at_least: float | None = None
    at_most: float | None = None

    @property
    def target(self) -> str:
        """The bounds as text."""
        if self.at_least is None:
            return f"<= {self.at_most:g}"
        if self.at_most is None:
            return f">= {self.at_least:g}"
        return f"{self.at_least:g}..{self.at_most:g}"

    @property
    def met(self) -> bool:
        """Whether the number lies within the bounds; never when it is NaN."""
        low = -math.inf if self.at_least is None else self.at_least
        high = math.inf if self.at_most is None else self.at_most
        return low <= self.ours <= high

    def to_dict(self) -> dict[str, Any]:
        """The target for JSON, with a row's keys and two more."""
        return {
            "table": self.table,
            "row": self.row,
            "column": self.column,
            "paper": None,
            "ours": _finite(self.ours),
            "ratio": None,
            "target": self.target,
            "met": self.met,
        }


@dataclass(frozen=True)
class Beside(Target):
    """An error with its target, beside the floor and beside what an earlier form reaches.

    Parameters
    ----------
    floor : the least error that noise of the agreed privacy allows; None where no formula is known.
    before : the same figure of the earlier form; None where it was not measured.
    reason : why the target was missed; empty where it was met.

    Examples
    --------
    >>> Beside("floor", "sum", "MAE", 3.5e-6, at_most=3.8e-6, floor=3.25e-6).verdict
    'yes'
    """

    floor: float | None = None
    before: float | None = None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """Whether the target was met, with the reason where it was not."""
        if self.met:
            return "yes"
        return f"NO: {self.reason}" if self.reason else "NO"

    def to_dict(self) -> dict[str, Any]:
        """The target for JSON, with three more keys."""
        return super().to_dict() | {
            "floor": None if self.floor is None else _finite(self.floor),
            "before": None if self.before is None else _finite(self.before),
            "reason": self.reason,
        }


Measured = Row | Target


@dataclass(frozen=True)
class Summary:
    """How well numbers agree with the paper's, and which targets were met.

    Parameters
    ----------
    cells : the number of cells with a ratio to the paper's number.
    geometric_mean : of the ratios above zero; NaN when there are none.
    within : the fraction of cells whose ratio is within 10, 20 and 25 % of 1, by percentage.
    worst : the cell whose ratio is farthest from 1 on a logarithmic scale.
    targets, unmet : the number of targets, and those that were not met.
    """

    cells: int
    geometric_mean: float
    within: dict[int, float]
    worst: Row | None
    targets: int
    unmet: tuple[Target, ...]

    def __str__(self) -> str:
        parts = []
        if self.worst is not None:
            fractions = ", ".join(
                f"{fraction:.0%} within {p} %" for p, fraction in self.within.items()
            )
            parts.append(
                f"{self.cells} cells, geometric mean of ours/paper {self.geometric_mean:.3f}, "
                f"{fractions}, "
                f"worst {self.worst.ratio:.3f} at {self.worst.row}, {self.worst.column}"
            )
        if self.targets:
            missed = "".join(f"; missed: {t.row}, {t.column}" for t in self.unmet)
            parts.append(f"{self.targets - len(self.unmet)} of {self.targets} targets met{missed}")
        return "; ".join(parts) or "no number of the paper to compare with"


def summary(rows: Sequence[Measured]) -> Summary:
    """How well the given rows agree with the paper."""
    cells = [row for row in rows if isinstance(row, Row) and row.ratio is not None]
    ratios = [row.ratio for row in cells if row.ratio is not None]
    logs = [math.log(ratio) for ratio in ratios if ratio > 0]
    within = {
        percent: sum(abs(ratio - 1) <= percent / 100 for ratio in ratios) / max(len(ratios), 1)
        for percent in (10, 20, 25)
    }
    targets = [row for row in rows if isinstance(row, Target)]
    return Summary(
        cells=len(cells),
        geometric_mean=math.exp(math.fsum(logs) / len(logs)) if logs else math.nan,
        within=within,
        worst=max(cells, key=_distance, default=None),
        targets=len(targets),
        unmet=tuple(target for target in targets if not target.met),
    )


def summary_lines(rows: Sequence[Measured]) -> list[str]:
    """One line, or one for each statistic: means agree closely and would flatter the deviations."""
    lines = []
    for statistic in STATISTICS:
        named = [row for row in rows if isinstance(row, Row) and row.statistic == statistic]
        if named:
            lines.append(f"{statistic}: {summary(named)}")
    rest = [row for row in rows if isinstance(row, Target) or not row.statistic]
    return [*lines, str(summary(rest))] if rest or not lines else lines


def format_rows(rows: Sequence[Measured]) -> str:
    """The rows as aligned columns of text; targets and floors follow under other headings."""
    plain = [
        (row.row, row.column, _number(row.paper), _number(row.ours), _ratio(row.ratio))
        for row in rows
        if isinstance(row, Row)
    ]
    targets = [
        (row.row, row.column, row.target, _number(row.ours), "yes" if row.met else "NO")
        for row in rows
        if isinstance(row, Target) and not isinstance(row, Beside)
    ]
    floors = [row for row in rows if isinstance(row, Beside)]
    blocks = []
    if plain:
        blocks.append(_aligned([("row", "column", "paper", "ours", "ratio"), *plain]))
    if targets:
        blocks.append(_aligned([("row", "column", "target", "ours", "met"), *targets]))
    if floors:
        blocks.append(_beside_floors(floors))
    return "\n\n".join(blocks)


def _beside_floors(rows: Sequence[Beside]) -> str:
    """Errors with reasons, beside what is known of their floors and of an earlier form."""
    with_floors = any(row.floor is not None or row.before is not None for row in rows)
    heads = ("what", "figure", "before", "reach", "measured", "floor", "met")
    lines = [
        (
            *(row.row, row.column, _number(row.before)),
            _number(row.at_most) if row.at_least is None else row.target,
            *(_number(row.ours), _number(row.floor), row.verdict),
        )
        for row in rows
    ]
    if with_floors:
        return _aligned([heads, *lines], left=(0, 1, 6))
    kept = [0, 1, 3, 4, 6]
    return _aligned([tuple(line[k] for k in kept) for line in (heads, *lines)], left=(0, 1, 4))


def _aligned(lines: Sequence[tuple[str, ...]], left: tuple[int, ...] = (0, 1)) -> str:
    """Text columns to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if index in left else text.rjust(width)
            for index, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _number(value: float | None) -> str:
    """Six digits for rates and counts, three for the small numbers that deviations are."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:.2e}" if 0 < abs(value) < 0.1 else f"{value:.6g}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _distance(row: Row) -> float:
    """Distance of a cell's ratio from 1, on a logarithmic scale."""
    if not row.ratio or row.ratio < 0:
        return math.inf
    return abs(math.log(row.ratio))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
