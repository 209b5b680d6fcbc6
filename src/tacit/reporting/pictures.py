"""The pictures of a result with their captions and their numbers, and where their lines lie.

Van Calster et al. (Lancet Digital Health 2025) call four essential: the ROC curve, calibration, net
benefit, and scores by outcome. ``templates/charts.html`` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tacit.privacy.cost import Cost
from tacit.reporting.words import KEY, decimal, has_essentials, threshold_text
from tacit.results.estimate import Estimate
from tacit.results.parts import COLUMNS
from tacit.results.saved.reading import Bounds, Result, number

LEFT, TOP, SIDE = 70, 12, 300
WIDTH, HEIGHT = LEFT + SIDE + 14, TOP + SIDE + 46
BAR_WIDTH, BAR_EDGE, ROW = 420, 26, 44

Points = Sequence[tuple[float, float]]
Tick = tuple[float, str]

UNIT_TICKS: tuple[Tick, ...] = tuple((value / 4, f"{value / 4:g}") for value in range(5))
"""Ticks of a rate or a probability."""

LONGEST_CENTRED = 4
"""Characters of a tick's text that fit next to the right end of an axis when they are centred."""


@dataclass(frozen=True)
class Series:
    """A line of a graph, or points that are scattered.

    Parameters
    ----------
    kind : its style: ``"line"``, ``"second"``, ``"reference"``, or ``"dots"``, each with an error
        bar.
    label : what the legend calls it; empty for none.
    points : in order of the line; a point that is not finite is left out.
    lower, upper : the band's edges at the same places; empty for none.
    """

    kind: str
    label: str
    points: Points
    lower: Points = ()
    upper: Points = ()

    @property
    def band(self) -> list[tuple[float, float]]:
        """Along the lower edge and back along the upper one; empty where nothing lies between."""
        outline = [*known(self.lower), *reversed(known(self.upper))]
        return outline if len(outline) > 2 else []


THRESHOLD = "Threshold"
"""The heading of scores from which on records are called positive."""

Column = tuple[str, Sequence[float | None]]


@dataclass(frozen=True)
class Graph:
    """A picture of several lines, and its numbers.

    Parameters
    ----------
    name : starts the ids of its parts; unique on the page.
    title, description : read out instead of the picture.
    across, up : the names of the axes.
    series : the lines, the first on top.
    caption : what it shows, and what its band means.
    columns : the table's columns: a heading and the numbers; of a readable picture the horizontal
        ones first, then the vertical ones.
    across_ticks, up_ticks : ascending places with their texts; the first and the last are the ends.
    readable : whether the page's script shows the row of its table that is next to the pointer.
    essential : whether it is one of the pictures that a reviewer looks for first.
    """

    name: str
    title: str
    description: str
    across: str
    up: str
    series: Sequence[Series]
    caption: str
    columns: Sequence[Column]
    across_ticks: Sequence[Tick] = UNIT_TICKS
    up_ticks: Sequence[Tick] = UNIT_TICKS
    readable: bool = False
    essential: bool = False

    @property
    def headings(self) -> list[str]:
        """The headings of the table."""
        return [heading for heading, _ in self.columns]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The style and the name of every line that has one."""
        return [(each.kind, each.label) for each in self.series if each.label]

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
        return [row for row in rows if not self.readable or all(map(math.isfinite, row[:2]))]

    def x(self, value: float) -> str:
        """Where a place on the horizontal axis lies in the picture."""
        low, high = self.across_ticks[0][0], self.across_ticks[-1][0]
        return f"{LEFT + (value - low) / (high - low) * SIDE:.1f}"

    def y(self, value: float) -> str:
        """Where a place on the vertical axis lies in the picture."""
        low, high = self.up_ticks[0][0], self.up_ticks[-1][0]
        # far outside the axes a coordinate would only lengthen the file
        part = min(max((value - low) / (high - low), -2.0), 3.0)
        return f"{TOP + (1 - part) * SIDE:.1f}"

    def path(self, points: Points) -> str:
        """A line through the points that exist; empty where there are fewer than two."""
        placed = [f"{self.x(x)} {self.y(y)}" for x, y in known(points)]
        return "M" + "L".join(placed) if len(placed) > 1 else ""

    def whiskers(self, series: Series) -> str:
        """The error bars of scattered points."""
        return "".join(map(self.path, zip(series.lower, series.upper, strict=True)))

    def is_cut(self, tick: Tick) -> bool:
        """Whether a centred text at the right end would be cut off by the picture's edge."""
        return tick == self.across_ticks[-1] and len(tick[1]) > LONGEST_CENTRED


