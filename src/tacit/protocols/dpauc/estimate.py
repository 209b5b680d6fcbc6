"""The server's result from looks at a histogram and the sums of influences.

What straight lines inside cells miss of smooth densities, estimated from the counts themselves.

Where a cell spans several powers of ten of the odds, both classes' densities fall over it, and not
alike. The lines of both classes then miss parts that are not in proportion, and the AUC of exact
scores by these lines is off by the integral of ``e- d(e+)``, e the lines less the true functions
(docs, section 5c). Densities are taken as linear over the cell in log-odds, with the slopes that
the neighbouring counts show, and in an end cell as powers of the distance to the end. Where they
fall by powers inside a cell too, the estimate is 2 to 8 times the error of a cell of one power of
ten: it is a statement of the error's size, and nothing is corrected by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_distribution import ScoreDistribution, rising_fractions
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocols.dpauc.looks import Cells, Counts, left_variance
from tacit.protocols.dpauc.steps import BothRounds
from tacit.protocols.shared.cells import COARSE_CELLS, result_from_cells, signal_warnings
from tacit.protocols.shared.trees.levels import CellNoise
from tacit.protocols.shared.zoomed_cells import crowded_cells, lines_variance, shares_of
from tacit.results.figure import MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.server_result import ServerResult

POINTS = 16
"""Number of points of a cell at which a line is compared with log-odds."""

LEAST_POWER, LARGEST_POWER = 0.05, 4.0
"""Bounds of the power of a distance that a class's share beyond it is taken to follow."""

LEAST_CELLS = 4
"""Least number of cells whose neighbours show slopes."""

LARGEST_LOG_ODDS = 700.0
"""Log-odds of the least positive probabilities that doubles tell apart."""


@dataclass(frozen=True, eq=False)
class LineGeometry:
    """Where lines between the edges of cells differ from functions that are linear in log-odds.

    Parameters
    ----------
    bends : of every cell the mean of ``(t - u) (u - 1/2)``, u the part of the cell below a point in
        log-odds and t in scores, shape (B,).
    widths : of the cells in log-odds, shape (B,).
    distances : the logarithms of the distances of the first two edges from the lower end, and of
        the last two from the upper one, the outer edge first, shape (2, 2).
    """

    bends: Floats
    widths: Floats
    distances: Floats


def line_errors(shares: Floats, scale: ScoreScale) -> Floats:
    """The AUC's error by straight lines in every cell, as estimated, with its sign, shape (..., B).

    0 where scores have no bounds: there lines are straight in log-odds or the like already.

    Parameters
    ----------
    shares : of positives, then of negatives, in equal cells of positions, at least 0, shape
        (..., 2, B).
    scale : whose knots bound the cells.
    """
    if scale.low is None or scale.high is None or scale.cells < LEAST_CELLS:
        return np.zeros((*shares.shape[:-2], shares.shape[-1]))
    geometry = _geometry(scale)
    lower = _powers(shares[..., :2], geometry.distances[0])
    upper = _powers(shares[..., :-3:-1], geometry.distances[1])
    ends = lower * shares[..., 0], upper * shares[..., -1]
    errors = _inner_errors(shares, ends, geometry)
    products = np.prod(shares, axis=-2)
    errors[..., 0] = -products[..., 0] * _of_powers(lower)
    errors[..., -1] = products[..., -1] * _of_powers(upper)
    return errors


def _inner_errors(shares: Floats, ends: tuple[Floats, Floats], geometry: LineGeometry) -> Floats:
    """``g (n s+ - p s-)``, g the bend and s what a class's density rises by over the cell.

    With ``e = t - u - s (u^2 - u) / 2`` times a share, the integral of ``e- d(e+)`` over the cell
    is ``p n (s- - s+)`` times that of ``(t - u) (u - 1/2)``, s relative to the share. The AUC by
    the lines is less by as much.

    Parameters
    ----------
    ends : the densities at the first and the last inner edge, shape (..., 2) each.
    """
    widths = geometry.widths[1:-1]
    inner = shares[..., 1:-1]
    density = inner / widths
    # at an edge, on the line through the middles of both cells beside it
    weights = widths[1:] / (widths[1:] + widths[:-1])
    between = weights * density[..., :-1] + (1 - weights) * density[..., 1:]
    low, high = (each[..., np.newaxis] for each in ends)
    rise = np.diff(np.concatenate([low, between, high], axis=-1), axis=-1) * widths
    # a density that is linear over the cell is nowhere below 0
    positives, negatives = np.moveaxis(np.clip(rise, -2 * inner, 2 * inner), -2, 0)
    errors = np.zeros((*shares.shape[:-2], shares.shape[-1]))
    inside = inner[..., 1, :] * positives - inner[..., 0, :] * negatives
    errors[..., 1:-1] = geometry.bends[1:-1] * inside
    return errors


