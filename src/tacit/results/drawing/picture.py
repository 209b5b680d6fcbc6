"""Pictures of results, with matplotlib (an extra).

Estimates below each other on one scale, each with its intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.results.curves.curve import Band, Curve
from tacit.results.drawing.style import (
    ACCENT,
    BAND,
    MARK,
    SOFT,
    cost_words,
    legend,
    new_axes,
    styled,
    titled,
)
from tacit.results.estimate import (
    POPULATION_INTERVAL,
    RECORDS_INTERVAL,
    Estimate,
    bounds_line,
    decimals,
)

Bounds = tuple[float, float]
NONE: Bounds = (math.nan, math.nan)
"""An interval that is not known."""
MAX_BARS = 40
"""More bars than this are not legible in one picture; the first are shown."""


@dataclass(frozen=True)
class Bar:
    """One estimate.

    Parameters
    ----------
    label : what it is called; empty for one alone.
    value : the estimate; NaN draws no point.
    interval, population : the 95 % intervals about these records and about the population; bounds
        that are not finite are not drawn.
    exact : the exact figure; None where it is unknown.
    """

    label: str
    value: float
    interval: Bounds = NONE
    population: Bounds = NONE
    exact: float | None = None

    @classmethod
    def of(cls, label: str, estimate: Estimate, exact: float | None = None) -> Bar:
        """The bar of an estimate with its error."""
        if not math.isfinite(estimate.value):
            return cls(label, math.nan, exact=exact)
        population = estimate.interval(0.95, "population")
        return cls(label, estimate.value, estimate.interval(0.95), population, exact)


def draw_bars(
    bars: Sequence[Bar], title: str, caption: str, figure: str, axes: Any = None, zero: bool = False
) -> Any:
    """Draw estimates below each other; the axes.

    Parameters
    ----------
    bars : the estimates, the first on top.
    title, caption : above the picture.
    figure : what the scale shows.
    axes : matplotlib axes to draw on; None makes a new figure.
    zero : whether a line marks zero, as for differences.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    shown = list(bars[:MAX_BARS])
    chosen = new_axes(6.4, 1.9 + 0.42 * len(shown)) if axes is None else axes
    styled(chosen)
    for height, bar in enumerate(shown):
        _draw(bar, height, chosen, named=height == 0)
    if zero:
        chosen.axvline(0, color=SOFT, linewidth=0.8, linestyle=(0, (4, 4)))
    chosen.set_yticks(range(len(shown)), [bar.label for bar in shown])
    chosen.set_ylim(len(shown) - 0.4, -0.6)
    chosen.grid(False, axis="y")
    more = f"\nthe first {len(shown)} of {len(bars)}" if len(bars) > len(shown) else ""
    chosen.set_xlabel(figure)
    titled(chosen, title, caption + more)
    legend(chosen, below=True)
    return chosen


def _draw(bar: Bar, height: int, axes: Any, named: bool) -> None:
    """A thin line for the population, a thick one for the records, a dot, a mark if exact."""
    spans = (
        (bar.population, POPULATION_INTERVAL, {"color": SOFT, "linewidth": 2}),
        (bar.interval, RECORDS_INTERVAL, {"color": ACCENT, "linewidth": 8, "alpha": 0.55}),
    )
    for (low, high), name, style in spans:
        if math.isfinite(low) and math.isfinite(high):
            axes.plot(
                [low, high],
                [height, height],
                solid_capstyle="butt",
                label=name if named else None,
                **style,
            )
    if math.isfinite(bar.value):
        label = "estimate" if named else None
        axes.plot([bar.value], [height], "o", color=ACCENT, markersize=6, label=label)
    if bar.exact is not None and math.isfinite(bar.exact):
        label = "exact (not private)" if named else None
        axes.plot([bar.exact], [height], "D", color=MARK, markersize=5, label=label)


__all__ = ["Pictured", "draw_evaluation", "draw_pictured", "draw_roc", "new_axes"]

RECORDS_BAND = "95 % band (these records)"
OPERATING = 0.5
"""The threshold of the point that a picture marks, where scores are from 0 to 1."""
NEAR = 0.05
"""Farther from it than this, no point is marked."""


