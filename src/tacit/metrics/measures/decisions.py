"""Figures of one threshold beside the rates: negative predictive value and likelihood ratios."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both, ratio


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
