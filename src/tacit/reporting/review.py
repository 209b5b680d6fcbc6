"""What a reviewer looks for first: calibration, net benefit, and scores by outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tacit.reporting.charts import Graph, Points, Series, Tick, round_ticks
from tacit.reporting.parts import PagePosition, datum, paragraphs, table
from tacit.reporting.words import between, decimal
from tacit.results.estimate import decimals
from tacit.results.measures import measure
from tacit.results.saved.reading import Bounds, Result, number

BAND = "Bands are pointwise, 95 %, about the population: privacy noise, cells and sampling."
ESSENTIALS = (
    "Van Calster et al. (Lancet Digital Health 2025) call four essential: the AUROC with its "
    "interval, which is above, here with its curve; a calibration plot; net benefit over "
    "thresholds; and the distribution of scores by outcome. All follow from the release that this "
    "report spent its privacy on, and cost no more."
)
KEY = ("calibration_intercept", "calibration_slope", "observed_over_expected", "ici", "brier")
UNIT_TICKS: tuple[Tick, ...] = tuple((value / 4, f"{value / 4:g}") for value in range(5))
LEAST_SHOWN = -0.1
"""Part of the prevalence below 0 down to which net benefits are drawn."""


def review_section(result: Result, position: PagePosition, curve: str = "") -> str:
    """The essentials besides the AUC; nothing where the result holds none of them.

    Parameters
    ----------
    curve : the ROC curve's picture, which comes first; empty for none.
    """
    content = result.content
    if not has_essentials(result):
        return ""
    graphs = [
        made
        for made in (
            curve,
            _calibration(content, position.prefix),
            _decisions(content, position.prefix),
            _distribution(content, position.prefix),
        )
        if made
    ]
    body = paragraphs([ESSENTIALS]) + f'<div class="plots">{"".join(graphs)}</div>'
    shown = [name for name in KEY if name in content["measures"]]
    shown += [name for name in content["measures"] if name.startswith("net_benefit_at_")]
    body += measures_table("Calibration and net benefit", content["measures"], shown)
    return position.section("review", "For a reviewer", body)


def has_essentials(result: Result) -> bool:
    """Whether the result holds measures of a score histogram."""
    return any(name in result.content.get("measures", {}) for name in KEY)


def measures_table(caption: str, measures: Mapping[str, Any], names: Sequence[str]) -> str:
    """Measures with both intervals, or the reasons why they are absent."""
    headings = ("Figure", "Estimate", "95 % interval (these records)", "95 % interval (population)")
    return table(caption, headings, [_row(name, measures[name]) for name in names])


def _row(name: str, entry: Mapping[str, Any]) -> list[str]:
    value = number(entry["value"])
    if not math.isfinite(value):
        return [escape(measure.label(name)), "none", escape(str(entry.get("reason", ""))), ""]
    bounds = bounds_of(entry, "interval")
    digits = decimals(bounds)
    return [
        escape(measure.label(name)),
        datum(value, decimal(value, digits)),
        escape(between(bounds, digits)),
        escape(between(bounds_of(entry, "population_interval"), digits)),
    ]


def bounds_of(entry: Mapping[str, Any], name: str) -> Bounds:
    """An interval of a measure; NaN where it has none."""
    low, high = entry.get(name, (None, None))
    return number(low), number(high)


def _calibration(content: Mapping[str, Any], prefix: str) -> str:
    curve = content.get("calibration_curve")
    if curve is None:
        return ""
    graph = Graph(
        f"{prefix}-smooth",
        "Calibration",
        "The smooth share of positives over the probability that scores state, with its band. "
        "On the dashed diagonal they are equal.",
        "Stated probability",
        "Share of positives",
        UNIT_TICKS,
        UNIT_TICKS,
        [
            _banded("line", "scores", curve, "predicted", "observed"),
            Series("reference", "perfect calibration", [(0.0, 0.0), (1.0, 1.0)]),
        ],
    )
    return _figure(graph, "A logistic regression on a spline of the log-odds.", curve)


def _decisions(content: Mapping[str, Any], prefix: str) -> str:
    curve = content.get("decision_curve")
    if curve is None:
        return ""
    benefits = _known(curve["net_benefit"], curve["treat_all"])
    top = max(benefits, default=1.0)
    # treating nobody is on the picture too, where nothing does better
    ends = (LEAST_SHOWN * top, top) if top > 0 else (min(benefits), 0.0)
    widest = max(_known(content.get("calibration_curve", {}).get("predicted", [])), default=1.0)
    graph = Graph(
        f"{prefix}-decision",
        "Net benefit",
        "Net benefit of treating by the scores, with its band, over the probability from which "
        "on one treats; of treating everybody; and of treating nobody, which is 0.",
        "Threshold probability",
        "Net benefit",
        round_ticks(0.0, min(widest + 0.05, 1.0)),
        round_ticks(*ends),
        [
            _banded("line", "scores", curve, "thresholds", "net_benefit"),
            _banded("second", "treat all", curve, "thresholds", "treat_all"),
            Series("reference", "treat none", [(0.0, 0.0), (1.0, 0.0)]),
        ],
    )
    return _figure(graph, "Where the line is highest, treating by the scores does best.", curve)


def _distribution(content: Mapping[str, Any], prefix: str) -> str:
    curve = content.get("score_distribution")
    if curve is None:
        return ""
    size = len(curve["positives"])
    top = max(_known(curve["positives_high"], curve["negatives_high"]), default=1.0)
    ticks = [(float(index), _edge(curve, index)) for index in range(0, size + 1, max(size // 4, 1))]
    graph = Graph(
        f"{prefix}-distribution",
        "Scores by outcome",
        "The part of the positives and of the negatives in each group of scores, with bands.",
        "Score",
        "Part of the class",
        ticks if ticks[-1][0] == size else [*ticks, (float(size), "")],
        round_ticks(0.0, top),
        [
            _steps("line", "positives", curve, "positives"),
            _steps("second", "negatives", curve, "negatives"),
        ],
    )
    return _figure(graph, "Groups of neighbouring scores.", curve)


def _known(*columns: Sequence[float | None]) -> list[float]:
    """The numbers of these columns that exist."""
    return [value for column in columns for value in map(number, column) if math.isfinite(value)]


def _edge(curve: Mapping[str, Any], index: int) -> str:
    """The score at a border of groups."""
    last = index == len(curve["high"])
    value = curve["high"][-1] if last else curve["low"][index]
    if value is None:
        return "\u221e" if last else "-\u221e"
    return f"{value:.4g}"


def _banded(kind: str, name: str, curve: Mapping[str, Any], across: str, up: str) -> Series:
    places = [number(value) for value in curve[across]]
    rows = [[number(value) for value in curve[f"{up}{end}"]] for end in ("", "_low", "_high")]
    points, lower, upper = (list(zip(places, row, strict=True)) for row in rows)
    return Series(kind, name, points, lower, upper)


def _steps(kind: str, name: str, curve: Mapping[str, Any], up: str) -> Series:
    points, lower, upper = (
        _stairs([number(value) for value in curve[f"{up}{end}"]]) for end in ("", "_low", "_high")
    )
    return Series(kind, name, points, lower, upper)


def _stairs(values: Sequence[float]) -> Points:
    """Both ends of every step."""
    return [(float(index + end), value) for index, value in enumerate(values) for end in (0, 1)]


def _figure(graph: Graph, caption: str, curve: Mapping[str, Any]) -> str:
    headings = [name.replace("_", " ") for name in curve]
    rows = [[datum(number(value)) for value in row] for row in zip(*curve.values(), strict=True)]
    numbers = table(f"{graph.title}: all numbers", headings, rows)
    return (
        f'<figure class="panel"><p class="panel-title">{escape(graph.title)}</p>{graph.svg()}'
        f"{graph.legend()}<figcaption>{escape(f'{caption} {BAND}')}</figcaption>"
        f"<details><summary>Table: {escape(graph.title)}</summary>{numbers}</details></figure>"
    )
