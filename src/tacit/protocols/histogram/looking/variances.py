"""The variances of the AUC of looks and one number: products of errors, and what cells hide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.curves import HIDDEN_TIES
from tacit.protocols.histogram.looking.seen import Seen
from tacit.protocols.histogram.second_round import NEGATIVES, POSITIVES, SIZES
from tacit.protocols.shared.zoomed_cells import hidden_in_cells, lines_variance, shares_of

REPLICATES_AT_ONCE = 16
"""Number of replicates whose errors at all edges are held at a time, in a processor's cache."""


def product_variance(seen: Seen) -> Floats:
    """The variance of the product of both functions' errors by noise, shape (R,).

    The one number cancels what is linear in the errors e- and e+ of the functions, and leaves the
    integral of ``e- d(e+)``. The classes have independent noise, so with S- and S+ the covariances
    of the errors at the edges, A the means and D the differences of neighbours, its variance is
    ``trace(A S- A' D S+ D')``.
    """
    products, published = np.empty(seen.smaller.shape), seen.published
    for start in range(0, products.size, REPLICATES_AT_ONCE):
        rows = slice(start, start + REPLICATES_AT_ONCE)
        positive, negative = (
            _errors_at_edges(
                published[name][rows], published[SIZES][rows, row], seen, seen.filled[rows]
            )
            for row, name in enumerate((POSITIVES, NEGATIVES))
        )
        means = (negative[:, 1:] + negative[:, :-1]) / 2
        steps = np.diff(positive, axis=1)
        # the trace of (M M')(T T') is the sum of the squares of M' T
        crossed = np.matmul(np.swapaxes(means, 1, 2), steps)
        products[rows] = np.sum(crossed**2, axis=(1, 2))
    return products + seen.lone_mass / seen.precisions[1]


def hidden_variance(seen: Seen, auc_error: Floats) -> Floats:
    """What cells hide where scores are exact and functions are interpolated, shape (R,).

    Of records placed at random in a cell of p positives and n negatives, ``p n / 12`` pairs are
    left open (``estimate``); smooth densities add ``hidden_in_cells``. Where a cell is still
    crowded, the fraction of its pairs that positives win is taken as uniform on [0, 1].
    """
    crowded = seen.crowded(auc_error)
    if seen.straight:
        return lines_variance(seen.counts, crowded, seen.scale.single_doubles)
    shares = np.prod(shares_of(seen.counts), axis=-2)
    pairs = np.prod(seen.sizes, axis=-1)
    placed = np.sum(shares, axis=-1) / 12 / pairs
    smooth = np.sum(np.where(crowded, 0.0, hidden_in_cells(seen.counts)), axis=-1)
    in_crowds = np.sum(np.where(crowded, shares, 0.0) ** 2, axis=-1) / 12
    return placed + HIDDEN_TIES**2 + smooth**2 + in_crowds


def _errors_at_edges(
    values: Floats, sizes: Floats, seen: Seen, filled: NDArray[np.bool_]
) -> Floats:
    """How the function at every edge moves with a standard error of each count, (R, B+1, B+1).

    A consistent cell is its count, plus an equal part of what the class size adds to their sum: w
    times their difference, w the weight of the counted size. The function at edge k is the sum of
    the first k cells, over the sum of all. Cells that count as empty move nothing.
    """
    count = 1 << seen.height
    by_class, by_cell = (1 / precision for precision in seen.precisions)
    weight = count * by_cell / (count * by_cell + by_class)
    edges = np.arange(count + 1)
    ends = np.zeros((values.shape[0], 1))
    function = np.concatenate([ends, values, ends + 1], axis=-1)[..., np.newaxis]
    summed = (edges[:, np.newaxis] > np.arange(count)).astype(np.float64)
    even = edges[:, np.newaxis] / count
    by_counts = summed - even * weight - function * (1 - weight)
    by_size = even * weight - function * weight
    by_counts = np.where(filled[:, np.newaxis], by_counts, 0.0)
    moves = np.concatenate([by_counts * np.sqrt(by_cell), by_size * np.sqrt(by_class)], axis=-1)
    return np.asarray(moves / sizes[:, np.newaxis, np.newaxis])
