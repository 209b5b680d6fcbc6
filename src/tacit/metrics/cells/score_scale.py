"""Public increasing maps of scores to positions in [0, 1], which equal cells then cut.

An AUC does not change under an increasing map of the scores, and with these maps its error hardly
does. A map is fixed by the unit of the scores alone, never by looking at them. All its cell edges
are doubles with few significant bits, short codes of an order-preserving code of scores. So a
client compares, subtracts and divides, and takes no logarithm: other languages get the same
positions to the last bit.

The cells of many scores: a table in place of a search among all edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats, Integers


def signed_codes(values: ArrayLike) -> Integers:
    """A 64-bit integer for every number, in the same order: the bits of its size, with its sign.

    Zero and negative zero have the same code. Numbers in [0, 1] have codes from 0 to below
    ``2**62``, so that differences of codes, and of codes doubled, stay within 64 bits.

    Parameters
    ----------
    values : float64, any shape, not NaN.

    Examples
    --------
    >>> codes = signed_codes([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf])
    >>> bool(np.all(np.diff(codes) >= 0)), codes[2:5].tolist()
    (True, [0, 0, 1])
    """
    numbers = np.asarray(values, dtype=np.float64)
    sizes = np.abs(numbers).view(np.int64)
    return np.where(numbers < 0, -sizes, sizes)


def signed_scores(codes: ArrayLike) -> Floats:
    """The numbers of codes by ``signed_codes``."""
    integers = np.asarray(codes, dtype=np.int64)
    sizes = np.abs(integers).view(np.float64)
    return np.where(integers < 0, -sizes, sizes)


def truncated(codes: ArrayLike, bits: int) -> Integers:
    """Codes with all but the first ``bits`` bits of the significand cleared, towards zero.

    For a cleared code c, ``code(s) >= c`` is the same as ``s >= score(c)``.

    Parameters
    ----------
    codes : by ``signed_codes``.
    bits : from 0 to 52.
    """
    integers = np.asarray(codes, dtype=np.int64)
    mask = np.int64(-1) << np.int64(52 - bits)
    return np.where(integers < 0, -(-integers & mask), integers & mask)


BINS = 2**14
"""Number of equal bins of the range of edges; their table stays in a processor's cache."""

AT_ONCE = 2**14
"""Number of scores that are mapped at a time, which fit into a processor's cache."""


def cells_of(scores: ArrayLike, edges: Floats) -> NDArray[np.int64]:
    """The cell of every score, from 0: how many ascending edges are at most the score, no NaN."""
    numbers = np.asarray(scores, dtype=np.float64)
    if numbers.size <= AT_ONCE or not edges.size or not np.isfinite(edges).all():
        return np.searchsorted(edges, numbers, side="right")
    # a table is about ten times as fast, and takes as long to make as a few thousand scores
    table, cells = CellTable(edges), np.empty(numbers.size, dtype=np.int64)
    for start in range(0, numbers.size, AT_ONCE):
        chunk = slice(start, start + AT_ONCE)
        cells[chunk] = table.cells(numbers.ravel()[chunk])
    return cells.reshape(numbers.shape)


