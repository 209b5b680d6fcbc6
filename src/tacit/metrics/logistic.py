"""Logistic regressions on scores, from counts in cells: Platt scaling, and calibration lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.calibration import require_signal
from tacit.metrics.cells.binning import Buckets, ScoreCells, bucket_means, finest_starts
from tacit.metrics.functional import Functional, both, ratio

CLIP = 1e-6
"""Least distance of a score from 0 and 1 when its log-odds are taken."""


MOST_LOG_ODDS = 30.0
"""Largest size of the log-odds that a cell states; the outermost cells may have no last score."""


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


LARGEST_WEIGHT = 4.0
"""Log-odds beyond which a cell weighs no more in the slope's equation: noise in the many cells at
the ends would outweigh the records."""

STEPS, PRECISION = 50, 1e-10
SUFFICIENT = 4.0
"""Least curvature of the equations in standard errors of its noise; below it they do not determine
the line, and their linearisation fails."""

Variance = Callable[[Floats], float]
"""The variance by noise of a weighted sum of a class's cells, from weights of shape (B,)."""


class Fitted(NamedTuple):
    """A coefficient with its errors, each a standard deviation."""

    value: float
    privacy_error: float
    sampling_error: float


def calibration_line(
    odds: Floats, positives: Floats, negatives: Floats, variance: Variance
) -> tuple[Fitted, Fitted] | None:
    """Intercept and slope (Cox 1958; Van Calster et al. 2016); None where noise leaves none.

    In the logistic line ``P(y = 1) = expit(a + b x)`` of the log-odds x of the score, the intercept
    is a where b is 1, the calibration in the large; the slope is b where a is free.

    The equations ``sum_j (p_j - t_j expit(a + b x_j)) z_j = 0`` with ``z = (1, clip(x))`` hold on
    average for the true line whatever z is, and they are linear in the counts, so noise leaves them
    unbiased. With the curvature ``H = sum t m (1 - m) z x'`` and m the fitted probability, a
    positive in cell j moves the solution by ``H^-1 z_j (1 - m_j)``, a negative by
    ``-H^-1 z_j m_j``. Sampling has the variance ``sum p w^2 + sum n w^2`` of these weights w.

    Parameters
    ----------
    odds : the log-odds of each cell's score, shape (B,).
    positives, negatives : the noisy counts, shape (B,).
    variance : of a weighted sum of either class's noise.

    Examples
    --------
    >>> odds = np.array([-1.0, 0.0, 1.0])
    >>> positives = 1000 * scipy.special.expit(0.5 * odds)
    >>> line = calibration_line(odds, positives, 1000 - positives, lambda weights: 0.0)
    >>> intercept, slope = line
    >>> round(slope.value, 6), abs(round(intercept.value, 6))
    (0.5, 0.0)
    """
    odds = np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)
    both = np.stack([np.ones_like(odds), odds])
    only = _solved(odds, both[:1], positives, negatives, variance)
    line = _solved(odds, both, positives, negatives, variance)
    return None if only is None or line is None else (only, line)


