"""The pictures of a result with their captions and their numbers.

Van Calster et al. (Lancet Digital Health 2025) call four essential: the ROC curve, calibration, net
benefit, and scores by outcome.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.reporting.charts import Graph, Points, Series, known, round_ticks
from tacit.reporting.numbers import decimal, threshold_text
from tacit.results.saved.reading import Result, number

THRESHOLD = "Threshold"
"""The heading of scores from which on records are called positive."""

Column = tuple[str, Sequence[float | None]]

DIAGONAL = Series("reference", "", [(0.0, 0.0), (1.0, 1.0)])
PRIVACY_ONLY = "The band is pointwise, 95 %, about these records' rates: privacy noise only."
BOTH = "The band is pointwise, 95 %, about the population's rates: privacy noise and sampling."
BAND = "Bands are pointwise, 95 %, about the population: privacy noise, cells and sampling."

KEY = ("calibration_intercept", "calibration_slope", "observed_over_expected", "ici", "brier")
"""Measures that stand beside the essential pictures."""

LEAST_SHOWN = -0.1
"""Part of the prevalence below 0 down to which net benefits are drawn."""


@dataclass(frozen=True)
class Picture:
    """A picture, what it shows, and its numbers.

    Parameters
    ----------
    graph : the picture.
    caption : what it shows, and what its band means.
    columns : the table's columns: a heading and the numbers; of a readable picture the horizontal
        ones first, then the vertical ones.
    essential : whether it is one of the pictures that a reviewer looks for first.
    """

    graph: Graph
    caption: str
    columns: tuple[Column, ...]
    essential: bool = False

    @property
    def headings(self) -> list[str]:
        """The headings of the table."""
        return [heading for heading, _ in self.columns]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The style and the name of every line that has one."""
        return [(each.kind, each.label) for each in self.graph.series if each.label]

    def texts(self, row: tuple[float, ...]) -> list[str]:
        """The numbers of a row as they are read."""
        return [
            threshold_text(value) if heading == THRESHOLD else decimal(value)
            for heading, value in zip(self.headings, row, strict=True)
        ]

    @property
    def rows(self) -> list[tuple[float, ...]]:
        """The rows of the table; of a readable picture those whose point exists."""
        columns = [map(number, values) for _, values in self.columns]
        rows = zip(*columns, strict=True)
        return [row for row in rows if not self.graph.readable or all(map(math.isfinite, row[:2]))]


def pictures_of(result: Result, prefix: str) -> Iterator[Picture]:
    """The pictures that a result allows, in their order on the page.

    Parameters
    ----------
    result : the result.
    prefix : starts the pictures' ids.
    """
    content = result.content
    if "roc" in content:
        yield _roc(result, prefix)
    if has_essentials(result):
        if "calibration_curve" in content:
            yield _calibration(content, prefix)
        if "decision_curve" in content:
            yield _decisions(content, prefix)
        if "score_distribution" in content:
            yield _distribution(content, prefix)
    if "precision_recall" in content or "rates" in content:
        yield _precision(content, prefix)
    if "reliability" in content:
        yield _reliability(content, prefix)


def has_essentials(result: Result) -> bool:
    """Whether the result holds measures of a score histogram."""
    return any(name in result.content.get("measures", {}) for name in KEY)


def reviewed(content: Mapping[str, Any]) -> list[str]:
    """The measures beside the essential pictures."""
    shown = [name for name in KEY if name in content["measures"]]
    return shown + [name for name in content["measures"] if name.startswith("net_benefit_at_")]


def _roc(result: Result, prefix: str) -> Picture:
    curve = result.content["roc"]
    columns = (
        ("False-positive rate", curve["false_positive_rate"]),
        ("True-positive rate", curve["true_positive_rate"]),
        ("Band from", curve["true_positive_rate_low"]),
        ("to", curve["true_positive_rate_high"]),
        (THRESHOLD, curve["thresholds"]),
    )
    edges = [known(edge) for edge in _edges(curve, "false_positive_rate", "true_positive_rate")]
    # at both corners nothing is estimated
    outline = [sorted([(0.0, 0.0), *edge, (1.0, 1.0)]) if edge else [] for edge in edges]
    about = BOTH if "true_positive_sampling" in curve else PRIVACY_ONLY
    graph = Graph(
        f"{prefix}-roc",
        "ROC curve",
        f"True-positive rate over false-positive rate at {len(edges[0])} thresholds; "
        f"the area under it is estimated as {decimal(result.estimate.value)}. The table below the "
        "picture has all numbers.",
        "False-positive rate",
        "True-positive rate (recall)",
        [Series("line", "", *outline), DIAGONAL],
        readable=True,
    )
    caption = "How many positives are found (upwards) at what share of false alarms. " + about
    return Picture(graph, caption, columns, has_essentials(result))


def _precision(content: Mapping[str, Any], prefix: str) -> Picture:
    """Precision over recall; without a band where it comes from rates of unknown error."""
    curve = content.get("precision_recall", content.get("rates"))
    banded = "precision_recall" in content
    columns: tuple[Column, ...] = (("Recall", curve["recall"]), ("Precision", curve["precision"]))
    if banded:
        columns += (("Band from", curve["precision_low"]), ("to", curve["precision_high"]))
    columns += ((THRESHOLD, curve["thresholds"]),)
    edges = _edges(curve, "recall", "precision")
    share = _prevalence(content)
    level = [Series("reference", "", [(0.0, share), (1.0, share)])]
    graph = Graph(
        f"{prefix}-pr",
        "Precision and recall",
        f"Precision over recall at {len(known(edges[0]))} thresholds. The dashed level is the "
        "share of positives among all records. The table below the picture has all numbers.",
        "Recall",
        "Precision",
        [Series("line", "", *edges), *level],
        readable=True,
    )
    unknown = "Computed from the ROC curve and the estimated class sizes; its error is not known."
    caption = (
        "How many of the records called positive are (upwards), by how many positives are found. "
        f"{BOTH if banded else unknown} Dashed: the share of positives among all records."
    )
    return Picture(graph, caption, columns)


