"""ROC and precision-recall curves, areas and errors from counts.

Cells are score ranges in ascending order: ``positives[..., j]`` and ``negatives[..., j]`` count the
records of each class in cell ``j``. Counts may be noisy: nothing here clips or rounds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.ranking import plug_in_variance

Counts = NDArray[Any]

CONCENTRATED_CELL = 4.0
"""Least ratio of a concentrated cell's pairs to the mean number; smooth densities have a smaller
one."""

HIDDEN_TIES = 2e-5
"""Error of the AUC by ties in some 64 cells of log-odds, about, where a second round cancels what
is linear: scores with two digits, of which several share a cell, are off by 1e-5 to 3e-5. Counts in
such cells do not tell them from smooth ones."""

LEAST_OF_PLUG_IN = 0.25
"""Least part of Hanley and McNeil's variance at which DeLong's, of noisy counts, is believed."""

COARSE_SHARE = 0.1
"""Least part of all pairs at which a cell leaves open how many of them positives win."""

CLEAR_ERRORS = 3.0
"""Standard errors by noise that are subtracted from a cell's count before concentration is
tested."""

CONCENTRATED_NEIGHBOUR = 4.0
"""A cell is a concentration with more than this times the mean number of pairs of its two
neighbours."""


def counts_from_thresholds(cells: Counts) -> Counts:
    """How many records reach each cell's lower edge: the sum of this and all higher cells."""
    return np.flip(np.cumsum(np.flip(cells, axis=-1), axis=-1), axis=-1)


def rates(
    true_positives: Counts, false_positives: Counts, true_negatives: Counts, false_negatives: Counts
) -> tuple[Floats, Floats]:
    """False- and true-positive rate at every threshold; 0 where a class is empty.

    Examples
    --------
    >>> import numpy as np
    >>> rates(np.array([4, 3]), np.array([5, 1]), np.array([0, 4]), np.array([0, 1]))
    (array([1. , 0.2]), array([1.  , 0.75]))
    """
    return (
        _ratio(false_positives, false_positives + true_negatives),
        _ratio(true_positives, true_positives + false_negatives),
    )


def trapezoid_area(false_positive_rate: Floats, true_positive_rate: Floats) -> Floats:
    """The area under the points in order of threshold, closed at (1, 1) and (0, 0).

    Parameters
    ----------
    false_positive_rate, true_positive_rate : shape (..., T), thresholds ascending.

    Examples
    --------
    >>> import numpy as np
    >>> float(trapezoid_area(np.array([1.0, 0.0]), np.array([1.0, 1.0])))
    1.0
    """
    across, up = closed(false_positive_rate), closed(true_positive_rate)
    twice = (up[..., :-1] + up[..., 1:]) * (across[..., :-1] - across[..., 1:])
    area: Floats = twice.sum(axis=-1) / 2
    return area


def closed(rate: Floats) -> Floats:
    """A rate at ascending thresholds with the 1 before the first and the 0 after the last."""
    edge = np.zeros_like(rate[..., :1])
    return np.concatenate([edge + 1, rate, edge], axis=-1)


def cell_area(positives: Counts, negatives: Counts) -> Floats:
    """The AUC of cells, pairs within a cell counted one half; the trapezoid area of their ROC.

    NaN where the product of the class totals is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> float(cell_area(np.array([1, 3]), np.array([3, 1])))
    0.75
    """
    below = np.cumsum(negatives, axis=-1) - negatives / 2
    return _over_pairs(np.sum(positives * below, axis=-1), positives, negatives)


def density_correction(positives: Counts, negatives: Counts) -> Floats:
    """What to add to ``cell_area`` when densities are linear, not constant, inside a cell.

    With slopes from the neighbouring cells a pair inside cell j is won with probability
    ``1/2 + (a - b) / 12``, ``a`` and ``b`` the classes' relative slopes; times ``p_j n_j`` that is
    ``(n_j (p_{j+1} - p_{j-1}) - p_j (n_{j+1} - n_{j-1})) / 24``: bilinear, so independent noise on
    the counts leaves it unbiased. Assumes cells of equal width.
    """
    pairs: Floats = negatives * _slopes(positives) - positives * _slopes(negatives)
    return _over_pairs(np.sum(pairs, axis=-1) / 24, positives, negatives)


def density_correction_variance(
    positives: Counts, negatives: Counts, positive_variance: float, negative_variance: float
) -> Floats:
    """The noise variance of ``density_correction`` when cells carry noise of these variances."""
    variance = positive_variance * np.sum(_slopes(negatives) ** 2, axis=-1)
    variance = variance + negative_variance * np.sum(_slopes(positives) ** 2, axis=-1)
    pairs = positives.sum(axis=-1) * negatives.sum(axis=-1)
    return variance / 144 / np.maximum(pairs.astype(np.float64), 1.0) ** 2