class CellTable:
    """How many ascending edges are at most a score, as ``cells_of`` counts them.

    The bin of a score, a difference times a constant, never falls as the score rises, whatever
    rounding does. So all edges in lower bins are below the score, and those in higher bins above
    it: only edges in the same bin are compared with it, and searched where there are several.

    Parameters
    ----------
    edges : ascending and finite, shape (B,), B at least 1.

    Examples
    --------
    >>> CellTable(np.array([0.25, 0.5])).cells(np.array([0.1, 0.25, 0.4, 7.0])).tolist()
    [0, 1, 1, 2]
    """

    def __init__(self, edges: Floats) -> None:
        self._edges = edges
        # a score at or above the last edge is compared with no number, and stays in the last cell
        self._ends = np.append(edges, np.nan)
        self._low = float(edges[0])
        with np.errstate(over="ignore", divide="ignore"):
            factor = float(np.float64(BINS) / (edges[-1] - edges[0]))
        self._factor = factor if np.isfinite(factor) else 0.0
        in_bin = np.bincount(self._bins(edges), minlength=BINS)
        self._below = np.concatenate([[0], np.cumsum(in_bin)[:-1]]).astype(np.int64)
        self._several = in_bin > 1
        self._has_several = bool(self._several.any())

    def cells(self, scores: Floats) -> NDArray[np.int64]:
        """The cell of every score, from 0, shape (M,)."""
        bins = self._bins(scores)
        cells = self._below[bins]
        cells += scores >= self._ends[cells]
        if self._has_several:
            several = np.flatnonzero(self._several[bins])
            cells[several] = np.searchsorted(self._edges, scores[several], side="right")
        return cells

    def _bins(self, scores: Floats) -> NDArray[np.int64]:
        with np.errstate(over="ignore", invalid="ignore"):
            places = (scores - self._low) * self._factor
        # fmax and fmin give a number for NaN, too
        np.fmax(places, 0.0, out=places)
        np.fmin(places, BINS - 1, out=places)
        return places.astype(np.int64)


PROBABILITY, LOG_ODDS, REAL, EVEN = "probability", "log-odds", "real", "even"
SCALES = (PROBABILITY, LOG_ODDS, REAL, EVEN)
"""Cells of the log-odds for probabilities and for log-odds; cells that widen with the size of a
number of any kind; and equal cells of [0, 1], as in the papers."""

BORDER_LEVELS = 10
"""There are ``2**KNOT_LEVELS`` cells between the edges of a fixed map; it is linear inside them."""

BORDER_BITS = 20
"""Significant bits of a cell edge after the first one: a part in a million of its size."""

LOG_ODDS_REACH = (4.0, 2.7)
"""Log-odds at position u: ``4 sinh(2.7 (2 u - 1))``. Cells are as good as even up to log-odds of 4
and widen beyond; the last cell edges are near 29, where a double can still tell ``1 - p`` from
1."""

REAL_REACH = (1.0, 44.0)
"""Numbers at position u: ``sinh(44 (2 u - 1))``, to about 6e18; beyond are the end cells."""

WHOLE_PART = 1 - 2.0**-40
"""Largest part of a cell that lies below a score in it, so that rounding keeps it in its cell."""


OpenEnd = tuple[float, float]
"""A cell edge k, and the width w of the cell next to it: below it the part ``w / (w + k - s)`` of
the open cell is below a score s, and above it ``1 - w / (w + s - k)``."""


