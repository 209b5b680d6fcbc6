"""A result's figures as a table for a paper: comma-separated values or Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence

from tacit.reporting.tables.figure_rows import figure_rows
from tacit.reporting.words import decimal, decimals
from tacit.results.estimate import POPULATION_INTERVAL, RECORDS_INTERVAL
from tacit.results.saved.reading import Bounds
from tacit.results.saved.reading_parts import Document

COLUMNS = (
    *("result", "figure", "estimate", "low", "high", "population_low", "population_high"),
    *("privacy_error", "cell_error", "sampling_error", "threshold", "absent"),
)
"""Headings of the values: 95 % intervals about these records, and about the population."""

FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""What a cell begins with that a spreadsheet takes for a formula, wide forms included."""


def as_csv(results: Sequence[Document]) -> str:
    """Every figure of every file in a line, with all digits; what does not exist is empty.

    A name that a spreadsheet would take for a formula is preceded by an apostrophe.
    """
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in results:
        for row in figure_rows(result):
            digits = [repr(value) if math.isfinite(value) else "" for value in row.values]
            texts = [_plain(text) for text in (result.label, row.name, row.reason)]
            writer.writerow([*texts[:2], *digits, texts[2]])
    return made.getvalue()


def as_markdown(results: Sequence[Document]) -> str:
    """A table of estimates with both intervals, rounded to what the intervals support."""
    about = f"{RECORDS_INTERVAL} | {POPULATION_INTERVAL}"
    lines = [f"| Result | Figure | Estimate | {about} |", "| --- | --- | --- | --- | --- |"]
    for result in results:
        for row in figure_rows(result):
            value, *ends = row.values[:5]
            digits = decimals((ends[0], ends[1]))
            reason = _cell(row.reason)
            shown = decimal(value, digits) if math.isfinite(value) else f"none: {reason}"
            both = (_interval((ends[0], ends[1]), digits), _interval((ends[2], ends[3]), digits))
            named = f"{_cell(result.label)} | {_cell(row.text)}"
            lines.append(f"| {named} | {shown} | {both[0]} | {both[1]} |")
    return "\n".join(lines) + "\n"


def _interval(bounds: Bounds, digits: int) -> str:
    if not all(map(math.isfinite, bounds)):
        return ""
    return f"{decimal(bounds[0], digits)} to {decimal(bounds[1], digits)}"


def _plain(text: str) -> str:
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def _cell(text: str) -> str:
    """A name that cannot end its cell or its line, and is no tag and no link."""
    return " ".join(re.sub(r"[\\|<\[]", r"\\\g<0>", text).split())
