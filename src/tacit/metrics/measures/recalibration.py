"""Logistic regressions of labels on what scores state, from counts in cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from tacit.arrays import Floats
from tacit.metrics.measures.functional import Functional, both, ratio

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