@dataclass(frozen=True, eq=False)
class ScoreScale:
    """An increasing map of scores to [0, 1]: cell edges at equal distances, and linear pieces
    between.

    In an open cell at an end the position is ``w / (w + d)`` of the cell, with d the distance to
    its cell edge and w the width of the neighbouring cell: every finite score has a position, and
    infinite ones have 0 and 1.

    Parameters
    ----------
    borders : the scores at the positions ``1/n, ..., (n-1)/n``, ascending, shape (n-1,), at least
        one; with an open end at least two.
    low, high : the least and the largest possible score; None for an open end.

    Raises
    ------
    ValueError : for cell edges that do not ascend between both ends, too few of them, or cells so
        wide that a part of them is no number.

    Examples
    --------
    >>> halves = ScoreScale(np.array([0.1]), 0.0, 1.0)
    >>> halves.positions([0.0, 0.05, 0.1, 1.0]).tolist()
    [0.0, 0.25, 0.5, 1.0]
    >>> halves.scores([0.25, 0.5]).tolist()
    [0.05, 0.1]
    """

    borders: Floats
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        least = 2 if self.low is None or self.high is None else 1
        if self.borders.ndim != 1 or self.borders.size < least:
            raise ValueError(
                f"there must be at least {least} cell edges, got shape {self.borders.shape}"
            )
        if not (np.all(np.isfinite(self._ends)) and np.all(self._widths > 0)):
            raise ValueError(
                "cell edges must be finite and ascend between the least and largest score"
            )
        if not np.all(np.isfinite(self._widths)):
            raise ValueError("neighbouring cell edges must be less than 1.8e308 apart")

    @property
    def cells(self) -> int:
        """How many cells the cell edges bound."""
        return self.borders.size + 1

    def __call__(self, scores: ArrayLike) -> Floats:
        """The positions of scores: a scale is a map of scores whose lines are known."""
        return self.positions(scores)

    def positions(self, scores: ArrayLike) -> Floats:
        """The positions of scores, any shape; the map does not fall, and keeps cells apart."""
        numbers = np.asarray(scores, dtype=np.float64)
        flat, made = numbers.ravel(), np.empty(numbers.size)
        for start in range(0, flat.size, AT_ONCE):
            chunk = slice(start, start + AT_ONCE)
            made[chunk] = self._positions(flat[chunk])
        return made.reshape(numbers.shape)

    def _positions(self, numbers: Floats) -> Floats:
        """The same for a few scores, shape (M,)."""
        cells = self._table.cells(numbers)
        with np.errstate(over="ignore"):  # only in open cells, whose parts follow
            part = (numbers - self._ends[cells]) / self._widths[cells]
        if self.low is None:
            first = np.flatnonzero(cells == 0)
            width, below = self._widths[0], self.borders[0] - numbers[first]
            part[first] = width / (width + below)
        np.clip(part, 0.0, WHOLE_PART, out=part)
        last = np.flatnonzero(cells == self.borders.size)
        above, width = numbers[last] - self.borders[-1], self._widths[-1]
        # 1 - w / (w + d) is 1 where d is infinite
        inside = above / width if self.high is not None else 1 - width / (width + above)
        part[last] = np.clip(inside, 0.0, 1.0)
        part += cells
        part /= self.cells
        return part

    def scores(self, positions: ArrayLike) -> Floats:
        """The scores at positions from 0 to 1, any shape; exact at the cell edges."""
        scaled = np.asarray(positions, dtype=np.float64) * self.cells
        cells = np.minimum(np.floor(scaled).astype(np.int64), self.borders.size)
        part = scaled - cells
        start, width = self._ends[cells], self._widths[cells]
        made = np.asarray(start + part * width)
        with np.errstate(divide="ignore", over="ignore"):
            if self.low is None:
                first = cells == 0
                made[first] = self.borders[0] - width[first] * (1 / part[first] - 1)
            if self.high is None:
                last = cells == self.borders.size
                made[last] = self.borders[-1] + width[last] * (1 / (1 - part[last]) - 1)
        return made

    def slopes(self, scores: Floats) -> Floats:
        """How fast positions rise with the score, or in an open cell with the part below it, (M,).

        Parameters
        ----------
        scores : shape (M,).
        """
        cells = self._table.cells(scores)
        with np.errstate(over="ignore"):
            slopes = 1 / (self._widths[cells] * self.cells)
        is_open = (self.low is None) & (cells == 0) | (self.high is None) & (
            cells == self.borders.size
        )
        return np.where(is_open, 1 / self.cells, slopes)

    @property
    def open_ends(self) -> tuple[OpenEnd | None, OpenEnd | None]:
        """The cell edges of the open cells below and above, with the widths of their neighbours."""
        first, last = float(self.borders[0]), float(self.borders[-1])
        return (
            (first, float(self._widths[0])) if self.low is None else None,
            (last, float(self._widths[-1])) if self.high is None else None,
        )

    @cached_property
    def single_doubles(self) -> NDArray[np.bool_]:
        """Which cells hold one double only, shape (n,): all their records are tied."""
        return single_doubles(self.borders, self.low, self.high)

    @cached_property
    def _table(self) -> CellTable:
        return CellTable(self.borders)

    @cached_property
    def _ends(self) -> Floats:
        """All cell edges; an open cell gets the width of its neighbour."""
        borders, low, high = self.borders, self.low, self.high
        first = borders[0] - (borders[1] - borders[0]) if low is None else low
        last = borders[-1] + (borders[-1] - borders[-2]) if high is None else high
        return np.concatenate([[first], borders, [last]])

    @cached_property
    def _widths(self) -> Floats:
        with np.errstate(over="ignore"):
            return np.diff(self._ends)


