"""Estimates below each other on one scale, each with its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.results.drawing.style import ACCENT, MARK, SOFT, legend, new_axes, styled, titled
from tacit.results.estimate import POPULATION_INTERVAL, RECORDS_INTERVAL, Estimate

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
