"""Writes docs/reproduction.md from results of ``tacit reproduce`` that are kept beside it.

    tacit reproduce fedauc-table-3 --repeats 100 --json rows.json
    python docs/generating/reproduction.py add rows.json --repeats 100 --seconds 12
    python docs/generating/reproduction.py

The first line measures, the second keeps what was measured in a compact form in
``docs/reproduction``, the third writes the page from all that is kept there.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tacit
from tacit_studies import TABLES, Beside, Measured, Row, Target, summary, summary_lines

DOCS = Path(__file__).resolve().parents[1]
KEPT = DOCS / "reproduction"
PAGE = DOCS / "reproduction.md"

DIGITS = 5
"""Significant digits that are kept of a measured number."""

NO_NUMBERS = "no printed numbers"

FHAUC = "d5ecbf385811c079633663bb49a5962fd215c8a9"
"""The commit of Baykara et al. 2024's repository that was read."""

AGREES = 0.25
"""A cell agrees with the paper's within this part of it."""

SCORES = {
    "criteo-458407": "the Criteo scores (458,407 rows)",
    "criteo-10000": "the Criteo scores (10,000 rows)",
    "synthetic": "synthetic scores",
}

GROUPS = {
    "Our own targets": (
        "fedauc-influence",
        "dpauc-histogram",
        "coverage",
        "score-histogram",
        "histogram-coverage",
        "floor",
        "bounded",
        "survival",
        "balance",
        "curves",
        "compared",
        "coverage-any-scale",
        "measures",
        "planning-grid",
    ),
    "Sun et al. 2022a, FedAUC": ("fedauc-table-", "fedauc-figure-"),
    "Sun et al. 2022b, DPAUC": ("dpauc-table-", "dpauc-figure-"),
    "Baykara et al. 2024, the AUC under homomorphic encryption": ("fhe-",),
    "Bell et al. 2020, U-statistics": ("ustatistics-",),
    "Cormode and Markov 2023, calibration and evaluation": ("federated-",),
}
"""The page's sections, with how the names in them begin."""

HEAD = """\
# Reproduction

Every table and figure of the five papers that can be measured again, and our own targets, as
`tacit reproduce` measured them with tacit {version}. This page is written by
`python docs/generating/reproduction.py` from files in `docs/reproduction`, one a run, and a test
compares the two.

    tacit reproduce list
    tacit reproduce fedauc-table-3 --scores my-scores.parquet --repeats 100 --json rows.json

Without `--scores` records are synthetic, and anybody can measure them; the seed is 0. Most figures
here were measured with *the Criteo scores*, 458,407 of a click model, half of them of clicks. They
are the files `pred_cons_criteo.txt` and `labels_criteo.txt` in the
[repository of Baykara et al. 2024](https://github.com/mdppml/FHAUC/tree/{commit}/data)
(commit of 2025-02-04), put into two columns `score` and `label`; it states no licence, so they are
not part of this project. For the two papers of Sun et al. records are drawn from them in the
papers' numbers, and one constant is added to every positive's log-odds so that the exact AUC is the
paper's.

## How to read it

- **Repeats.** A standard deviation from R repeats is itself known to about `1 / sqrt(2 R)`: 7 % at
  100, 22 % at 10. A coverage from R runs is known to `sqrt(0.95 * 0.05 / R)`: 2 points at 100, 6 at
  15. Where repeats are few, single ratios are noisy, and cells of one table may share their random
  numbers, so that they are off together. A target that is missed by less than that may be met with
  more repeats, and the other way round.
- **Agrees** means that our number is within {agrees:.0f} % of the printed one. A lower number is
  no fault where it is an error or a size. Bounds ("at most") agree where ours is below. Points of
  figures are printed in no paper; they are in the files.
- **Targets** are bounds of our own, and are met or missed. Nothing that missed is left out.
- **Seconds** are of the processor, all threads together, on a machine of two cores that had other
  work to do.
"""


