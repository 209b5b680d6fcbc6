"""Rates of calling scores positive from a threshold on, from counts in cells of scores.

Counts have shape (2, B): positives, then negatives, in cells of ascending score. ``above`` is the
part of each cell that reaches each threshold, shape (T, B). Two fields have two names for some of
these rates: ``rate_name`` knows both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.functional import Functional, above_middle, both, ratio

Rate = Callable[[Floats, Floats], Functional]


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


def positive_predictive_value(counts: Floats, above: Floats) -> Functional:
    """The share of positives among records that reach the threshold, ``TP / (TP + FP)``."""
    return ratio(counts, both(above, 0.0), both(above, above), above)


def negative_predictive_value(counts: Floats, above: Floats) -> Functional:
    """The share of negatives among records below the threshold, ``TN / (TN + FN)``."""
    return ratio(counts, both(0.0, 1 - above), both(1 - above, 1 - above), above)


def sensitivity(counts: Floats, above: Floats) -> Functional:
    """The share of positives that reach the threshold, ``TP / P``."""
    return ratio(counts, both(above, 0.0), both(np.ones_like(above[:1]), 0.0), above)


def specificity(counts: Floats, above: Floats) -> Functional:
    """The share of negatives below the threshold, ``TN / N``."""
    return ratio(counts, both(0.0, 1 - above), both(0.0, np.ones_like(above[:1])), above)


def positive_likelihood_ratio(counts: Floats, above: Floats) -> Functional:
    """Sensitivity over the false-positive rate, ``(TP / P) / (FP / N)``.

    Examples
    --------
    >>> counts, above = np.array([[10.0, 30.0], [80.0, 20.0]]), np.array([[0.0, 1.0]])
    >>> positive_likelihood_ratio(counts, above).value.round(4).tolist()
    [3.75]
    """
    return _quotient_of_shares(counts, above, above)


def negative_likelihood_ratio(counts: Floats, above: Floats) -> Functional:
    """The missed share of positives over specificity, ``(FN / P) / (TN / N)``."""
    return _quotient_of_shares(counts, 1 - above, above)


def _quotient_of_shares(counts: Floats, chosen: Floats, above: Floats) -> Functional:
    """A share of positives over the same share of negatives; relative gradients subtract."""
    ones = np.ones_like(chosen[:1])
    upper = ratio(counts, both(chosen, 0.0), both(ones, 0.0))
    lower = ratio(counts, both(0.0, chosen), both(0.0, ones))
    known = np.where(lower.value > 0, lower.value, np.nan)
    value = upper.value / known
    # d(u / l) = (du - (u / l) dl) / l
    gradient = upper.gradient - value[:, np.newaxis, np.newaxis] * lower.gradient
    gradient /= known[:, np.newaxis, np.newaxis]
    return Functional(value, gradient, both(0.0, chosen), above)


def false_positive_rate(counts: Floats, above: Floats) -> Functional:
    """The share of negatives that reach the threshold, ``FP / N``."""
    return ratio(counts, both(0.0, above), both(0.0, np.ones_like(above[:1])), above)


def accuracy(counts: Floats, above: Floats) -> Functional:
    """The share of records that the threshold classifies correctly, ``(TP + TN) / M``."""
    return ratio(counts, both(above, 1 - above), np.ones((1, 2, 1)), above)


def balanced_accuracy(counts: Floats, above: Floats) -> Functional:
    """The mean of sensitivity and specificity."""
    found, left = sensitivity(counts, above), specificity(counts, above)
    smaller = found if counts[0].sum() < counts[1].sum() else left
    half = (found.value + left.value) / 2, (found.gradient + left.gradient) / 2
    return Functional(*half, smaller.base, above)


def f1(counts: Floats, above: Floats) -> Functional:
    """The harmonic mean of precision and recall, ``2 TP / (TP + FP + P)``."""
    return ratio(counts, both(2 * above, 0.0), both(above + 1, above), above)


RATES: dict[str, Rate] = {
    "sensitivity": sensitivity,
    "specificity": specificity,
    "positive_predictive_value": positive_predictive_value,
    "negative_predictive_value": negative_predictive_value,
    "positive_likelihood_ratio": positive_likelihood_ratio,
    "negative_likelihood_ratio": negative_likelihood_ratio,
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "f1": f1,
}
"""The rates at a threshold, by name."""

RATE_TITLES = {"f1": "F1"}
"""What texts call a rate where that is not its name with spaces."""

LIKELIHOOD_RATIOS = ("positive_likelihood_ratio", "negative_likelihood_ratio")
"""Rates that may be above 1, and whose denominators' noise counts."""

OTHER_NAMES = {
    "recall": "sensitivity",
    "true_positive_rate": "sensitivity",
    "tpr": "sensitivity",
    "true_negative_rate": "specificity",
    "tnr": "specificity",
    "precision": "positive_predictive_value",
    "ppv": "positive_predictive_value",
    "npv": "negative_predictive_value",
    "f1_score": "f1",
}
"""Further names of rates, each with that of ``RATES``."""


def normalised(text: str) -> str:
    """A figure's name as files write it: in lower case, its words joined by underscores.

    Examples
    --------
    >>> normalised(" Net-benefit at 0.2")
    'net_benefit_at_0.2'
    """
    return re.sub(r"[\s_-]+", "_", text.strip().lower())


def rate_name(text: str) -> str:
    """The name in ``RATES`` of a rate, whichever field's word and spelling it has.

    Raises
    ------
    KeyError : for a rate that there is not; the message lists those that there are.

    Examples
    --------
    >>> rate_name("Recall"), rate_name("PPV")
    ('sensitivity', 'positive_predictive_value')
    """
    words = normalised(text)
    name = OTHER_NAMES.get(words, words)
    if name in RATES:
        return name
    known = (*RATES, *OTHER_NAMES)
    near = get_close_matches(words, known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    raise KeyError(f"{text!r} is no rate at a threshold{meant} Known are {', '.join(known)}")


def average_precision(counts: Floats) -> Functional:
    """The precision at the score of every positive, averaged over the positives.

    Half of a cell's records are assumed to reach the score of a positive in it:
    ``sum_j p_j TP_j / (TP_j + FP_j) / P`` with TP and FP counted from the cell's middle. For scores
    without ties that is the step-wise area under the precision-recall curve, up to the square of
    the cells' width and to the half of a record by which a positive counts itself there. Negative
    counts are used as they are: noise clipped at zero would look like records.

    Examples
    --------
    >>> import numpy as np
    >>> average_precision(np.array([[0.0, 1.0], [1.0, 0.0]])).value.tolist()
    [1.0]
    """
    positives, negatives = counts
    won, lost = (above_middle(class_counts) for class_counts in (positives, negatives))
    called, total = won + lost, positives.sum()
    if total <= 0:
        return Functional(np.full(1, np.nan), np.full((1, *counts.shape), np.nan))
    known = np.where(called > 0, called, 1.0)
    precision_by_cell = np.where(called > 0, won / known, 0.0)
    value = np.sum(positives * precision_by_cell) / total
    gain, loss = (_to_middle(positives * reached / known**2) for reached in (lost, won))
    gradient = np.stack([precision_by_cell - value + gain, -loss]) / total
    return Functional(np.array([value]), gradient[np.newaxis])


def _to_middle(cells: Floats) -> Floats:
    """The records below the middle of every cell."""
    return np.cumsum(cells) - cells / 2
