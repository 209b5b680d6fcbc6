"""Pictures of results, with matplotlib (an extra)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.results.curves.bands import Band
from tacit.results.curves.curve import Curve
from tacit.results.drawing.bars import Bar, Bounds, draw_bars
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
from tacit.results.estimate import RECORDS_INTERVAL, bounds_line

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
        return f"{self.figure} {self.value:.4f}"

    @property
    def caption(self) -> str:
        """The interval, the protocol and what it cost."""
        origin = f"{self.protocol}, {self.cost}"
        if not all(map(math.isfinite, (self.value, *self.interval))):
            return origin
        return f"{RECORDS_INTERVAL}: {bounds_line(self.interval, '.4f')}\n{origin}"


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
