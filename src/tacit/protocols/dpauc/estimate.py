"""The server's result from looks at a histogram and the sums of influences."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.cells.score_distribution import ScoreDistribution, rising_fractions
from tacit.metrics.curves import HIDDEN_TIES, cell_area, lone_crowd_variance
from tacit.protocols.dpauc.looks import Cells, Counts, left_variance
from tacit.protocols.dpauc.second_round import BothRounds
from tacit.protocols.shared.cells import COARSE_CELLS, result_from_cells, signal_warnings
from tacit.protocols.shared.line_errors import line_errors
from tacit.protocols.shared.trees.levels import CellNoise
from tacit.protocols.shared.zoomed_cells import crowded_cells, lines_variance, shares_of
from tacit.results.class_sizes import MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.server_result import ServerResult

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
    area = cell_area(cells[..., 0, :], cells[..., 1, :])
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
    ties = 0.0 if place.parts_ties else HIDDEN_TIES**2
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
    crowds = lone_crowd_variance(cells[..., 0, :], cells[..., 1, :])
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