def cell_influences(positives: Counts, negatives: Counts) -> tuple[Floats, Floats]:
    """How the AUC of cells changes with one more positive, and one more negative, in each cell.

    ``(F_j - A) / P`` with F the negatives' mid-distribution, and ``(1 - G_j - A) / N`` with G the
    positives'. Shapes (..., B); NaN where a class total is not positive.
    """
    positive_total, negative_total = (
        _total(cells)[..., np.newaxis] for cells in (positives, negatives)
    )
    area = cell_area(positives, negatives)[..., np.newaxis]
    beaten = (np.cumsum(negatives, axis=-1) - negatives / 2) / negative_total
    beating = 1 - (np.cumsum(positives, axis=-1) - positives / 2) / positive_total
    return (beaten - area) / positive_total, (beating - area) / negative_total


def density_influences(positives: Counts, negatives: Counts) -> tuple[Floats, Floats]:
    """How ``density_correction`` changes with one more positive, and one more negative, in a cell.

    Slopes are differences of neighbours, so their transposed is their negative inside; what differs
    at the two ends, and the change of the class totals, is left out.
    """
    units = 12 * (_total(positives) * _total(negatives))[..., np.newaxis]
    return -_slopes(negatives) / units, _slopes(positives) / units


def curvature_error(positives: Counts, negatives: Counts) -> Floats:
    """How far the density correction may be off, from cells of twice the width.

    For smooth densities the uncorrected area is off by the square of the width and the corrected
    one by its fourth power: a third of the change of the first is then the correction itself, and a
    fifteenth of the change of the second its error. The larger of the disagreement with the one
    and an eighth of the other is taken as the error; scores that concentrate into few cells make it
    large.
    """
    coarse = merge_pairs(positives), merge_pairs(negatives)
    correction = density_correction(positives, negatives)
    steps = cell_area(positives, negatives) - cell_area(*coarse)
    change = steps + correction - density_correction(*coarse)
    return np.maximum(np.abs(correction - steps / 3), np.abs(change) / 8)


def concentration_variance(positives: Counts, negatives: Counts) -> Floats:
    """The error of cells that hold far more pairs than others, as a variance of the AUC.

    Where scores concentrate into one cell, its neighbours do not determine the densities inside it.
    The fraction of its pairs that the positives win is then taken as uniform on [0, 1], of variance
    1/12. A cell counts as concentrated with more than ``CONCENTRATED_CELL`` times the mean
    number of pairs.
    """
    pairs = np.maximum(positives, 0.0) * np.maximum(negatives, 0.0)
    bound = CONCENTRATED_CELL * pairs.mean(axis=-1, keepdims=True)
    concentrated = np.sum(np.where(pairs > bound, pairs, 0.0) ** 2, axis=-1) / 12
    return _over_squared_pairs(concentrated, positives, negatives)


def lone_concentration_variance(
    positives: Counts,
    negatives: Counts,
    errors: tuple[float, float] = (0.0, 0.0),
    placed: bool = False,
) -> Floats:
    """The same where a cell counts as concentrated compared with its neighbours, not with the mean
    of all.

    On a scale that fits any scores most cells may be empty, and the others no concentrations. A
    cell with more than ``CONCENTRATED_NEIGHBOUR`` times the pairs that its two neighbours have on
    average is one.

    Parameters
    ----------
    positives, negatives : counts in cells, shape (..., B).
    errors : standard errors of a cell's positives and negatives by noise, of which
        ``CLEAR_ERRORS`` are subtracted, so that no noise is taken for concentration.
    placed : whether earlier counts placed the cells, so that those of a concentration are narrow.
        Most concentrations are then one score, and hide nothing; ``chance_of_several`` is that of
        the others.
    """
    clear = [
        np.maximum(counts - CLEAR_ERRORS * error, 0.0)
        for counts, error in zip((positives, negatives), errors, strict=True)
    ]
    concentrated = np.where(lone_concentrations(*clear), clear[0] * clear[1], 0.0)
    variance = _over_squared_pairs(np.sum(concentrated**2, axis=-1) / 12, positives, negatives)
    return variance * chance_of_several(np.mean(concentrated > 0, axis=-1)) if placed else variance


def chance_of_several(part: Floats) -> Floats:
    """How likely a cell that holds a score holds another one, shape (...).

    Scores fall into cells at random: their number in a cell is Poisson's, of the mean m that leaves
    ``1 - part`` of the cells empty, ``m = -log(1 - part)``. Then
    ``P(at least 2 | at least 1) = 1 - m (1 - part) / part``, about ``part / 2`` where it is small.

    Parameters
    ----------
    part : of the cells, that hold a score, in [0, 1], shape (...).

    Examples
    --------
    >>> chance_of_several(np.array([0.0, 0.02, 0.5, 1.0])).round(3).tolist()
    [0.0, 0.01, 0.307, 1.0]
    """
    inner = np.clip(part, 1e-9, 1 - 1e-9)
    return np.asarray(1 + np.log1p(-inner) * (1 - inner) / inner)