@dataclass(frozen=True)
class IntervalBar:
    """Estimates on one scale, each with its interval about the records and about the population.

    Parameters
    ----------
    name : starts the ids of its parts.
    title : read out instead of the picture.
    rows : what each is called (empty for one alone), and the estimate.
    exact : the exact figure to mark; NaN for none.
    """

    name: str
    title: str
    rows: Sequence[tuple[str, Estimate]]
    exact: float = math.nan
    width: ClassVar[int] = BAR_WIDTH

    @property
    def height(self) -> int:
        """The picture's height."""
        return 42 + ROW * len(self.rows)

    def y(self, index: int) -> int:
        """Where the row of this number lies."""
        return 28 + ROW * index

    @cached_property
    def ticks(self) -> list[Tick]:
        """Round places that hold every estimate, interval and the exact figure."""
        low, high = pooled_bounds([estimate for _, estimate in self.rows], self.exact)
        span = max(high - low, 1e-4 * max(abs(low), abs(high), 1.0))
        return round_ticks(low - 0.1 * span, high + 0.1 * span)

    def x(self, value: float) -> str:
        """Where a value lies in the picture."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        share = (value - low) / (high - low)
        return f"{BAR_EDGE + share * (BAR_WIDTH - 2 * BAR_EDGE):.1f}"


def pooled_bounds(estimates: Iterable[Estimate], *others: float) -> Bounds:
    """The range that holds these estimates, their intervals and other values; (0, 1) for none."""
    bounds = [
        bound
        for estimate in estimates
        for bound in (estimate.value, *estimate.interval(), *estimate.interval(about="population"))
    ]
    finite = [bound for bound in (*bounds, *others) if math.isfinite(bound)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)


def round_ticks(low: float, high: float) -> list[Tick]:
    """Round places that hold these ends, at most eight.

    Examples
    --------
    >>> [text for _, text in round_ticks(-0.02, 0.31)]
    ['-0.1', '0.0', '0.1', '0.2', '0.3', '0.4']
    """
    least = (max(high, low + 1e-6) - low) / 4
    power = 10.0 ** math.floor(math.log10(least))
    # the least of 1, 2, 5 and 10 times a power of ten that is not below a quarter of the range
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    places = range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)
    return [(index * step, f"{index * step:.{digits}f}") for index in places]


def known(points: Points) -> list[tuple[float, float]]:
    """The points that exist."""
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]


DIAGONAL = Series("reference", "", [(0.0, 0.0), (1.0, 1.0)])
PRIVACY_ONLY = "The band is pointwise, 95 %, about these records' rates: privacy noise only."
BOTH = "The band is pointwise, 95 %, about the population's rates: privacy noise and sampling."
BAND = "Bands are pointwise, 95 %, about the population: privacy noise, cells and sampling."

LEAST_SHOWN = -0.1
"""Part of the prevalence below 0 down to which net benefits are drawn."""


def pictures_of(result: Result, prefix: str) -> Iterator[Graph]:
    """The pictures that a result allows, in their order on the page.

    Parameters
    ----------
    result : the result.
    prefix : starts the pictures' ids.
    """
    content, essential = result.content, has_essentials(result)
    precision = "precision_recall" if "precision_recall" in content else "rates"
    if "roc" in content:
        yield _roc(result, prefix)
    for entry, drawn, is_essential in (
        ("calibration_curve", _calibration, True),
        ("decision_curve", _decisions, True),
        ("score_distribution", _distribution, True),
        (precision, _precision, False),
        ("reliability", _reliability, False),
    ):
        if entry in content and (essential or not is_essential):
            yield drawn(content, prefix)
    for place, (name, curve) in enumerate(content.get("curves", {}).items()):
        yield _banded(name, curve, f"{prefix}-curve-{place}")
    if content["spent"]["epsilon"]:
        yield _trade_off(content["spent"], prefix)


def reviewed(content: Mapping[str, Any]) -> list[str]:
    """The measures that a report shows together with its essential pictures."""
    shown = [name for name in KEY if name in content["measures"]]
    return shown + [name for name in content["measures"] if name.startswith("net_benefit_at_")]


def _roc(result: Result, prefix: str) -> Graph:
    curve = result.content["roc"]
    edges = [known(edge) for edge in _edges(curve, "false_positive_rate", "true_positive_rate")]
    # at both corners nothing is estimated
    outline = [sorted([(0.0, 0.0), *edge, (1.0, 1.0)]) if edge else [] for edge in edges]
    about = BOTH if "true_positive_sampling" in curve else PRIVACY_ONLY
    return Graph(
        f"{prefix}-roc",
        "ROC curve",
        f"True-positive rate over false-positive rate at {len(edges[0])} thresholds; "
        f"the area under it is estimated as {decimal(result.estimate.value)}. The table below the "
        "picture has all numbers.",
        "False-positive rate",
        "True-positive rate (recall)",
        [Series("line", "", *outline), DIAGONAL],
        f"How many positives are found (upwards) at what share of false alarms. {about}",
        _columns(curve, "false_positive_rate", "true_positive_rate"),
        readable=True,
        essential=has_essentials(result),
    )


def _precision(content: Mapping[str, Any], prefix: str) -> Graph:
    """Precision over recall; without a band where it comes from rates of unknown error."""
    curve = content.get("precision_recall", content.get("rates"))
    banded = "precision_recall" in content
    edges = _edges(curve, "recall", "precision")
    share = _prevalence(content)
    unknown = "Computed from the ROC curve and the estimated class sizes; its error is not known."
    return Graph(
        f"{prefix}-pr",
        "Precision and recall",
        f"Precision over recall at {len(known(edges[0]))} thresholds. The dashed level is the "
        "share of positives among all records. The table below the picture has all numbers.",
        "Recall",
        "Precision",
        [Series("line", "", *edges), Series("reference", "", [(0.0, share), (1.0, share)])],
        "How many of the records called positive are (upwards), by how many positives are found. "
        f"{BOTH if banded else unknown} Dashed: the share of positives among all records.",
        _columns(curve, "recall", "precision", banded=banded),
        readable=True,
    )


def _reliability(content: Mapping[str, Any], prefix: str) -> Graph:
    diagram = content["reliability"]
    edges = _edges(diagram, "predicted", "observed")
    return Graph(
        f"{prefix}-reliability",
        "Reliability diagram",
        f"The share of positives in {len(known(edges[0]))} buckets of ascending score, over the "
        "mean score there. On the diagonal, scores are probabilities. The table below has all "
        "numbers.",
        "Mean score",
        "Share of positives",
        [Series("dots", "", *edges), DIAGONAL],
        "Where scores are probabilities, the points lie on the diagonal. Each bar is a 95 % "
        "interval about the population's share: privacy noise and sampling.",
        _columns(diagram, "predicted", "observed"),
        readable=True,
    )


def _calibration(content: Mapping[str, Any], prefix: str) -> Graph:
    curve = content["calibration_curve"]
    return Graph(
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
        f"A logistic regression on a spline of the log-odds. {BAND}",
        _all_columns(curve),
        essential=True,
    )


def _decisions(content: Mapping[str, Any], prefix: str) -> Graph:
    curve = content["decision_curve"]
    benefits = _numbers(curve["net_benefit"], curve["treat_all"])
    top = max(benefits, default=1.0)
    # treating nobody is on the picture too, where nothing does better
    ends = (LEAST_SHOWN * top, top) if top > 0 else (min(benefits), 0.0)
    widest = max(_numbers(content.get("calibration_curve", {}).get("predicted", [])), default=1.0)
    return Graph(
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
        f"Where the line is highest, treating by the scores does best. {BAND}",
        _all_columns(curve),
        round_ticks(0.0, min(widest + 0.05, 1.0)),
        round_ticks(*ends),
        essential=True,
    )


def _distribution(content: Mapping[str, Any], prefix: str) -> Graph:
    curve = content["score_distribution"]
    size = len(curve["positives"])
    top = max(_numbers(curve["positives_high"], curve["negatives_high"]), default=1.0)
    ticks = [(float(index), _edge(curve, index)) for index in range(0, size + 1, max(size // 4, 1))]
    return Graph(
        f"{prefix}-distribution",
        "Scores by outcome",
        "The part of the positives and of the negatives in each group of scores, with bands.",
        "Score",
        "Part of the class",
        [
            Series("line", "positives", *map(_stairs, _rows(curve, "positives"))),
            Series("second", "negatives", *map(_stairs, _rows(curve, "negatives"))),
        ],
        f"Groups of neighbouring scores. {BAND}",
        _all_columns(curve),
        ticks if ticks[-1][0] == size else [*ticks, (float(size), "")],
        round_ticks(0.0, top),
        essential=True,
    )


def _banded(name: str, curve: Mapping[str, Any], mark: str) -> Graph:
    """A curve with its band, as its entry names the axes."""
    across, up = str(curve["across"]), str(curve["up"])
    columns = [curve[column] for column in COLUMNS]
    places, *rows = ([number(each) for each in column] for column in columns)
    ends = _numbers(*columns[1:])
    return Graph(
        mark,
        f"{name[:1].upper()}{name[1:]}",
        f"{name}: {up} by {across}, with a band.",
        across,
        up,
        [Series("line", "", *(list(zip(places, row, strict=True)) for row in rows))],
        BAND,
        list(zip((across, up, "Band from", "to"), columns, strict=True)),
        round_ticks(places[0], places[-1]),
        round_ticks(min(ends, default=0.0), max(ends, default=1.0)),
    )


def _trade_off(spent: Mapping[str, Any], prefix: str) -> Graph:
    """The misses of the best attack over its false alarms, and of guessing."""
    cost = Cost(spent["epsilon"], spent["delta"])
    # the corner of the curve is one of the places
    alarms = np.unique([*np.linspace(0.0, 1.0, TRADE_OFF_POINTS), cost.equal_errors])
    missed = cost.misses(alarms)
    return Graph(
        f"{prefix}-trade-off",
        "What an attacker can tell",
        "The least rate of misses over the rate of false alarms of an attacker who tells whether "
        "a record counted. On the dashed line the attacker guesses.",
        "False alarms of an attacker",
        "Misses",
        [
            Series("line", "best attack", list(zip(alarms.tolist(), missed.tolist(), strict=True))),
            Series("reference", "guessing", [(0.0, 1.0), (1.0, 0.0)]),
        ],
        "No attack on what a client sent is below the line, whatever its author knows. The nearer "
        "it is to the dashed one, the less there is to tell.",
        (("False alarms", alarms.tolist()), ("Misses", missed.tolist())),
    )


TRADE_OFF_POINTS = 21
"""False alarms at which the trade-off of an attack is drawn, besides its corner."""

HEADINGS = {
    "false_positive_rate": "False-positive rate",
    "true_positive_rate": "True-positive rate",
    "recall": "Recall",
    "precision": "Precision",
    "predicted": "Mean score",
    "observed": "Share of positives",
    "thresholds": THRESHOLD,
}
"""Headings of the columns of readable pictures."""


def _columns(
    curve: Mapping[str, Any], across: str, up: str, banded: bool = True
) -> tuple[Column, ...]:
    """The numbers of a readable picture: across, up, the band, and thresholds if there are any."""
    band = {f"{up}_low": "Band from", f"{up}_high": "to"} if banded else {}
    names = [across, up, *band, *(["thresholds"] if "thresholds" in curve else [])]
    return tuple(((HEADINGS | band)[name], curve[name]) for name in names)


def _all_columns(curve: Mapping[str, Any]) -> list[Column]:
    """All numbers of an essential picture."""
    return [(name.replace("_", " "), values) for name, values in curve.items()]


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