@dataclass(frozen=True)
class Result:
    """What one run of ``tacit reproduce`` measured.

    Parameters
    ----------
    table : the name on the command line.
    scores : a key of ``SCORES``.
    repeats : how often every setting was measured.
    seconds : of the processor.
    version : of tacit.
    rows : row, column, the paper's number or None, ours or None.
    targets : row, column, the bounds as text, ours or None.
    floors : the same of targets beside a floor, with what was before, the floor, and why it was
        missed.
    note : what a reader should know besides; empty for nothing.
    """

    table: str
    scores: str
    repeats: int
    seconds: float
    version: str
    rows: tuple[tuple[str, str, float | None, float | None], ...]
    targets: tuple[tuple[str, str, str, float | None], ...]
    note: str = ""
    floors: tuple[tuple[str, str, str, float | None, float | None, float | None, str], ...] = ()

    @classmethod
    def of_rows(cls, rows: Sequence[dict[str, Any]], **about: Any) -> Result:
        """A result from the entries of ``tacit reproduce --json``."""
        named = {(row["row"], row["column"]): row for row in rows}
        if len(named) != len(rows):
            raise ValueError(f"{len(rows)} rows have {len(named)} names")
        plain = [
            (row["row"], row["column"], row["paper"], rounded(row["ours"]))
            for row in rows
            if "target" not in row
        ]
        bound = [
            (row["row"], row["column"], row["target"], rounded(row["ours"]))
            for row in rows
            if "target" in row and "floor" not in row
        ]
        floors = [
            (
                *(row[name] for name in ("row", "column", "target")),
                *(rounded(row[name]) for name in ("ours", "before", "floor")),
                row["reason"],
            )
            for row in rows
            if "floor" in row
        ]
        return cls(
            rows[0]["table"],
            rows=tuple(plain),
            targets=tuple(bound),
            floors=tuple(floors),
            **about,
        )

    @classmethod
    def read(cls, path: Path) -> Result:
        """A result that was kept."""
        kept = json.loads(path.read_text(encoding="utf-8"))
        for name in ("rows", "targets", "floors"):
            kept[name] = tuple(map(tuple, kept.get(name, ())))
        return cls(**kept)

    @property
    def file(self) -> str:
        """The name of the file that keeps it."""
        apart = "-10000" if self.scores == "criteo-10000" else ""
        return f"{self.table}{apart}.json"

    def write(self, folder: Path) -> None:
        """Keep it, one row a line."""
        text = json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))
        (folder / self.file).write_text(text.replace("],[", "],\n[") + "\n", encoding="utf-8")

    def measured(self) -> list[Measured]:
        """The rows and targets as the package has them."""
        rows: list[Measured] = [
            Row(self.table, row, column, paper, number(value))
            for row, column, paper, value in self.rows
        ]
        rows += [
            Target(self.table, row, column, number(value), *bounds(text))
            for row, column, text, value in self.targets
        ]
        return rows + [
            Beside(self.table, row, column, number(value), *bounds(text), floor, before, reason)
            for row, column, text, value, before, floor, reason in self.floors
        ]

    @property
    def command(self) -> str:
        """How it was measured."""
        given = "" if self.scores == "synthetic" else f" --scores {self.scores}.parquet"
        return f"tacit reproduce {self.table}{given} --repeats {self.repeats}"


def bounds(text: str) -> tuple[float | None, float | None]:
    """The least and the most that a target allows, from its text.

    Examples
    --------
    >>> bounds("<= 1.12"), bounds(">= 10"), bounds("0.9..1.1")
    ((None, 1.12), (10.0, None), (0.9, 1.1))
    """
    if text.startswith("<= "):
        return None, float(text[3:])
    if text.startswith(">= "):
        return float(text[3:]), None
    least, most = text.split("..")
    return float(least), float(most)


def number(value: float | None) -> float:
    """The number, NaN where there is none."""
    return math.nan if value is None else value


def rounded(value: float | None) -> float | None:
    """The number to as many digits as are kept."""
    return None if value is None else float(f"{value:.{DIGITS}g}")


def shown(value: float | None) -> str:
    """A number as the page shows it."""
    if value is None or not math.isfinite(value):
        return "none"
    return f"{value:.2e}" if 0 < abs(value) < 0.001 else f"{value:.5g}"


def cell(text: str) -> str:
    """Text that may stand in a table."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def line(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def verdict(row: Row) -> str:
    """Whether a number agrees with the paper's; one that the paper bounds may lie below it."""
    if row.paper is not None and row.column.endswith("at most") and row.ours <= row.paper:
        return "yes"
    if row.ratio is None:
        return "no ratio"
    if abs(row.ratio - 1) <= AGREES:
        return "yes"
    return "lower" if row.ratio < 1 else "higher"


def page(results: Sequence[Result]) -> str:
    """The whole page."""
    versions = ", ".join(sorted({result.version for result in results}))
    parts = [
        HEAD.format(version=versions, agrees=AGREES * 100, commit=FHAUC),
        *overview(results),
        *misses(results),
    ]
    for title, beginnings in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for result in chosen(results, beginnings):
            parts += section(result)
    absent = [name for name in TABLES if name not in {result.table for result in results}]
    if absent:
        names = ", ".join(f"`{name}`" for name in absent)
        parts += ["\n## Not measured for this page\n", f"{names}."]
    return "\n".join(parts) + "\n"


def chosen(results: Sequence[Result], beginnings: tuple[str, ...]) -> list[Result]:
    """The results whose names begin so, in the order of the list of tables."""
    order = list(TABLES)
    members = [
        result
        for result in results
        if result.table.startswith(beginnings)
        and (result.table in beginnings or result.table not in GROUPS["Our own targets"])
    ]
    return sorted(members, key=lambda result: (order.index(result.table), result.scores))


