"""Pictures of results as inline SVG, drawn here so that a page shows them without a script.

Pictures with axes of any range: several lines, each with a band.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from tacit.results.saved.reading import Bounds, Estimated

LEFT, TOP, SIDE = 54.0, 12.0, 300.0
WIDTH, HEIGHT = LEFT + SIDE + 14, TOP + SIDE + 46
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
BAR_WIDTH, BAR_HEIGHT, BAR_EDGE = 420.0, 86.0, 26.0
ROW = 44.0

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Plot:
    """A square picture of two rates.

    Parameters
    ----------
    name : starts the ids of its parts; unique on the page.
    title, description : read out instead of the picture.
    across, up : the names of the axes.
    line : points in order of the line; both rates in [0, 1].
    lower, upper : the band's edges in the same order; empty for none.
    diagonal : draw the line from corner to corner.
    level : draw a level line at this height; NaN for none.
    scattered : draw every point with its own error bar, instead of a line with a band.
    """

    name: str
    title: str
    description: str
    across: str
    up: str
    line: Points
    lower: Points = ()
    upper: Points = ()
    diagonal: bool = False
    level: float = math.nan
    scattered: bool = False

    def svg(self) -> str:
        """The picture."""
        return "".join(
            [
                f'<svg class="plot" id="{self.name}" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
                f'aria-labelledby="{self.name}-title {self.name}-desc">',
                f'<title id="{self.name}-title">{escape(self.title)}</title>',
                f'<desc id="{self.name}-desc">{escape(self.description)}</desc>',
                _grid(self.across, self.up),
                self._references(),
                self._scatter() if self.scattered else self._line(),
                '<circle class="probe" r="5" hidden="hidden"/>',
                '<circle class="chosen" r="6" hidden="hidden"/>',
                "</svg>",
            ]
        )

    def _references(self) -> str:
        drawn = ""
        if self.diagonal:
            drawn += f'<path class="reference" d="{_path([(0, 0), (1, 1)])}"/>'
        if math.isfinite(self.level):
            ends = [(0, self.level), (1, self.level)]
            drawn += f'<path class="reference" d="{_path(ends)}"/>'
        return drawn

    def _line(self) -> str:
        band = [*self.lower, *reversed(self.upper)]
        drawn = f'<path class="band" d="{_path(band)}Z"/>' if len(band) > 2 else ""
        return drawn + f'<path class="line" d="{_path(self.line)}"/>' * (len(self.line) > 1)

    def _scatter(self) -> str:
        ends = zip(self.lower, self.upper, strict=True)
        bars = "".join(_path(pair) for pair in ends)
        placed = (_coordinates(point) for point in self.line)
        dots = "".join(f'<circle class="dot" cx="{x}" cy="{y}" r="2.4"/>' for x, y in placed)
        return (f'<path class="whiskers" d="{bars}"/>' if bars else "") + dots


def interval_bar(
    name: str, title: str, rows: Sequence[tuple[str, Estimated]], exact: float, bounds: Bounds
) -> str:
    """Estimates on one scale, each with its interval about the records and about the population.

    Parameters
    ----------
    name : starts the ids of its parts.
    title : read out instead of the picture.
    rows : what each is called (empty for one alone), and the estimate.
    exact : the exact figure to mark; NaN for none.
    bounds : the least and the greatest value that has to be seen.
    """
    scale = _Scale.holding(bounds)
    height = BAR_HEIGHT - ROW + ROW * len(rows)
    base = height - 30
    drawn = [
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH:g} {height:g}" role="img" '
        f'aria-labelledby="{name}-title"><title id="{name}-title">{escape(title)}</title>',
        scale.drawn(base),
    ]
    for index, (label, estimate) in enumerate(rows):
        drawn.append(_row(scale, label, estimate, 28 + ROW * index))
    if math.isfinite(exact):
        x = scale.x_of(exact)
        drawn.append(f'<path class="exact" d="M{x} {base - 8:g}l6 -7l-6 -7l-6 7z"/>')
    return "".join([*drawn, "</svg>"])


@dataclass(frozen=True)
class _Scale:
    """A horizontal axis with round ticks."""

    low: float
    high: float
    step: float

    @classmethod
    def holding(cls, bounds: Bounds) -> _Scale:
        low, high = bounds
        span = max(high - low, 1e-4 * max(abs(low), abs(high), 1.0))
        rough = 1.3 * span / 4
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        first = math.floor((low - 0.1 * span) / step) * step
        last = math.ceil((high + 0.1 * span) / step) * step
        return cls(first, last, step)

    def x_of(self, value: float) -> str:
        share = (value - self.low) / (self.high - self.low)
        return f"{BAR_EDGE + share * (BAR_WIDTH - 2 * BAR_EDGE):.1f}"

    def drawn(self, base: float) -> str:
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        ticks = round((self.high - self.low) / self.step)
        values = [self.low + index * self.step for index in range(ticks + 1)]
        marks = "".join(_tick(self.x_of(value), base, f"{value:.{digits}f}") for value in values)
        ends = self.x_of(self.low), self.x_of(self.high)
        return f'{marks}<path class="axis" d="M{ends[0]} {base:g}H{ends[1]}"/>'


def with_legend(bar: str, exact: bool = False) -> str:
    """An interval bar with what its lines are."""
    keys = {"records": "these records", "population": "population"}
    if exact:
        keys["exact"] = "exact"
    legend = "".join(
        f'<li><span class="key {kind}"></span>{text}</li>' for kind, text in keys.items()
    )
    return f'<figure class="wide">{bar}<ul class="legend">{legend}</ul></figure>'


def _tick(x: str, base: float, label: str) -> str:
    return (
        f'<path class="grid" d="M{x} 6V{base:g}"/>'
        f'<text x="{x}" y="{base + 20:g}" text-anchor="middle">{label}</text>'
    )


def _row(scale: _Scale, label: str, estimate: Estimated, y: float) -> str:
    """One estimate: a thin line for the population, a thick one for the records, a dot."""
    drawn = f'<text class="name" x="{BAR_EDGE:g}" y="{y - 12:g}">{escape(label)}</text>' * bool(
        label
    )
    spans = (("population", estimate.population_interval), ("records", estimate.interval))
    for kind, (low, high) in spans:
        if math.isfinite(low) and math.isfinite(high):
            drawn += f'<path class="{kind}" d="M{scale.x_of(low)} {y:g}H{scale.x_of(high)}"/>'
    if estimate.has_signal:
        drawn += f'<circle class="value" cx="{scale.x_of(estimate.value)}" cy="{y:g}" r="5.5"/>'
    return drawn


def _grid(across: str, up: str) -> str:
    lines, numbers = [], []
    for tick in TICKS:
        x, y = _coordinates((tick, tick))
        lines.append(f'<path class="grid" d="M{x} {TOP:g}v{SIDE:g}M{LEFT:g} {y}h{SIDE:g}"/>')
        below = TOP + SIDE + 16
        numbers.append(f'<text x="{x}" y="{below:g}" text-anchor="middle">{tick:g}</text>')
        numbers.append(
            f'<text x="{LEFT - 6:g}" y="{float(y) + 4:g}" text-anchor="end">{tick:g}</text>'
        )
    middle, height = LEFT + SIDE / 2, TOP + SIDE / 2
    numbers.append(
        f'<text class="name" x="{middle:g}" y="{TOP + SIDE + 38:g}" text-anchor="middle">'
        f"{escape(across)}</text>"
        f'<text class="name" transform="translate(13 {height:g}) rotate(-90)" '
        f'text-anchor="middle">{escape(up)}</text>'
    )
    return "".join([*lines, *numbers])


def _coordinates(point: tuple[float, float]) -> tuple[str, str]:
    """Where a point of the unit square lies in the picture."""
    x, y = (min(max(coordinate, 0.0), 1.0) for coordinate in point)
    return f"{LEFT + x * SIDE:.1f}", f"{TOP + (1 - y) * SIDE:.1f}"


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in map(_coordinates, points))


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