def _solved(
    odds: Floats, design: Floats, positives: Floats, negatives: Floats, variance: Variance
) -> Fitted | None:
    """The last coefficient; with one row of the design the slope is 1."""
    weighed = np.clip(design, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    fixed = odds if design.shape[0] == 1 else np.zeros_like(odds)
    totals = positives + negatives
    point = np.zeros(1) if design.shape[0] == 1 else np.array([0.0, 1.0])
    for _ in range(STEPS):
        fitted = scipy.special.expit(fixed + point @ design)
        residual = weighed @ (positives - totals * fitted)
        curved = fitted * (1 - fitted)
        curvature = (weighed * (totals * curved)) @ design.T
        if not _is_determined(curvature, weighed[-1] * curved * design[-1], variance):
            return None
        step = np.clip(np.linalg.solve(curvature, residual), -1.0, 1.0)
        point = point + step
        if np.abs(step).max() < PRECISION:
            influence = np.linalg.solve(curvature, weighed)[-1]
            by_positive, by_negative = influence * (1 - fitted), -influence * fitted
            noise = variance(by_positive) + variance(by_negative)
            sampling = float(positives @ by_positive**2 + negatives @ by_negative**2)
            errors = float(np.sqrt(noise)), float(np.sqrt(max(sampling, 0.0)))
            return Fitted(float(point[-1]), *errors)
    return None


def _is_determined(curvature: Floats, weights: Floats, variance: Variance) -> bool:
    """Whether the last diagonal entry stands clear of its noise, which both classes add to."""
    clear = curvature[-1, -1] > SUFFICIENT * np.sqrt(2 * variance(weights))
    return bool(clear and np.linalg.det(curvature) > 0)


MOST_STEPS = 50
TOLERANCE = 1e-12
LEAST_CURVATURE = 1e-9
"""Least ratio of the smallest to the largest eigenvalue of the scaled curvature."""


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients that maximise the likelihood of the labels, with their dependence on the counts.

    Parameters
    ----------
    coefficients : shape (D,).
    gradient : of every coefficient, shape (D, 2, B).
    inverse : the inverse of the curvature of minus the log-likelihood, shape (D, D).
    fitted : the fitted probability of every cell, shape (B,).
    base : the weights of the sum that each coefficient divides by, shape (D, 2, B): its own part of
        the curvature, ``sum t z^2 q (1 - q) = 1 / inverse[d, d]`` with z its term less what the
        other terms explain.
    """

    coefficients: Floats
    gradient: Floats
    inverse: Floats
    fitted: Floats
    base: Floats


def logistic_fit(
    counts: Floats, design: Floats, offset: Floats | float = 0.0
) -> LogisticFit | None:
    """Solve ``sum_j x_j (p_j - t_j expit(x_j b + offset_j)) = 0`` by Newton steps.

    The equation is linear in the counts for every b, so noise leaves it unbiased. The implicit
    function theorem gives the coefficients' gradient: a record with the label y adds
    ``H^-1 x (y - expit(x b))``, H the curvature ``sum t x x' q (1 - q)``.

    Parameters
    ----------
    counts : shape (2, B); noisy ones may be negative.
    design : shape (D, B).
    offset : a term whose coefficient is 1, shape (B,).

    Returns
    -------
    LogisticFit, or None where the curvature is not positive or Newton's steps do not end.
    """
    positives, totals = counts[0], counts.sum(axis=0)
    point = np.zeros(design.shape[0])
    for _ in range(MOST_STEPS):
        fitted = scipy.special.expit(point @ design + offset)
        score = design @ (positives - totals * fitted)
        curvature = (design * (totals * fitted * (1 - fitted))) @ design.T
        if not _is_positive(curvature):
            return None
        step = np.linalg.solve(curvature, score)
        # steps are shortened to 2 in any coefficient: far starts overshoot
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        point = point + step
        if np.abs(step).max() < TOLERANCE:
            break
    else:
        return None
    inverse = np.linalg.inv(curvature)
    each = inverse @ design
    gradient = both(each * (1 - fitted), -each * fitted)
    # z = (inverse x)_d / inverse[d, d], the residual of term d by the others
    residual = each / np.diag(inverse)[:, np.newaxis]
    base = residual**2 * fitted * (1 - fitted)
    return LogisticFit(point, gradient, inverse, fitted, both(base, base))


def calibration_slope(counts: Floats, log_odds: Floats) -> Functional | None:
    """The slope b of ``logit P = a + b logit s`` (Cox 1958); None where no fit exists."""
    fit = line_fit(counts, log_odds)
    return None if fit is None else Functional(fit.coefficients[1:], fit.gradient[1:], fit.base[1:])


def intercept_beside_slope(counts: Floats, log_odds: Floats) -> Functional | None:
    """The intercept a of the same line; it is known no better than the slope that it stands by."""
    fit = line_fit(counts, log_odds)
    return None if fit is None else Functional(fit.coefficients[:1], fit.gradient[:1], fit.base[1:])


def calibration_intercept(counts: Floats, log_odds: Floats) -> Functional | None:
    """The intercept a of ``logit P = a + logit s``, the slope held at 1: calibration in the large.

    None where no fit exists.
    """
    fit = logistic_fit(counts, np.ones((1, log_odds.size)), log_odds)
    return None if fit is None else Functional(fit.coefficients, fit.gradient, fit.base)


def line_fit(counts: Floats, log_odds: Floats) -> LogisticFit | None:
    """The logistic line of the labels on the stated log-odds; None where no fit exists."""
    return logistic_fit(counts, np.stack((np.ones_like(log_odds), log_odds)))


def observed_over_expected(counts: Floats, predicted: Floats) -> Functional:
    """The number of positives over the sum of the stated probabilities."""
    ones, stated = np.ones((1, predicted.size)), predicted[np.newaxis]
    return ratio(counts, both(ones, 0.0), both(stated, stated))


def calibration_ratio(counts: Floats, predicted: Floats, members: Floats) -> Functional:
    """The sum of the stated probabilities over the positives, among the records of some cells.

    Parameters
    ----------
    counts : shape (2, B).
    predicted : shape (B,), or (T, B) where it depends on the part.
    members : the part of each cell that counts, shape (T, B).

    Examples
    --------
    >>> counts = np.array([[1.0, 3.0], [3.0, 1.0]])
    >>> calibration_ratio(counts, np.array([0.5, 0.75]), np.ones((1, 2))).value.tolist()
    [1.25]
    """
    return ratio(counts, both(members * predicted, members * predicted), both(members, 0.0))


def _is_positive(curvature: Floats) -> bool:
    """Whether a curvature has no direction without information."""
    diagonal = np.diag(curvature)
    if not (np.isfinite(curvature).all() and (diagonal > 0).all()):
        return False
    scale = 1 / np.sqrt(diagonal)
    values = np.linalg.eigvalsh(curvature * scale * scale[:, np.newaxis])
    return bool(values[0] > LEAST_CURVATURE * values[-1])
