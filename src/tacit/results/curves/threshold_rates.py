"""Rates at every threshold that a result knows, for its JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tacit.arrays import Floats
from tacit.results.curves.bands import Band, Numbers, numbers
from tacit.results.curves.curve import Curve

RATES = ("precision", "recall", "specificity", "accuracy", "f1")


def rates_entry(thresholds: Floats, rates: Mapping[str, Band]) -> dict[str, Numbers]:
    """The ``rates`` entry of a result: each rate at each threshold with its 95 % interval.

    Parameters
    ----------
    thresholds : ascending, shape (T,).
    rates : the bands of ``RATES`` by name, each of shape (T,).
    """
    entry = {"thresholds": numbers(thresholds)}
    for name in RATES:
        low, high = rates[name].limits()
        entry |= {
            name: numbers(rates[name].value),
            f"{name}_low": numbers(low),
            f"{name}_high": numbers(high),
        }
    return entry


def rates_of_curve(curve: Curve, positives: float, negatives: float) -> dict[str, Band]:
    """The rates that follow from a ROC curve and the estimated sizes of both classes.

    Recall and specificity are the curve's own coordinates, with their errors. The others need the
    class sizes too, whose errors go with the curve's in a way that a curve does not say: they are
    given without an error, and without a value where a class size is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> half, none = np.array([0.5]), np.zeros(1)
    >>> curve = Curve(half, np.array([0.1]), np.array([0.8]), none, none)
    >>> rates = rates_of_curve(curve, 100, 800)
    >>> [round(float(rates[name].value[0]), 3) for name in RATES]
    [0.5, 0.8, 0.9, 0.889, 0.615]
    """
    up = np.clip(curve.true_positive_rate, 0.0, 1.0)
    across = np.clip(curve.false_positive_rate, 0.0, 1.0)
    known = positives > 0 and negatives > 0
    positive_count, negative_count = (positives, negatives) if known else (math.nan, math.nan)
    called = positive_count * up + negative_count * across
    right = positive_count * up + negative_count * (1 - across)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(called > 0, positive_count * up / called, np.nan)
    return {
        "precision": _without_error(precision),
        "recall": curve.band.within(),
        "specificity": _specificity(curve),
        "accuracy": _without_error(right / (positive_count + negative_count)),
        "f1": _without_error(2 * positive_count * up / (called + positive_count)),
    }


def _specificity(curve: Curve) -> Band:
    sampling = curve.false_positive_sampling
    known = np.zeros_like(curve.false_positive_rate) if sampling is None else sampling
    return Band(1 - curve.false_positive_rate, curve.false_positive_error, known).within()


def _without_error(value: Floats) -> Band:
    unknown = np.full_like(value, np.nan)
    return Band(value, unknown, unknown)