def _reliability(content: Mapping[str, Any], prefix: str) -> Picture:
    diagram = content["reliability"]
    columns = (
        ("Mean score", diagram["predicted"]),
        ("Share of positives", diagram["observed"]),
        ("Band from", diagram["observed_low"]),
        ("to", diagram["observed_high"]),
    )
    edges = _edges(diagram, "predicted", "observed")
    graph = Graph(
        f"{prefix}-reliability",
        "Reliability diagram",
        f"The share of positives in {len(known(edges[0]))} buckets of ascending score, over the "
        "mean score there. On the diagonal, scores are probabilities. The table below has all "
        "numbers.",
        "Mean score",
        "Share of positives",
        [Series("dots", "", *edges), DIAGONAL],
        readable=True,
    )
    caption = (
        "Where scores are probabilities, the points lie on the diagonal. Each bar is a 95 % "
        "interval about the population's share: privacy noise and sampling."
    )
    return Picture(graph, caption, columns)


def _calibration(content: Mapping[str, Any], prefix: str) -> Picture:
    curve = content["calibration_curve"]
    graph = Graph(
        f"{prefix}-smooth",
        "Calibration",
        "The smooth share of positives over the probability that scores state, with its band. "
        "On the dashed diagonal they are equal.",
        "Stated probability",
        "Share of positives",
        [
            Series("line", "scores", *_edges(curve, "predicted", "observed")),
            Series("reference", "perfect calibration", DIAGONAL.points),
        ],
    )
    return _essential(graph, "A logistic regression on a spline of the log-odds.", curve)


def _decisions(content: Mapping[str, Any], prefix: str) -> Picture:
    curve = content["decision_curve"]
    benefits = _numbers(curve["net_benefit"], curve["treat_all"])
    top = max(benefits, default=1.0)
    # treating nobody is on the picture too, where nothing does better
    ends = (LEAST_SHOWN * top, top) if top > 0 else (min(benefits), 0.0)
    widest = max(_numbers(content.get("calibration_curve", {}).get("predicted", [])), default=1.0)
    graph = Graph(
        f"{prefix}-decision",
        "Net benefit",
        "Net benefit of treating by the scores, with its band, over the probability from which "
        "on one treats; of treating all; and of treating none, which is 0.",
        "Threshold probability",
        "Net benefit",
        [
            Series("line", "scores", *_edges(curve, "thresholds", "net_benefit")),
            Series("second", "treat all", *_edges(curve, "thresholds", "treat_all")),
            Series("reference", "treat none", [(0.0, 0.0), (1.0, 0.0)]),
        ],
        round_ticks(0.0, min(widest + 0.05, 1.0)),
        round_ticks(*ends),
    )
    return _essential(graph, "Where the line is highest, treating by the scores does best.", curve)


def _distribution(content: Mapping[str, Any], prefix: str) -> Picture:
    curve = content["score_distribution"]
    size = len(curve["positives"])
    top = max(_numbers(curve["positives_high"], curve["negatives_high"]), default=1.0)
    ticks = [(float(index), _edge(curve, index)) for index in range(0, size + 1, max(size // 4, 1))]
    graph = Graph(
        f"{prefix}-distribution",
        "Scores by outcome",
        "The part of the positives and of the negatives in each group of scores, with bands.",
        "Score",
        "Part of the class",
        [
            Series("line", "positives", *map(_stairs, _rows(curve, "positives"))),
            Series("second", "negatives", *map(_stairs, _rows(curve, "negatives"))),
        ],
        ticks if ticks[-1][0] == size else [*ticks, (float(size), "")],
        round_ticks(0.0, top),
    )
    return _essential(graph, "Groups of neighbouring scores.", curve)


def _essential(graph: Graph, caption: str, curve: Mapping[str, Any]) -> Picture:
    columns = tuple((name.replace("_", " "), values) for name, values in curve.items())
    return Picture(graph, f"{caption} {BAND}", columns, essential=True)


def _rows(curve: Mapping[str, Any], name: str) -> list[list[float]]:
    """The values of a curve, and those of its band's lower and upper edge."""
    return [[number(value) for value in curve[f"{name}{end}"]] for end in ("", "_low", "_high")]


def _edges(curve: Mapping[str, Any], across: str, up: str) -> list[Points]:
    """The points of a curve, and those of its band's lower and upper edge."""
    places = [number(value) for value in curve[across]]
    return [list(zip(places, row, strict=True)) for row in _rows(curve, up)]


def _prevalence(content: Mapping[str, Any]) -> float:
    positives, negatives = (number(content.get(name)) for name in ("positives", "negatives"))
    total = positives + negatives
    return positives / total if total > 0 and positives >= 0 else math.nan


def _numbers(*columns: Sequence[float | None]) -> list[float]:
    """The numbers of these columns that exist."""
    return [value for column in columns for value in map(number, column) if math.isfinite(value)]


def _edge(curve: Mapping[str, Any], index: int) -> str:
    """The score at a border of groups."""
    last = index == len(curve["high"])
    value = curve["high"][-1] if last else curve["low"][index]
    if value is None:
        return "\u221e" if last else "-\u221e"
    return f"{value:.4g}"


def _stairs(values: Sequence[float]) -> Points:
    """Both ends of every step."""
    return [(float(index + end), value) for index, value in enumerate(values) for end in (0, 1)]
