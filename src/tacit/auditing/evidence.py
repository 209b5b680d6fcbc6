"""How much more likely an output is on one data set than on its neighbour, learnt from draws.

Outputs are rows of numbers, shape (R, D). One score cuts every column into bins and adds up the
log-ratios of the bins, which is exact for columns of independent noise. Where few different rows
occur, a second score has one ratio for each whole row. A mistake here makes an attack weaker, never
invalid: the attack bounds the probabilities of its event with draws that it did not use to pick it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

Score = Callable[[Floats], Floats]

MAX_ROWS = 256
"""Largest number of different rows for which whole rows are learnt."""

BINS = 24

MIN_CHI_SQUARE_EXCESS = 5.0
"""Number of standard deviations by which the chi-square of a column that counts exceeds its
mean."""

MANTISSA_BITS = 53


def learn(first: Floats, second: Floats) -> list[Score]:
    """Functions that score rows: high for rows like the first draws, low for rows like the second.

    One function adds up columns. Where few different rows occur, a second one knows each row.

    Parameters
    ----------
    first, second : draws on the two neighbours, shape (R, D) each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> first, second = (rng.laplace(mean, 1, (4000, 1)) for mean in (1, 0))
    >>> (score,) = learn(first, second)
    >>> [round(float(value)) for value in score(np.array([[3.0], [-2.0]]))]
    [1, -1]
    """
    varying = np.flatnonzero(np.ptp(np.vstack([first, second]), axis=0) != 0)
    first, second = first[:, varying], second[:, varying]
    salt = np.random.default_rng(0).standard_normal(varying.size)
    known = np.unique(np.concatenate([_mixed(first, salt), _mixed(second, salt)]))
    learnt = [_by_column(first, second)]
    if known.size <= MAX_ROWS:
        learnt.append(_by_row(first, second, salt))
    return [_of_columns(score, varying) for score in learnt]


def _of_columns(score: Score, columns: NDArray[np.int64]) -> Score:
    return lambda rows: score(rows[:, columns])


def chi_square(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Every column's chi-square between the two, and its degrees of freedom, each of shape (D,)."""
    pairs = [_histograms(*columns) for columns in zip(first.T, second.T, strict=True)]
    statistics = [np.sum((a - b) ** 2 / np.maximum(a + b, 1)) for _, a, b in pairs]
    freedom = [max(a.size - 1, 1) for _, a, _ in pairs]
    return np.array(statistics, dtype=np.float64), np.array(freedom, dtype=np.float64)


def telling(first: Floats, second: Floats) -> NDArray[np.bool_]:
    """Which columns differ between the two by more than chance, shape (D,)."""
    statistics, freedom = chi_square(first, second)
    return np.asarray(statistics > freedom + MIN_CHI_SQUARE_EXCESS * np.sqrt(2 * freedom))


def lowest_bits(values: Floats) -> Floats:
    """The exponent of the lowest set bit of every number; 0 for zero (Mironov 2012).

    A floating-point sum loses the bits of its smaller term that lie below the precision of its
    larger term. So the lowest set bit says how large the terms were.

    Examples
    --------
    >>> lowest_bits(np.array([0.0, 1.0, 6.0, 0.375, 0.1])).tolist()
    [0.0, 0.0, 1.0, -3.0, -55.0]
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, MANTISSA_BITS)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.where(whole == 0, 0.0, exponent - MANTISSA_BITS + lowest)


def _by_row(first: Floats, second: Floats, salt: Floats) -> Score:
    """Log-ratios of whole rows; a random weighted sum of its numbers identifies each row."""
    left, right = _mixed(first, salt), _mixed(second, salt)
    known = np.unique(np.concatenate([left, right]))
    ratios = _log_ratios(
        *(np.bincount(np.searchsorted(known, sums), minlength=known.size) for sums in (left, right))
    )

    def score(rows: Floats) -> Floats:
        sums = _mixed(rows, salt)
        indices = np.minimum(np.searchsorted(known, sums), known.size - 1)
        return np.where(known[indices] == sums, ratios[indices], 0.0)

    return score


def _mixed(rows: Floats, salt: Floats) -> Floats:
    """A weighted sum of every row, always added in the same order: equal rows have equal sums."""
    total = np.zeros(rows.shape[0])
    for column, weight in zip(rows.T, salt, strict=True):
        total += weight * column
    return total


def _by_column(first: Floats, second: Floats) -> Score:
    """The sum of the log-ratios of all columns."""
    learnt = [_histograms(*columns) for columns in zip(first.T, second.T, strict=True)]
    cuts = [edges for edges, _, _ in learnt]
    ratios = [_log_ratios(a, b) for _, a, b in learnt]

    def score(rows: Floats) -> Floats:
        total = np.zeros(rows.shape[0])
        for column, edges, column_ratios in zip(rows.T, cuts, ratios, strict=True):
            total += column_ratios[np.searchsorted(edges, column)]
        return total

    return score


def _histograms(first: Floats, second: Floats) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Inner edges of bins with about equal counts, and how many values of each lie in each bin."""
    pooled = np.concatenate([first, second])
    edges = np.unique(np.quantile(pooled, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    edges = edges[edges < pooled.max()]
    counts = [
        np.bincount(np.searchsorted(edges, values), minlength=edges.size + 1)
        for values in (first, second)
    ]
    return edges, counts[0], counts[1]


def _log_ratios(first: NDArray[Any], second: NDArray[Any]) -> Floats:
    """The logarithms of the ratios of two histograms of equally many draws, never infinite."""
    return np.asarray(np.log((first + 0.5) / (second + 0.5)))
