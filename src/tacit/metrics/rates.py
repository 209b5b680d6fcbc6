"""Rates of a classifier from counts in score cells, and how each depends on every count.

Counts have shape (2, B): positives, then negatives, in cells of ascending score. A gradient has the
same shape after that of the rate: what one more record in that cell would add to it. Rates do not
change when all counts grow alike, so the counts weighted by a gradient sum to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats


@dataclass(frozen=True, eq=False)
class Rate:
    """A rate with its dependence on the counts.

    Parameters
    ----------
    value : shape (...); NaN where it is undefined.
    gradient : shape (..., 2, B).
    """

    value: Floats
    gradient: Floats

    @property
    def complement(self) -> Rate:
        """One less the rate."""
        return Rate(1 - self.value, -self.gradient)

    def sampling_error(self, counts: Floats) -> Floats:
        """The standard error of a sample's rate about its population's, by linearisation.

        Negative counts are used as they are: noise clipped at zero would look like records.
        """
        return np.sqrt(np.maximum(np.sum(counts * self.gradient**2, axis=(-2, -1)), 0.0))


def reaching(edges: Floats, thresholds: Floats) -> Floats:
    """The fraction of each cell's width that reaches each threshold, shape (T, B).

    Examples
    --------
    >>> import numpy as np
    >>> reaching(np.array([0.0, 0.5, 1.0]), np.array([0.25])).tolist()
    [[0.5, 1.0]]
    """
    low, high = edges[:-1], edges[1:]
    return np.clip((high - thresholds[:, np.newaxis]) / (high - low), 0.0, 1.0)


def recall(counts: Floats, above: Floats) -> Rate:
    """The fraction of positives that reach the threshold, ``TP / P``."""
    return _ratio(counts, _stack(above, 0.0), _stack(np.ones_like(above), 0.0))


def false_positive_rate(counts: Floats, above: Floats) -> Rate:
    """The fraction of negatives that reach the threshold, ``FP / N``."""
    return _ratio(counts, _stack(0.0, above), _stack(0.0, np.ones_like(above)))


def specificity(counts: Floats, above: Floats) -> Rate:
    """The fraction of negatives below the threshold, ``TN / N``."""
    return false_positive_rate(counts, above).complement


def precision(counts: Floats, above: Floats) -> Rate:
    """The fraction of positives among the records that reach the threshold, ``TP / (TP + FP)``."""
    return _ratio(counts, _stack(above, 0.0), _stack(above, above))


def accuracy(counts: Floats, above: Floats) -> Rate:
    """The fraction of records that the threshold classifies correctly, ``(TP + TN) / M``."""
    return _ratio(counts, _stack(above, 1 - above), np.ones((*above.shape[:-1], 2, 1)))


def f1(counts: Floats, above: Floats) -> Rate:
    """The harmonic mean of precision and recall, ``2 TP / (TP + FP + P)``."""
    return _ratio(counts, _stack(2 * above, 0.0), _stack(above + 1, above))


def positive_fraction(counts: Floats, members: Floats) -> Rate:
    """The fraction of positives among the records of some cells, ``members`` of shape (T, B)."""
    return precision(counts, members)


RATES: dict[str, Callable[[Floats, Floats], Rate]] = {
    "precision": precision,
    "recall": recall,
    "specificity": specificity,
    "accuracy": accuracy,
    "f1": f1,
}
"""The rates at a threshold, by name."""


def average_precision(counts: Floats) -> Rate:
    """The precision at the score of every positive, averaged over the positives.

    Half of a cell's records are assumed to reach the score of a positive in it:
    ``sum_j p_j TP_j / (TP_j + FP_j) / P`` with TP and FP counted from the cell's middle. For scores
    without ties that is the step-wise area under the precision-recall curve, up to the square of
    the cells' width and to the half of a record by which a positive counts itself there. Negative
    counts are used as they are: noise clipped at zero would look like records.

    Examples
    --------
    >>> import numpy as np
    >>> float(average_precision(np.array([[0.0, 1.0], [1.0, 0.0]])).value)
    1.0
    """
    positives, negatives = counts
    won, lost = (_from_middle(class_counts) for class_counts in (positives, negatives))
    called, total = won + lost, positives.sum()
    if total <= 0:
        return Rate(np.array(np.nan), np.full_like(counts, np.nan))
    known = np.where(called > 0, called, 1.0)
    precision_by_cell = np.where(called > 0, won / known, 0.0)
    value = np.sum(positives * precision_by_cell) / total
    gain, loss = (_to_middle(positives * reached / known**2) for reached in (lost, won))
    return Rate(value, np.stack([precision_by_cell - value + gain, -loss]) / total)


def _from_middle(cells: Floats) -> Floats:
    """The records above the middle of every cell."""
    return np.flip(np.cumsum(np.flip(cells))) - cells / 2


def _to_middle(cells: Floats) -> Floats:
    """The records below the middle of every cell."""
    return np.cumsum(cells) - cells / 2


def _stack(positives: Floats | float, negatives: Floats | float) -> Floats:
    """Weights of both classes, shape (..., 2, B)."""
    return np.stack(np.broadcast_arrays(positives, negatives), axis=-2)


def _ratio(counts: Floats, part: Floats, whole: Floats) -> Rate:
    """``sum part counts / sum whole counts`` with its gradient; NaN where the whole is empty."""
    base = np.sum(whole * counts, axis=(-2, -1))
    known = np.where(base > 0, base, np.nan)
    value = np.sum(part * counts, axis=(-2, -1)) / known
    gradient = (part - value[..., np.newaxis, np.newaxis] * whole) / known[
        ..., np.newaxis, np.newaxis
    ]
    return Rate(value, gradient)
