"""Pictures with axes of any range: several lines, each with a band."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from tacit.reporting.charts import HEIGHT, LEFT, SIDE, TOP, WIDTH

Points = Sequence[tuple[float, float]]
Tick = tuple[float, str]


LONGEST_CENTRED = 4
"""Characters of a tick's text that fit beside the right end of an axis when they are centred."""


@dataclass(frozen=True)
class Series:
    """A line of a graph.

    Parameters
    ----------
    kind : its style: ``"line"``, ``"second"`` or ``"reference"``.
    label : what the legend calls it.
    points : from left to right; those that are not finite are left out.
    lower, upper : the band's edges at the same places; empty for none.
    """

    kind: str
    label: str
    points: Points
    lower: Points = ()
    upper: Points = ()


@dataclass(frozen=True)
class Graph:
    """A picture of several lines.

    Parameters
    ----------
    name : starts the ids of its parts; unique on the page.
    title, description : read out instead of the picture.
    across, up : the names of the axes.
    across_ticks, up_ticks : ascending places with their texts; the first and the last are the ends.
    series : the lines, the first on top.
    """

    name: str
    title: str
    description: str
    across: str
    up: str
    across_ticks: Sequence[Tick]
    up_ticks: Sequence[Tick]
    series: Sequence[Series]

    def svg(self) -> str:
        """The picture; what lies outside the axes is not drawn."""
        drawn = "".join(self._drawn(each) for each in reversed(self.series))
        return (
            f'<svg class="graph" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
            f'aria-labelledby="{self.name}-title {self.name}-desc">'
            f'<title id="{self.name}-title">{escape(self.title)}</title>'
            f'<desc id="{self.name}-desc">{escape(self.description)}</desc>'
            f'{self._grid()}<svg x="{LEFT:g}" y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}" '
            f'viewBox="{LEFT:g} {TOP:g} {SIDE:g} {SIDE:g}">{drawn}</svg></svg>'
        )

    def legend(self) -> str:
        """What each line is."""
        entries = "".join(
            f'<li><span class="key {each.kind}"></span>{escape(each.label)}</li>'
            for each in self.series
        )
        return f'<ul class="legend">{entries}</ul>'

    def _drawn(self, series: Series) -> str:
        band = [*_known(series.lower), *reversed(_known(series.upper))]
        line = _known(series.points)
        drawn = f'<path class="band {series.kind}" d="{self._path(band)}Z"/>' * (len(band) > 2)
        return drawn + f'<path class="{series.kind}" d="{self._path(line)}"/>' * (len(line) > 1)

    def _grid(self) -> str:
        lines, texts = [], []
        for place, text in self.across_ticks:
            x = self._x(place)
            lines.append(f'<path class="grid" d="M{x} {TOP:g}v{SIDE:g}"/>')
            # a long text at the right end would be cut off by the picture's edge
            cut = place == self.across_ticks[-1][0] and len(text) > LONGEST_CENTRED
            at, anchor = (f"{WIDTH - 2:g}", "end") if cut else (x, "middle")
            texts.append(
                f'<text x="{at}" y="{TOP + SIDE + 16:g}" text-anchor="{anchor}">'
                f"{escape(text)}</text>"
            )
        for place, text in self.up_ticks:
            y = self._y(place)
            lines.append(f'<path class="grid" d="M{LEFT:g} {y}h{SIDE:g}"/>')
            texts.append(
                f'<text x="{LEFT - 6:g}" y="{float(y) + 4:g}" text-anchor="end">'
                f"{escape(text)}</text>"
            )
        middle, height = LEFT + SIDE / 2, TOP + SIDE / 2
        texts.append(
            f'<text class="name" x="{middle:g}" y="{TOP + SIDE + 38:g}" text-anchor="middle">'
            f'{escape(self.across)}</text><text class="name" '
            f'transform="translate(13 {height:g}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.up)}</text>"
        )
        return "".join([*lines, *texts])

    def _path(self, points: Iterable[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self._x(x)} {self._y(y)}" for x, y in points)

    def _x(self, value: float) -> str:
        low, high = self.across_ticks[0][0], self.across_ticks[-1][0]
        return f"{LEFT + (value - low) / (high - low) * SIDE:.1f}"

    def _y(self, value: float) -> str:
        low, high = self.up_ticks[0][0], self.up_ticks[-1][0]
        # far outside the axes a coordinate would only lengthen the file
        part = min(max((value - low) / (high - low), -2.0), 3.0)
        return f"{TOP + (1 - part) * SIDE:.1f}"


def round_ticks(low: float, high: float) -> list[Tick]:
    """Round places that hold these ends, at most eight.

    Examples
    --------
    >>> [text for _, text in round_ticks(-0.02, 0.31)]
    ['-0.1', '0.0', '0.1', '0.2', '0.3', '0.4']
    """
    span = max(high - low, 1e-6)
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= span / 4)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [(index * step, f"{index * step:.{digits}f}") for index in range(first, last + 1)]


def _known(points: Points) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