@dataclass(frozen=True)
class Pictured:
    """What a picture says in words.

    Parameters
    ----------
    protocol : its name.
    figure : what was estimated.
    value : the estimate; NaN where there is none.
    interval, population : the 95 % intervals about these records and about the population; bounds
        that are not finite are not drawn.
    cost : the words of its privacy.
    exact : the exact figure; None where it is unknown.
    """

    protocol: str
    figure: str
    value: float
    interval: Bounds
    population: Bounds
    cost: str
    exact: float | None = None

    @property
    def title(self) -> str:
        """The figure with its value."""
        if not math.isfinite(self.value):
            return f"{self.figure}: not enough signal"
        return f"{self.figure} {self.value:.{decimals(self.interval)}f}"

    @property
    def caption(self) -> str:
        """The interval, the protocol and what it cost."""
        origin = f"{self.protocol}, {self.cost}"
        if not all(map(math.isfinite, (self.value, *self.interval))):
            return origin
        return f"{RECORDS_INTERVAL}: {bounds_line(self.interval)}\n{origin}"


def draw_evaluation(evaluation: Any, axes: Any = None) -> Any:
    """The ROC curve with its band where there is one, else the figure with its intervals."""
    estimate, spent = evaluation.estimate, evaluation.spent
    adjacency = None if spent.adjacency is None else spent.adjacency.value
    pictured = Pictured(
        evaluation.protocol["name"],
        evaluation.figure,
        estimate.value if evaluation.has_signal else math.nan,
        estimate.interval(0.95),
        estimate.interval(0.95, "population"),
        cost_words(spent.epsilon, adjacency),
        evaluation.exact,
    )
    return draw_pictured(pictured, evaluation.roc, axes)


def draw_pictured(pictured: Pictured, curve: Curve | None, axes: Any = None) -> Any:
    """A result known in words and, where it has one, by its curve; the axes."""
    if curve is not None:
        chosen = new_axes() if axes is None else axes
        draw_roc(curve, chosen)
        titled(chosen, pictured.title, pictured.caption)
        return chosen
    bar = Bar("", pictured.value, pictured.interval, pictured.population, pictured.exact)
    return draw_bars([bar], pictured.title, pictured.caption, pictured.figure, axes)


def draw_roc(curve: Curve, axes: Any) -> None:
    """The curve from corner to corner, the band of its true-positive rate, and a marked point."""
    order = np.lexsort((curve.true_positive_rate, curve.false_positive_rate))
    across = curve.false_positive_rate[order].clip(0.0, 1.0)
    up = curve.true_positive_rate[order].clip(0.0, 1.0)
    noise = Band(curve.true_positive_rate, curve.true_positive_error, np.zeros_like(up))
    low, high = (edge[order].clip(0.0, 1.0) for edge in noise.limits(0.95))
    styled(axes)
    axes.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, linestyle=(0, (4, 4)))
    corners = [_from_corner_to_corner(values) for values in (across, low, high, up)]
    axes.fill_between(*corners[:3], color=BAND, linewidth=0, label=RECORDS_BAND)
    axes.plot(corners[0], corners[3], color=ACCENT, linewidth=1.8, label="estimate")
    _mark(curve, axes)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
    legend(axes)


def operating_point(curve: Curve) -> int | None:
    """The index of the threshold next to 0.5, where scores are from 0 to 1 and one is near it."""
    thresholds = curve.thresholds
    known = np.isfinite(thresholds)
    if not known.any() or thresholds[known].min() < 0 or thresholds[known].max() > 1:
        return None
    distance = np.where(known, np.abs(thresholds - OPERATING), np.inf)
    nearest = int(np.argmin(distance))
    return nearest if distance[nearest] <= NEAR else None


def _mark(curve: Curve, axes: Any) -> None:
    index = operating_point(curve)
    if index is None:
        return
    across, up = curve.false_positive_rate[index], curve.true_positive_rate[index]
    if not (math.isfinite(across) and math.isfinite(up)):
        return
    label = f"at threshold {curve.thresholds[index]:.2g}: {up:.2f} found, {across:.2f} false alarms"
    axes.plot([across], [up], "o", color=MARK, markersize=7, label=label, clip_on=False)


def _from_corner_to_corner(values: Any) -> Any:
    """Values of a curve between its ends: no record, and every record, is called positive."""
    return np.concatenate(([0.0], values, [1.0]))
