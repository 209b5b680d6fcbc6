"""The curves of a result as pictures with their tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.reporting.charts import Plot
from tacit.reporting.words import decimal, threshold_text
from tacit.results.saved import reading

THRESHOLD = "Threshold"
"""The heading of scores from which on records are called positive."""
Column = tuple[str, Sequence[float | None]]
PRIVACY_ONLY = "The band is pointwise, 95 %, about these records' rates: privacy noise only."
BOTH = "The band is pointwise, 95 %, about the population's rates: privacy noise and sampling."


@dataclass(frozen=True)
class Panel:
    """A picture, what it shows, and its numbers.

    Parameters
    ----------
    plot : the picture.
    caption : what it shows, and what its band means.
    columns : the table's columns: a heading and the numbers, the horizontal ones first, then the
        vertical ones.
    """

    plot: Plot
    caption: str
    columns: tuple[Column, ...]

    def texts(self, row: tuple[float, ...]) -> list[str]:
        """The numbers of a row as they are read."""
        return [
            threshold_text(value) if heading == THRESHOLD else decimal(value)
            for (heading, _), value in zip(self.columns, row, strict=True)
        ]

    @property
    def rows(self) -> list[tuple[float, ...]]:
        """The rows whose point exists."""
        listed = zip(*(values for _, values in self.columns), strict=True)
        numbers = [tuple(map(reading.number, row)) for row in listed]
        return [row for row in numbers if math.isfinite(row[0]) and math.isfinite(row[1])]


def panels(result: reading.Result, prefix: str) -> list[Panel]:
    """The pictures that a result allows: ROC, precision-recall, reliability.

    Parameters
    ----------
    result : the result.
    prefix : starts the pictures' ids.
    """
    made = []
    if "roc" in result.content:
        made.append(_roc(result, prefix))
    if "precision_recall" in result.content:
        made.append(_precision_recall(result.content, prefix))
    elif "rates" in result.content:
        made.append(_precision_of_rates(result.content, prefix))
    if "reliability" in result.content:
        made.append(_reliability(result.content, prefix))
    return made


def _roc(result: reading.Result, prefix: str) -> Panel:
    curve = result.content["roc"]
    columns = (
        ("False-positive rate", curve["false_positive_rate"]),
        ("True-positive rate", curve["true_positive_rate"]),
        ("Band from", curve["true_positive_rate_low"]),
        ("to", curve["true_positive_rate_high"]),
        (THRESHOLD, curve["thresholds"]),
    )
    points, lower, upper = _outline(columns)
    about = BOTH if "true_positive_sampling" in curve else PRIVACY_ONLY
    value = decimal(result.estimate.value)
    plot = Plot(
        f"{prefix}-roc",
        "ROC curve",
        f"True-positive rate over false-positive rate at {len(points)} thresholds; the area under "
        f"it is estimated as {value}. The table below the picture has all numbers.",
        "False-positive rate",
        "True-positive rate (recall)",
        sorted([(0.0, 0.0), *points, (1.0, 1.0)]),
        _to_the_corners(lower),
        _to_the_corners(upper),
        diagonal=True,
    )
    caption = "How many positives are found (upwards) at what share of false alarms. " + about
    return Panel(plot, caption, columns)


def _to_the_corners(edge: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A band's edge in order; at both corners nothing is estimated."""
    return sorted([(0.0, 0.0), *edge, (1.0, 1.0)]) if edge else []


def _precision_recall(content: Mapping[str, Any], prefix: str) -> Panel:
    curve = content["precision_recall"]
    columns = (
        ("Recall", curve["recall"]),
        ("Precision", curve["precision"]),
        ("Band from", curve["precision_low"]),
        ("to", curve["precision_high"]),
        (THRESHOLD, curve["thresholds"]),
    )
    caption = "How many of the records called positive are (upwards), by how many positives are "
    return _precision_panel(content, prefix, columns, f"{caption}found. {BOTH}")


def _precision_of_rates(content: Mapping[str, Any], prefix: str) -> Panel:
    """The same from rates whose precision has no known error."""
    rates = content["rates"]
    columns = (
        ("Recall", rates["recall"]),
        ("Precision", rates["precision"]),
        (THRESHOLD, rates["thresholds"]),
    )
    caption = (
        "How many of the records called positive are (upwards), by how many positives are found. "
        "Computed from the ROC curve and the estimated class sizes; its error is not known."
    )
    return _precision_panel(content, prefix, columns, caption)


def _precision_panel(
    content: Mapping[str, Any], prefix: str, columns: tuple[Column, ...], caption: str
) -> Panel:
    points, lower, upper = _outline(columns)
    plot = Plot(
        f"{prefix}-pr",
        "Precision and recall",
        f"Precision over recall at {len(points)} thresholds. The dashed level is the share of "
        "positives among all records. The table below the picture has all numbers.",
        "Recall",
        "Precision",
        points,
        lower,
        upper,
        level=_prevalence(content),
    )
    return Panel(plot, f"{caption} Dashed: the share of positives among all records.", columns)


def _reliability(content: Mapping[str, Any], prefix: str) -> Panel:
    diagram = content["reliability"]
    columns = (
        ("Mean score", diagram["predicted"]),
        ("Share of positives", diagram["observed"]),
        ("Band from", diagram["observed_low"]),
        ("to", diagram["observed_high"]),
    )
    points, lower, upper = _outline(columns)
    plot = Plot(
        f"{prefix}-reliability",
        "Reliability diagram",
        f"The share of positives in {len(points)} buckets of ascending score, over the mean score "
        "there. On the diagonal, scores are probabilities. The table below has all numbers.",
        "Mean score",
        "Share of positives",
        points,
        lower,
        upper,
        diagonal=True,
        scattered=True,
    )
    caption = (
        "Where scores are probabilities, the points lie on the diagonal. Each bar is a 95 % "
        "interval about the population's share: privacy noise and sampling."
    )
    return Panel(plot, caption, columns)


def _outline(columns: Sequence[Column]) -> tuple[list[tuple[float, float]], ...]:
    """The points that exist, and the two edges of the band at those that have one."""
    rows = [tuple(map(reading.number, row)) for row in zip(*(v for _, v in columns), strict=True)]
    known = [row for row in rows if math.isfinite(row[0]) and math.isfinite(row[1])]
    points = [(row[0], row[1]) for row in known]
    if columns[2][0] != "Band from":
        return points, [], []
    banded = [row for row in known if math.isfinite(row[2]) and math.isfinite(row[3])]
    return points, [(row[0], row[2]) for row in banded], [(row[0], row[3]) for row in banded]


def _prevalence(content: Mapping[str, Any]) -> float:
    positives, negatives = (
        reading.number(content.get(name)) for name in ("positives", "negatives")
    )
    total = positives + negatives
    return positives / total if total > 0 and positives >= 0 else math.nan
