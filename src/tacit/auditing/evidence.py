"""How much more likely an output is on one data set than on its neighbour, learnt from draws.

Outputs are rows of numbers, shape (R, D). Columns are cut into bins and their log-ratios added up,
which is exact for columns of independent noise; where few different rows occur, each row's ratio is
learnt as a whole as well. Whatever is learnt here costs an attack its power, never its validity:
the probabilities of the event that it picks are bounded with draws that were not used to pick it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]

MOST_ROWS = 256
"""With more different rows than this they are not learnt as wholes."""

BINS = 24

TELLING = 5.0
"""A column counts where its chi-square exceeds what chance gives by so many standard deviations."""

MANTISSA_BITS = 53


def learn(ours: Floats, theirs: Floats) -> list[Score]:
    """Functions that score rows: high where they look like ours, low where like theirs.

    One adds up columns; where few different rows occur, another knows each of them.

    Parameters
    ----------
    ours, theirs : draws on the two neighbours, shape (R, D) each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ours, theirs = (rng.laplace(mean, 1, (4000, 1)) for mean in (1, 0))
    >>> (score,) = learn(ours, theirs)
    >>> [round(float(found)) for found in score(np.array([[3.0], [-2.0]]))]
    [1, -1]
    """
    varying = np.flatnonzero(np.ptp(np.vstack([ours, theirs]), axis=0) != 0)
    ours, theirs = ours[:, varying], theirs[:, varying]
    salt = np.random.default_rng(0).standard_normal(varying.size)
    known = np.unique(np.concatenate([_mixed(ours, salt), _mixed(theirs, salt)]))
    learnt = [_by_column(ours, theirs)]
    if known.size <= MOST_ROWS:
        learnt.append(_by_row(ours, theirs, salt))
    return [_of_columns(score, varying) for score in learnt]


def _of_columns(score: Score, kept: NDArray[np.int64]) -> Score:
    return lambda rows: score(rows[:, kept])


def chi_square(ours: Floats, theirs: Floats) -> tuple[Floats, Floats]:
    """Every column's chi-square between the two, and its degrees of freedom, each of shape (D,)."""
    pairs = [_histograms(*columns) for columns in zip(ours.T, theirs.T, strict=True)]
    found = [np.sum((a - b) ** 2 / np.maximum(a + b, 1)) for _, a, b in pairs]
    freedom = [max(a.size - 1, 1) for _, a, _ in pairs]
    return np.array(found, dtype=np.float64), np.array(freedom, dtype=np.float64)


def telling(ours: Floats, theirs: Floats) -> NDArray[np.bool_]:
    """Which columns differ between the two by more than chance, shape (D,)."""
    found, freedom = chi_square(ours, theirs)
    return np.asarray(found > freedom + TELLING * np.sqrt(2 * freedom))


def lowest_bits(values: Floats) -> Floats:
    """The exponent of the lowest set bit of every number; 0 for zero (Mironov 2012).

    A float that is a sum has lost the bits of its smaller part below the precision of its larger
    one, so this says of what size the parts were.

    Examples
    --------
    >>> lowest_bits(np.array([0.0, 1.0, 6.0, 0.375, 0.1])).tolist()
    [0.0, 0.0, 1.0, -3.0, -55.0]
    """
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, MANTISSA_BITS)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.where(whole == 0, 0.0, exponent - MANTISSA_BITS + lowest)


def _by_row(ours: Floats, theirs: Floats, salt: Floats) -> Score:
    """Log-ratios of whole rows, each told by a random weighted sum of its numbers."""
    left, right = _mixed(ours, salt), _mixed(theirs, salt)
    known = np.unique(np.concatenate([left, right]))
    ratios = _log_ratios(
        *(np.bincount(np.searchsorted(known, own), minlength=known.size) for own in (left, right))
    )

    def score(rows: Floats) -> Floats:
        own = _mixed(rows, salt)
        places = np.minimum(np.searchsorted(known, own), known.size - 1)
        return np.where(known[places] == own, ratios[places], 0.0)

    return score


def _mixed(rows: Floats, salt: Floats) -> Floats:
    """A weighted sum of every row, added up in one order: equal rows have equal sums."""
    total = np.zeros(rows.shape[0])
    for column, weight in zip(rows.T, salt, strict=True):
        total += weight * column
    return total


def _by_column(ours: Floats, theirs: Floats) -> Score:
    """The sum of the log-ratios of all columns."""
    learnt = [_histograms(*columns) for columns in zip(ours.T, theirs.T, strict=True)]
    cuts = [edges for edges, _, _ in learnt]
    ratios = [_log_ratios(a, b) for _, a, b in learnt]

    def score(rows: Floats) -> Floats:
        total = np.zeros(rows.shape[0])
        for column, edges, own in zip(rows.T, cuts, ratios, strict=True):
            total += own[np.searchsorted(edges, column)]
        return total

    return score


def _histograms(ours: Floats, theirs: Floats) -> tuple[Floats, NDArray[Any], NDArray[Any]]:
    """Inner edges of bins of about equal counts, and how many of either lie in each."""
    pooled = np.concatenate([ours, theirs])
    edges = np.unique(np.quantile(pooled, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    edges = edges[edges < pooled.max()]
    counts = [
        np.bincount(np.searchsorted(edges, own), minlength=edges.size + 1) for own in (ours, theirs)
    ]
    return edges, counts[0], counts[1]


def _log_ratios(ours: NDArray[Any], theirs: NDArray[Any]) -> Floats:
    """The logarithms of the ratios of two histograms of equally many draws, never infinite."""
    return np.asarray(np.log((ours + 0.5) / (theirs + 0.5)))