@dataclass(frozen=True, eq=False)
class EvenScale(ScoreScale):
    """Probabilities are their own positions."""

    def positions(self, scores: ArrayLike) -> Floats:
        """The scores."""
        return np.asarray(scores, dtype=np.float64)

    def scores(self, positions: ArrayLike) -> Floats:
        """The positions."""
        return np.asarray(positions, dtype=np.float64)

    def slopes(self, scores: Floats) -> Floats:
        """One everywhere, shape (M,)."""
        return np.ones(scores.size)


@dataclass(frozen=True, eq=False)
class CentredScale(ScoreScale):
    """Records of a cell that holds a single double are at its middle."""

    def positions(self, scores: ArrayLike) -> Floats:
        """The positions of scores, any shape."""
        positions = super().positions(scores)
        if not self.single_doubles.any():
            return positions
        cells = np.minimum((positions * self.cells).astype(np.int64), self.cells - 1)
        return np.where(self.single_doubles[cells], (cells + 0.5) / self.cells, positions)

    def slopes(self, scores: Floats) -> Floats:
        """How fast positions rise, shape (M,): not in cells of a single double."""
        single = self.single_doubles[self._table.cells(scores)]
        return np.where(single, 0.0, super().slopes(scores))


def single_doubles(borders: Floats, low: float | None, high: float | None) -> NDArray[np.bool_]:
    """Which cells between ascending cell edges hold one double only, shape (..., n).

    Parameters
    ----------
    borders : shape (..., n-1).
    low, high : the least and the largest possible score; None for an open end.

    Examples
    --------
    >>> single_doubles(np.array([0.5, np.nextafter(0.5, 1.0)]), 0.0, 1.0).tolist()
    [False, True, False]
    """
    shape = (*borders.shape[:-1], 1)
    lowest = np.full(shape, -np.inf if low is None else low)
    # the highest score belongs to the last cell, which therefore never holds one double
    highest = np.full(shape, np.inf)
    ends = np.concatenate([lowest, borders, highest], axis=-1)
    single = np.nextafter(ends[..., :-1], np.inf) >= ends[..., 1:]
    single[..., 0] &= low is not None
    return np.asarray(single)


@lru_cache(maxsize=len(SCALES))
def named_scale(name: str) -> ScoreScale:
    """A fixed map by its name.

    Raises
    ------
    ValueError : for another name than those in ``SCALES``.

    Examples
    --------
    >>> named_scale("probability").positions([0.0, 0.5, 1.0]).tolist()
    [0.0, 0.5, 1.0]
    """
    if name == PROBABILITY:
        return ScoreScale(_probability_borders(), 0.0, 1.0)
    if name == LOG_ODDS:
        return ScoreScale(_spread_borders(*LOG_ODDS_REACH))
    if name == REAL:
        return ScoreScale(_spread_borders(*REAL_REACH))
    if name == EVEN:
        return EvenScale(np.array([0.5]), 0.0, 1.0)
    raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {name!r}")


def _spread_borders(size: float, growth: float) -> Floats:
    """``size sinh(growth (2 u - 1))`` at equal distances of u, symmetric around 0."""
    cells = 2**BORDER_LEVELS
    below = size * np.sinh(growth * (2 * np.arange(1, cells // 2) / cells - 1))
    lower = signed_scores(truncated(signed_codes(below), BORDER_BITS))
    return np.concatenate([lower, [0.0], -lower[::-1]])


def _probability_borders() -> Floats:
    """``1 / (1 + exp(-x))`` of the cell edges x of log-odds, those above 1/2 exactly one less a
    mirror.

    ``1 - p`` is exact from 1/2 on (Sterbenz 1974), so that both ends are distinguished alike; there
    too the cell edges below 1/2 have few bits, and libraries whose exponentials differ agree.
    """
    below = _spread_borders(*LOG_ODDS_REACH)[: 2 ** (BORDER_LEVELS - 1) - 1]
    lower = signed_scores(truncated(signed_codes(1 / (1 + np.exp(-below))), BORDER_BITS))
    return np.concatenate([lower, [0.5], 1.0 - lower[::-1]])
