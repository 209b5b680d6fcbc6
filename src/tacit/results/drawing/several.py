"""Pictures of comparisons and of groups, with matplotlib (an extra)."""

from __future__ import annotations

import math
from typing import Any

from tacit.privacy.cost import Cost
from tacit.results.drawing.bars import Bar, draw_bars
from tacit.results.drawing.style import cost_words, new_axes
from tacit.results.estimate import RECORDS_INTERVAL, bounds_line
from tacit.results.parts.comparison import Comparison
from tacit.results.parts.grouped import GroupedEvaluation


def draw_comparison(comparison: Comparison) -> Any:
    """Both models' figures and, below, their difference; the figure.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    upper = new_axes(6.4, 4.6)
    figure = upper.figure
    upper.remove()
    upper, lower = figure.subplots(2, 1, height_ratios=(2, 1))
    exact = comparison.exact or (None, None)
    bars = [
        Bar.of(name, estimate, known)
        for name, estimate, known in zip(
            comparison.names, (comparison.first, comparison.second), exact, strict=True
        )
    ]
    name = comparison.run.protocol["name"]
    origin = f"{name}, {_cost(comparison.spent)} for all three figures"
    draw_bars(bars, "Two models", origin, "AUC", upper)
    difference = comparison.difference
    title = f"{comparison.names[0]} less {comparison.names[1]}"
    caption = "not enough signal"
    if comparison.has_signal:
        caption = f"{RECORDS_INTERVAL}: {bounds_line(difference.interval(0.95), '+.4f')}"
    only = Bar.of("", difference)
    draw_bars([only], _valued(title, difference.value), caption, "difference", lower, zero=True)
    for legend in figure.legends[1:]:
        legend.remove()
    return figure


def draw_groups(grouped: GroupedEvaluation) -> Any:
    """Every group's figure below each other; the figure.

    Raises
    ------
    ImportError : with the install command, when matplotlib is not installed.
    """
    bars = [
        Bar.of(group.name if group.has_signal else f"{group.name}: no figure", group.estimate)
        for group in grouped.groups
    ]
    names = {each.evaluation.protocol["name"] for each in grouped.groups if each.evaluation}
    origin = f"{', '.join(sorted(names))}, {_cost(grouped.spent)} over all groups together"
    title = f"{grouped.figure} of {len(bars)} groups"
    return draw_bars(bars, title, origin, grouped.figure).figure


def _cost(spent: Cost) -> str:
    return cost_words(spent.epsilon, None if spent.adjacency is None else spent.adjacency.value)


def _valued(name: str, value: float) -> str:
    return f"{name}: {value:+.4f}" if math.isfinite(value) else name