def lone_concentrations(positives: Counts, negatives: Counts) -> NDArray[np.bool_]:
    """Which cells count as concentrations compared with their neighbours
    (``lone_concentration_variance``)."""
    pairs = np.maximum(positives, 0.0) * np.maximum(negatives, 0.0)
    end = np.zeros_like(pairs[..., :1])
    beside = np.concatenate([end, pairs, end], axis=-1)
    around = (beside[..., :-2] + beside[..., 2:]) / 2
    return np.asarray(pairs > CONCENTRATED_NEIGHBOUR * around)


def coarse_variance(shares: Floats) -> Floats:
    """The error of cells that hold much of all pairs, as a variance of the AUC, shape (...).

    Few cells do not determine the densities inside them. In a cell with more than ``COARSE_SHARE``
    of all pairs the fraction of its pairs that positives win is taken as uniform on [0, 1], of
    variance 1/12.

    Parameters
    ----------
    shares : both classes' parts in every cell, shape (..., 2, B).
    """
    products = np.prod(np.maximum(shares, 0.0), axis=-2)
    return np.asarray(np.sum(np.where(products > COARSE_SHARE, products, 0.0) ** 2, axis=-1) / 12)


def placement_variance(positives: Counts, negatives: Counts) -> Floats:
    """The error from unknown positions of records in their cells, as a variance of the AUC.

    A cell's own AUC, of p positives and n negatives placed at random, has variance
    ``(p + n + 1) / (12 p n)`` (Mann and Whitney 1947); it enters weighted by the cell's fraction of
    pairs, ``p n / (P N)``.
    """
    positive_counts, negative_counts = np.maximum(positives, 0), np.maximum(negatives, 0)
    totals = positive_counts + negative_counts
    variance = np.sum(positive_counts * negative_counts * (totals + 1.0), axis=-1) / 12
    return _over_squared_pairs(variance, positives, negatives)


def cell_sampling_variance(positives: Counts, negatives: Counts) -> Floats:
    """DeLong's sampling variance of the AUC with each record at the middle of its cell."""
    by_positive, by_negative = cell_influences(positives, negatives)
    variance = np.sum(positives * by_positive**2, axis=-1)
    return np.maximum(variance + np.sum(negatives * by_negative**2, axis=-1), 0.0)


def noisy_sampling_variance(positives: Counts, negatives: Counts, area: Floats | float) -> Floats:
    """``cell_sampling_variance`` of noisy counts, where noise leaves enough of it to be believed.

    Where it is below ``LEAST_OF_PLUG_IN`` of Hanley and McNeil's, which needs the area and sizes
    of classes only, that is taken: noise may leave nothing, or less, of what few records show.

    Parameters
    ----------
    positives, negatives : noisy counts in cells, shape (..., B).
    area : the AUC, shape (...).

    Examples
    --------
    >>> round(float(noisy_sampling_variance(np.array([-2, 9]), np.array([9, -2]), 0.75)), 4)
    0.0183
    """
    direct = cell_sampling_variance(positives, negatives)
    sizes = (np.maximum(each.sum(axis=-1), 1.0) for each in (positives, negatives))
    plug_in = plug_in_variance(np.nan_to_num(area, nan=0.5), *sizes)
    return np.where(direct < LEAST_OF_PLUG_IN * plug_in, plug_in, direct)


def merge_pairs(cells: Counts) -> Counts:
    """Cells of twice the width; an odd last cell stays alone."""
    return np.add.reduceat(cells, np.arange(0, cells.shape[-1], 2), axis=-1)


def _slopes(cells: Counts) -> Floats:
    """Differences of the two neighbours; at the ends, twice the one-sided difference."""
    if cells.shape[-1] < 2:
        return np.zeros(cells.shape, dtype=np.float64)
    return 2.0 * np.gradient(cells.astype(np.float64), axis=-1)


def _total(cells: Counts) -> Floats:
    """The records in all cells, NaN where they are not above 0."""
    total = cells.sum(axis=-1, dtype=np.float64)
    return np.where(total > 0, total, np.nan)


def _ratio(part: Counts, whole: Counts) -> Floats:
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=whole != 0)


def _over_pairs(won: Floats, positives: Counts, negatives: Counts) -> Floats:
    """Won pairs over all, NaN where a class has no records."""
    return np.asarray(won / (_total(positives) * _total(negatives)))


def _over_squared_pairs(sums: Floats, positives: Counts, negatives: Counts) -> Floats:
    """Sums over the squared number of pairs, 0 where there is none."""
    pairs = positives.sum(axis=-1, dtype=np.float64) * negatives.sum(axis=-1, dtype=np.float64)
    return np.where(pairs > 0, sums / np.where(pairs > 0, pairs, 1.0) ** 2, 0.0)
