"""Where lines, bands and texts lie in the pictures of a report; ``templates/charts.html`` draws."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tacit.results.estimate import Estimate
from tacit.results.saved.reading import Bounds

LEFT, TOP, SIDE = 54, 12, 300
WIDTH, HEIGHT = LEFT + SIDE + 14, TOP + SIDE + 46
BAR_WIDTH, BAR_EDGE, ROW = 420, 26, 44

Points = Sequence[tuple[float, float]]
Tick = tuple[float, str]

UNIT_TICKS: tuple[Tick, ...] = tuple((value / 4, f"{value / 4:g}") for value in range(5))
"""Ticks of a rate or a probability."""

LONGEST_CENTRED = 4
"""Characters of a tick's text that fit beside the right end of an axis when they are centred."""


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


@dataclass(frozen=True)
class Graph:
    """A picture of several lines.

    Parameters
    ----------
    name : starts the ids of its parts; unique on the page.
    title, description : read out instead of the picture.
    across, up : the names of the axes.
    series : the lines, the first on top.
    across_ticks, up_ticks : ascending places with their texts; the first and the last are the ends.
    readable : whether the page's script shows the row of its table that is next to the pointer.
    """

    name: str
    title: str
    description: str
    across: str
    up: str
    series: Sequence[Series]
    across_ticks: Sequence[Tick] = UNIT_TICKS
    up_ticks: Sequence[Tick] = UNIT_TICKS
    readable: bool = False

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
        step = _round_step(1.3 * span / 4)
        return _ticks(
            math.floor((low - 0.1 * span) / step), math.ceil((high + 0.1 * span) / step), step
        )

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
    high = max(high, low + 1e-6)
    step = _round_step((high - low) / 4)
    return _ticks(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9), step)


def _round_step(least: float) -> float:
    """The least of 1, 2, 5 and 10 times a power of ten that is not below this."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least)


def _ticks(first: int, last: int, step: float) -> list[Tick]:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return [(index * step, f"{index * step:.{digits}f}") for index in range(first, last + 1)]


def known(points: Points) -> list[tuple[float, float]]:
    """The points that exist."""
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
