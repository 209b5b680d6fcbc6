"""Cells of a tree, placed where both classes score by the noisy counts of a round.

A ROC curve is off in a cell by where its p positives and n negatives lie: by ``p n / 6`` records
squared for either class, so that of B cells those of equal ``sqrt(p n)`` leave the least error
(Lagrange: minimise ``sum p n / b`` over the numbers b of cells that a place is cut into). Equal
cells of a fixed scale spend most of their number on tails without records.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.counts.pooling import Pooled
from tacit.counts.tree_budget import MAX_FLAT_HEIGHT
from tacit.counts.zoomed_cells import ALONE_PART, around_round_numbers, lone_concentrations
from tacit.metrics.cells.score_scale import ScoreScale

NOISE_ERRORS = 1.0
"""Standard errors that are taken off every noisy count, so that noise draws no cells to tails."""

CLASS_PART = 0.3
"""Part of the cells that follows the records of either class, for rates where the other is rare."""

FIXED_PART = 0.02
"""Part of the cells that lies evenly on the protocol's scale, whatever the counts say."""

TREE_HEIGHTS = (8, 13)
"""Least and largest height of a tree of placed cells."""

SUITED_HEIGHT, GROWTH = 10, 1.25
"""Height of a tree that suits ``SUITED_RECORDS`` at epsilon 1, and how it grows when epsilon
doubles."""

SUITED_RECORDS = 10**5
"""For how many records ``SUITED_HEIGHT`` suits epsilon 1."""

CONCENTRATION_NUMBERS = 2**MAX_FLAT_HEIGHT // 4
"""How many round numbers in concentrated cells get cells: published functions keep all their
edges."""

CONCENTRATION_ERRORS = 5.0
"""Standard errors of its noise that a cell with many records holds at least."""


def planned_height(protocol: Any, records: float, noises: float) -> int:
    """The height of the tree of about so many records, as noisy counts say.

    Noise grows slowly with the height, and in sampling errors falls with epsilon times the root of
    the records over the number of noises; what the cells hide halves with two more levels. Of more
    than ``SUITED_RECORDS`` the cells hide little compared with what noise adds.
    """
    known = min(max(records, 1.0), SUITED_RECORDS)
    signal = protocol.known_epsilon * math.sqrt(known / SUITED_RECORDS / noises)
    low, high = TREE_HEIGHTS
    return min(max(SUITED_HEIGHT + round(GROWTH * math.log2(signal)), low), high)