def overview(results: Sequence[Result]) -> list[str]:
    """One line a result."""
    lines = [
        "## At a glance\n",
        line("Name", "Scores", "Repeats", "Seconds", "Agrees with the paper", "Targets met"),
        line(*["---"] * 6),
    ]
    for beginnings in GROUPS.values():
        for result in chosen(results, beginnings):
            measured = result.measured()
            counts = summary(measured)
            said = [verdict(row) for row in measured if isinstance(row, Row) and row.paper]
            agreeing = f"{said.count('yes')} of {len(said)} cells" if said else NO_NUMBERS
            met = (
                f"{counts.targets - len(counts.unmet)} of {counts.targets}"
                if counts.targets
                else ""
            )
            lines.append(
                line(
                    f"[{result.table}](#{anchor(result)})",
                    SCORES[result.scores].removeprefix("the "),
                    str(result.repeats),
                    f"{result.seconds:.0f}",
                    agreeing,
                    met,
                )
            )
    return lines


def misses(results: Sequence[Result]) -> list[str]:
    """All targets that were not met."""
    missed = [
        (result, target)
        for beginnings in GROUPS.values()
        for result in chosen(results, beginnings)
        for target in summary(result.measured()).unmet
    ]
    lines = ["\n## Missed targets\n"]
    if not missed:
        return [*lines, "None."]
    lines += [line("Name", "Row", "Column", "Target", "Measured"), line(*["---"] * 5)]
    return lines + [
        line(result.table, cell(target.row), cell(target.column), target.target, shown(target.ours))
        for result, target in missed
    ]


def heading(result: Result) -> str:
    """A result's heading."""
    return f"{result.table}, 10,000 rows" if result.scores == "criteo-10000" else result.table


def anchor(result: Result) -> str:
    """The anchor of a result's heading."""
    return heading(result).lower().replace(",", "").replace(" ", "-")


def section(result: Result) -> list[str]:
    """A result in full: every number that the paper prints, and every target."""
    measured = result.measured()
    rows = [row for row in measured if isinstance(row, Row) and row.paper is not None]
    floors = [row for row in measured if isinstance(row, Beside)]
    targets = [row for row in measured if isinstance(row, Target) and row not in floors]
    unprinted = len(measured) - len(rows) - len(targets) - len(floors)
    about = TABLES[result.table].description.replace(" (slow)", "")
    lines = [f"### {heading(result)}\n", f"{about[0].upper()}{about[1:]}.\n"]
    lines.append(f"`{result.command}`, {result.seconds:.0f} s.\n")
    lines += [f"- {text[0].upper()}{text[1:]}." for text in summary_lines(measured)]
    if unprinted:
        remainder = f"{unprinted} numbers with nothing printed beside them are in"
        lines.append(f"- {remainder} [the file](reproduction/{result.file}).")
    if result.note:
        lines.append(f"- {result.note}")
    if targets:
        lines += ["", line("Row", "Column", "Target", "Ours", "Met"), line(*["---"] * 5)]
        lines += [
            line(
                cell(row.row),
                cell(row.column),
                row.target,
                shown(row.ours),
                "yes" if row.met else "**no**",
            )
            for row in targets
        ]
    if rows:
        lines += ["", line("Row", "Column", "Paper", "Ours", "Ours / paper", "Agrees")]
        lines.append(line(*["---"] * 6))
        lines += [
            line(
                cell(row.row),
                cell(row.column),
                shown(row.paper),
                shown(row.ours),
                "" if row.ratio is None else f"{row.ratio:.3f}",
                verdict(row),
            )
            for row in rows
        ]
    return [*lines, *floor_lines(floors), ""]


def floor_lines(floors: Sequence[Beside]) -> list[str]:
    """A table of errors beside their floors; nothing where there are none."""
    if not floors:
        return []
    heads = ("What", "Figure", "Before", "Reach", "Measured", "Floor", "Met", "Reason of a miss")
    return ["", line(*heads), line(*["---"] * len(heads))] + [
        line(
            cell(row.row),
            cell(row.column),
            *map(shown, (row.before, row.at_most, row.ours, row.floor)),
            "yes" if row.met else "**no**",
            cell(row.reason),
        )
        for row in floors
    ]


def kept_results() -> list[Result]:
    """All results that are kept."""
    return [Result.read(path) for path in sorted(KEPT.glob("*.json"))]


def main() -> None:
    """Keep a result, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command")
    add = commands.add_parser("add", help="keep a result of tacit reproduce --json")
    add.add_argument("rows", type=Path)
    add.add_argument("--scores", choices=SCORES, default="synthetic")
    add.add_argument("--repeats", type=int, required=True)
    add.add_argument("--seconds", type=float, required=True)
    add.add_argument("--note", default="")
    add.add_argument("--targets", action="store_true", help="keep targets alone, no other number")
    given = parser.parse_args()
    if given.command == "add":
        KEPT.mkdir(exist_ok=True)
        rows = json.loads(given.rows.read_text(encoding="utf-8"))
        Result.of_rows(
            [row for row in rows if "target" in row] if given.targets else rows,
            scores=given.scores,
            repeats=given.repeats,
            seconds=round(given.seconds, 1),
            version=tacit.__version__,
            note=given.note,
        ).write(KEPT)
    else:
        PAGE.write_text(page(kept_results()), encoding="utf-8")


if __name__ == "__main__":
    main()
