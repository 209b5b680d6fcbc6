"""Calibration intercept and slope from noisy counts in cells of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy

from tacit.arrays import Floats

LARGEST_WEIGHT = 4.0
"""Log-odds beyond which a cell weighs no more in the slope's equation: noise in the many cells at
the ends would outweigh the records."""

STEPS, PRECISION = 50, 1e-10
SUFFICIENT = 4.0
"""Least curvature of the equations in standard errors of its noise; below it they do not determine
the line, and their linearisation fails."""

Variance = Callable[[Floats], float]
"""The variance by noise of a weighted sum of a class's cells, from weights of shape (B,)."""


@dataclass(frozen=True)
class Fitted:
    """A coefficient with its errors, each a standard deviation."""

    value: float
    privacy_error: float
    sampling_error: float


@dataclass(frozen=True, eq=False)
class CalibrationLine:
    """The logistic line ``P(y = 1) = expit(a + b x)`` of the log-odds x of the score.

    Parameters
    ----------
    intercept : a where b is 1, the calibration in the large.
    slope : b where a is free.
    """

    intercept: Fitted
    slope: Fitted


def calibration_line(
    odds: Floats, positives: Floats, negatives: Floats, variance: Variance
) -> CalibrationLine | None:
    """Intercept and slope (Cox 1958; Van Calster et al. 2016); None where noise leaves none.

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
    >>> round(line.slope.value, 6), abs(round(line.intercept.value, 6))
    (0.5, 0.0)
    """
    both = np.stack([np.ones_like(odds), odds])
    only = _solved(odds, both[:1], positives, negatives, variance)
    line = _solved(odds, both, positives, negatives, variance)
    return None if only is None or line is None else CalibrationLine(only, line)


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
            return _with_errors(float(point[-1]), influence, fitted, positives, negatives, variance)
    return None


def _is_determined(curvature: Floats, weights: Floats, variance: Variance) -> bool:
    """Whether the last diagonal entry stands clear of its noise, which both classes add to."""
    clear = curvature[-1, -1] > SUFFICIENT * np.sqrt(2 * variance(weights))
    return bool(clear and np.linalg.det(curvature) > 0)


def _with_errors(
    value: float,
    influence: Floats,
    fitted: Floats,
    positives: Floats,
    negatives: Floats,
    variance: Variance,
) -> Fitted:
    by_positive, by_negative = influence * (1 - fitted), -influence * fitted
    noise = variance(by_positive) + variance(by_negative)
    sampling = float(positives @ by_positive**2 + negatives @ by_negative**2)
    return Fitted(value, float(np.sqrt(noise)), float(np.sqrt(max(sampling, 0.0))))