def borders_of(protocol: Any, pool: Pooled, height: int, concentrated: NDArray[np.bool_]) -> Floats:
    """The inner edges of ``2**height`` cells placed by the rounds of one replicate.

    The protocol's thresholds are among them, so that rates there are those of whole cells. So are
    the edges of cells of a single double that hold many records, and edges around round numbers in
    concentrated cells; in all that hold many records, if any of these stands alone. Where the
    protocol has a middle edge, half of the cells lie on either side of it, so that a node of either
    class near the root holds all that reaches it.

    Parameters
    ----------
    concentrated : which cells of the round hide too much, shape (B,).
    """
    borders = balanced_borders(pool.scale, pool.counts[0], pool.cell_error, height)
    edges = [protocol.threshold_edges]
    counts = pool.counts[0]
    clear = np.any(counts > CONCENTRATION_ERRORS * pool.cell_error, axis=0)
    alone = lone_concentrations(counts, pool.cell_error) > ALONE_PART * np.maximum(counts, 0.0)
    if pool.borders is not None:
        ends = np.concatenate([[-np.inf], pool.borders, [np.inf]])
        single = np.flatnonzero(pool.single & clear)
        edges += [ends[single], ends[single + 1]]
    cells = np.flatnonzero((concentrated | (clear & alone.any())) & ~pool.single)
    most = CONCENTRATION_NUMBERS // max(cells.size, 1)
    edges += [
        around_round_numbers(pool.scale, cell, concentrated.size, most) for cell in cells.tolist()
    ]
    wanted = np.unique(np.concatenate(edges))
    base, count = protocol.score_scale, (1 << height) - 1
    spare = base.scores(np.arange(1, 2 << height) / (2 << height))
    outside = [-np.inf, np.inf, *(each for each in (base.low, base.high) if each is not None)]
    borders, wanted = np.setdiff1d(borders, outside), np.setdiff1d(wanted, outside)
    if protocol.middle_edge is None:
        return with_edges(borders, wanted, spare, count)
    middle = np.array([protocol.middle_edge])
    place, even = base.positions(middle), np.arange(1, count + 1) / (count + 1)
    below, above = base.scores(place * even), base.scores(place + (1 - place) * even)
    sides = []
    for on, more in ((np.less, below), (np.greater, above)):
        left = _thinned(borders[on(borders, middle)], count // 2)
        sides.append(with_edges(left, wanted[on(wanted, middle)], more, count // 2))
    return np.concatenate([sides[0], middle, sides[1]])


def _thinned(borders: Floats, most: int) -> Floats:
    """At most so many of the cell edges, at even distances of their numbers."""
    if borders.size <= most:
        return borders
    return borders[np.linspace(0, borders.size - 1, most).round().astype(np.int64)]


def balanced_borders(scale: ScoreScale, counts: Floats, error: float, height: int) -> Floats:
    """Inner edges of cells of equal ``sqrt(p n)``, a part of them following either class alone.

    Parameters
    ----------
    scale : of whose equal cells the counts are.
    counts : positives and negatives, shape (2, B).
    error : the standard error of a count.
    height : there are ``2**height`` new cells.

    Examples
    --------
    >>> from tacit.metrics.cells.score_scale import named_scale
    >>> counts = np.array([[0.0, 100.0, 100.0, 0.0] * 16] * 2)
    >>> balanced_borders(named_scale("even"), counts, 0.0, 2).round(2).tolist()
    [0.25, 0.5, 0.75]
    """
    clear = np.maximum(counts - NOISE_ERRORS * error, 0.0)
    both, alone = (_normalised(each) for each in (np.sqrt(np.prod(clear, axis=0)), clear.sum(0)))
    mixed = (1 - CLASS_PART) * both + CLASS_PART * alone
    return placed_borders(scale, mixed, height, FIXED_PART)


def with_edges(borders: Floats, edges: Floats, spare: Floats, count: int) -> Floats:
    """So many ascending cell edges, these edges among them: each takes the place of the nearest.

    Parameters
    ----------
    borders : ascending, at most ``count``.
    edges : ascending, at most ``count``.
    spare : further cell edges where there are too few, ascending.

    Examples
    --------
    >>> with_edges(np.array([0.1, 0.2, 0.4, 0.6]), np.array([0.5, 0.61]), np.zeros(0), 4).tolist()
    [0.1, 0.2, 0.5, 0.61]
    """
    left = np.setdiff1d(borders, edges)
    for edge in np.setdiff1d(edges, borders):
        if left.size + edges.size > count:
            left = np.delete(left, int(np.argmin(np.abs(left - edge))))
    made = np.union1d(left, edges)
    more = np.setdiff1d(spare, made)
    missing = count - made.size
    chosen = np.linspace(0, more.size - 1, missing).round().astype(np.int64)
    return np.union1d(made, more[chosen])


def _normalised(masses: Floats) -> Floats:
    """The same adding up to 1; even where there is nothing."""
    total = float(masses.sum())
    return masses / total if total > 0 else np.full(masses.size, 1 / masses.size)


def placed_borders(scale: ScoreScale, masses: Floats, height: int, fixed: float) -> Floats:
    """The inner edges of ``2**height`` cells of about equal mass, shape (2**height - 1,).

    Where so many scores cannot be distinguished as doubles, the cells stay those of the scale.

    Parameters
    ----------
    scale : of whose equal cells the masses are.
    masses : adding up to 1, shape (B,).
    height : of the new cells.
    fixed : the part of the cells that lies evenly on the scale.
    """
    mixed = (1 - fixed) * masses + fixed / masses.size
    below = np.concatenate([[0.0], np.cumsum(mixed)])
    inner = np.arange(1, 1 << height) / (1 << height)
    places = np.interp(inner * below[-1], below, np.arange(masses.size + 1) / masses.size)
    borders = scale.scores(places)
    ends = [each for each in (scale.low, scale.high) if each is not None]
    apart = np.all(np.diff(borders) > 0) and not np.isin(borders, ends).any()
    return borders if apart else scale.scores(inner)
