"""Platt scaling: a logistic map of scores, from counts in score cells."""

from __future__ import annotations

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.calibrating.calibration import require_signal
from tacit.metrics.cells.binning import Buckets, ScoreCells, bucket_means, finest_starts

CLIP = 1e-6
"""Least distance of a score from 0 and 1 when its log-odds are taken."""


def platt(cells: ScoreCells) -> tuple[float, float]:
    """Platt scaling (Platt 1999) on log-odds: slope a and intercept b of ``expit(a logit(s) + b)``.

    For scores that are probabilities log-odds replace the margin, so that the family
    holds the identity, a = 1 and b = 0; scores are clipped ``CLIP`` away from 0 and 1. The weighted
    likelihood of bucket counts is maximised with Platt's targets: ``(P + 1) / (P + 2)`` for
    positives, ``1 / (N + 2)`` for negatives, P and N the class totals, which keep a and b finite.
    Buckets are those of ``isotonic``, each at the mean log-odds of its records. A single bucket
    does not determine the slope; a is then 1.

    Raises
    ------
    ValueError : when the counts' total is below ``MIN_SIGNAL`` standard deviations of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> cells = ScoreCells(np.array([0, 0.5, 1]), np.array([250, 750]), np.array([750, 250]))
    >>> slope, intercept = platt(cells)
    >>> round(slope, 2), round(abs(intercept), 6)
    (1.0, 0.0)
    """
    require_signal(cells)
    starts = finest_starts(cells)
    buckets = Buckets.of(cells, starts)
    odds = bucket_means(cells.totals, log_odds(cells.predicted), starts)
    positives = buckets.positive_fractions * buckets.totals
    negatives = buckets.totals - positives
    high, low = (positives.sum() + 1) / (positives.sum() + 2), 1 / (negatives.sum() + 2)
    target = (high * positives + low * negatives) / buckets.totals
    weights = buckets.totals / buckets.totals.sum()
    if starts.size == 1:
        return 1.0, float(scipy.special.logit(target[0]) - odds[0])
    return _logistic_fit(odds, target, weights)


def log_odds(scores: Floats) -> Floats:
    """``log(s / (1 - s))``, scores clipped to ``CLIP`` from 0 and 1."""
    return scipy.special.logit(np.clip(scores, CLIP, 1 - CLIP))


def _logistic_fit(odds: Floats, target: Floats, weights: Floats) -> tuple[float, float]:
    """Slope and intercept of the weighted maximum likelihood, by trust-region Newton steps."""
    design = np.stack((odds, np.ones_like(odds)))

    def loss(point: Floats) -> float:
        line = point @ design
        return float(np.sum(weights * (np.logaddexp(0.0, line) - target * line)))

    def slope(point: Floats) -> Floats:
        return design @ (weights * (scipy.special.expit(point @ design) - target))

    def curvature(point: Floats) -> Floats:
        probability = scipy.special.expit(point @ design)
        return (design * (weights * probability * (1 - probability))) @ design.T

    start = np.array([1.0, 0.0])
    exact = {"method": "trust-exact", "jac": slope, "hess": curvature, "tol": 1e-10}
    optimum = scipy.optimize.minimize(loss, start, **exact)
    return float(optimum.x[0]), float(optimum.x[1])