def _powers(shares: Floats, distances: Floats) -> Floats:
    """The powers of the distance to an end that the classes' shares follow, shape (..., 2).

    Parameters
    ----------
    shares : of the end cell and its neighbour, shape (..., 2, 2).
    distances : the logarithms of their inner edges' distances from the end, shape (2,).
    """
    ratio = np.maximum(shares.sum(axis=-1), 1e-300) / np.maximum(shares[..., 0], 1e-300)
    powers = np.log(ratio) / (distances[1] - distances[0])
    return np.asarray(np.clip(powers, LEAST_POWER, LARGEST_POWER))


def _of_powers(powers: Floats) -> Floats:
    """``1/2 + b/(a + b) - b/(b + 1) - 1/(a + 1)``, a of negatives and b of positives, shape (...).

    It is the integral of ``e- d(e+)`` in a lower end cell where ``F- = n r^a`` and ``F+ = p r^b``,
    r the distance from the end over the cell's width, divided by ``p n``; in an upper one, where
    ``1 - F`` are such, its sign is changed.
    """
    rising, falling = powers[..., 0], powers[..., 1]
    share = rising / (rising + falling)
    return np.asarray(share - rising / (rising + 1) - 1 / (falling + 1) + 0.5)


@lru_cache(maxsize=64)
def _geometry(scale: ScoreScale) -> LineGeometry:
    """Of a scale with both ends; scales are compared by identity."""
    knots, low, high = scale.knots, float(scale.low or 0.0), float(scale.high or 0.0)
    ends = np.concatenate([[low], knots, [high]])
    below = np.log(np.maximum(ends - low, 1e-300))
    above = np.log(np.maximum(high - ends, 1e-300))
    log_odds = np.clip(below - above, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
    widths = np.diff(log_odds)
    parts = (np.arange(POINTS) + 0.5) / POINTS
    points = log_odds[:-1, np.newaxis] + widths[:, np.newaxis] * parts
    scores = low + (high - low) / (1 + np.exp(-points))
    lines = np.clip((scores - ends[:-1, np.newaxis]) / np.diff(ends)[:, np.newaxis], 0.0, 1.0)
    bends = np.mean((lines - parts) * (parts - 0.5), axis=-1)
    distances = np.array([below[1:3], above[-2:-4:-1]])
    return LineGeometry(bends, np.maximum(widths, 1e-12), distances)


PLACES_IN_CELL = 8
"""Number of points in a cell at which two interpolations are compared."""

LEAST_RATIO = 1 / 32
"""Least ratio of interpolation errors between cells of one width and of twice the width."""


def result_from_looks(counts: Counts, second: BothRounds) -> ServerResult:
    """The second round's AUC; the curve and the class sizes come from the looks.

    Errors of the looks cancel to first order. What remains is the noise of the sums, the product of
    both functions' errors, and that of a class size's relative error with its function's error.
    ``left_variance`` is taken at the mean counts of several replicates.
    There is no AUC unless both classes exceed ``MIN_CLASS_SIZE_IN_ERRORS`` of their errors.

    Parameters
    ----------
    counts : of all looks.
    second : what both rounds say of the AUC.
    """
    cells, noise = counts.consistent, counts.noise
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    sizes = cells.sum(axis=-1)
    shown = sizes.min(axis=-1) > MIN_CLASS_SIZE_IN_ERRORS * np.sqrt(noise.total)
    left = left_variance(counts.mean, noise, counts.place)
    variance = np.where(shown, second.variance + left, np.nan)
    hidden = hidden_variance(cells, noise, counts.place, second.variance + left)
    value = np.where(shown, second.area - _bias(cells, sizes, noise), np.nan)
    by_cells = result_from_cells(counts.place.edges, (positives, negatives), variance, noise)
    single = np.ndim(value) == 0
    classes = by_cells.positives, by_cells.negatives
    error = float(by_cells.positives_error)
    warnings = signal_warnings(value, classes, error) if single else ()
    if single and hidden > variance:
        warnings += (COARSE_CELLS,)
    return replace(
        by_cells,
        value=value,
        approximation_error=np.sqrt(hidden),
        laplace_error=second.one_draw,
        roc=by_cells.roc if single and np.isfinite(value) else None,
        warnings=warnings,
    )


def _bias(cells: Floats, sizes: Floats, noise: CellNoise) -> Floats:
    """The mean of the products of a class size's relative error with that of its function.

    Consistency spreads a class total's error z evenly over positions u: it moves F by
    ``z (u - F) / P`` and the size by ``z / P``. The product has the mean ``(w / P)^2`` times the
    integral of F- over u less A for positives, and that of 1 - F+ less A for negatives, w^2 the
    variance of a total.
    """
    functions = (np.cumsum(cells, axis=-1) - cells / 2) / np.maximum(sizes, 1.0)[..., np.newaxis]
    middle = functions.mean(axis=-1)
    area = curves.cell_area(cells[..., 0, :], cells[..., 1, :])
    relative = noise.total / np.maximum(sizes, 1.0) ** 2
    by_positives = relative[..., 0] * (middle[..., 1] - area)
    return np.asarray(by_positives + relative[..., 1] * (1 - middle[..., 0] - area))


def hidden_variance(
    cells: Floats,
    noise: CellNoise,
    place: Cells,
    variance: Floats,
    in_equal: Floats | None = None,
) -> Floats:
    """What cells hide where scores are exact and only the functions between edges are estimates.

    Between published knots as ``lines_variance`` says, and in equal cells as ``hidden_in_equal``.
    Ties of rounded scores do not show in counts; they always count where cells do not part them.

    Parameters
    ----------
    cells : consistent counts of positives and negatives, shape (..., 2, B).
    noise : in each class's cells.
    place : where the cells lie.
    variance : of the AUC by noise, shape (...).
    in_equal : ``hidden_in_equal`` of these cells, where it is already known.
    """
    ties = 0.0 if place.parts_ties else curves.HIDDEN_TIES**2
    if not place.published:
        return np.asarray((hidden_in_equal(cells) if in_equal is None else in_equal) + ties)
    error, single = math.sqrt(float(noise.cells[0])), place.single
    crowded = crowded_cells(cells, error, np.sqrt(variance), straight=True) & ~single
    bent = line_errors(shares_of(cells), place.scale)
    return np.asarray(lines_variance(cells, crowded, single, bent) + ties)


def hidden_in_equal(cells: Floats) -> Floats:
    """What equal cells of positions hide, as a variance, shape (...).

    Only the product of both functions' errors counts. Records placed at random in a cell of p
    positives and n negatives leave the variance ``p n / 12`` of its pairs. Smooth densities add
    what the functions of cells of twice the width err by, times the ratio of that error to the one
    of cells of four times the width, as errors fall by that ratio from width to width. A cell with
    far more pairs than its neighbours may be one score, or many in any order: such cells count by
    ``lone_crowd_variance``.
    """
    counts = np.maximum(cells, 0.0)
    pairs = np.sum(counts.prod(axis=-2), axis=-1) / 12
    totals = np.maximum(cells.sum(axis=-1).prod(axis=-1), 1.0)
    twice, four = (np.abs(_product_of_changes(cells, times)) for times in (2, 4))
    ratio = np.clip(twice / np.maximum(four, 1e-300), LEAST_RATIO, 1.0)
    crowds = curves.lone_crowd_variance(cells[..., 0, :], cells[..., 1, :])
    return np.asarray(pairs / totals**2 + (twice * ratio) ** 2 + crowds)


def _product_of_changes(cells: Floats, times: int) -> Floats:
    """The product of both functions' changes, ``integral of dF- d(dF+)``, from wider cells to
    these: about what the interpolation between every few edges errs by.
    """
    count = cells.shape[-1]
    values, inner = rising_fractions(cells)[..., 1:-1], np.arange(1, count) / count
    chosen = slice(times - 1, None, times)
    if inner[chosen].size < 1:
        return np.zeros(cells.shape[:-2])
    places = np.linspace(0, 1, PLACES_IN_CELL * count + 1)
    wide = ScoreDistribution(inner[chosen], values[..., chosen], 0.0, 1.0)
    changes = wide.at(places) - ScoreDistribution(inner, values, 0.0, 1.0).at(places)
    middles = (changes[..., 1, 1:] + changes[..., 1, :-1]) / 2
    return np.asarray(np.sum(middles * np.diff(changes[..., 0, :], axis=-1), axis=-1))
