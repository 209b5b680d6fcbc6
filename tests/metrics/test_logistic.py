"""Calibration intercept and slope from cells, against scikit-learn and under noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from tacit.arrays import Floats
from tacit.metrics.logistic import calibration_line
from tests import known

ODDS = np.linspace(-4, 4, 33)


def counts(intercept: float, slope: float, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    totals = rng.poisson(400 * np.exp(-(ODDS**2) / 4))
    positives = rng.binomial(totals, expit(intercept + slope * ODDS))
    return positives.astype(np.float64), (totals - positives).astype(np.float64)


def silent(weights: Floats) -> float:
    return 0.0


def test_without_noise_the_line_is_that_of_logistic_regression() -> None:
    positives, negatives = counts(0.3, 0.8)
    line = known(calibration_line(ODDS, positives, negatives, silent))
    intercept, slope = line
    fitted = LogisticRegression(C=np.inf, tol=1e-10).fit(
        np.tile(ODDS, 2)[:, np.newaxis],
        np.repeat([1, 0], ODDS.size),
        np.concatenate([positives, negatives]),
    )
    assert slope.value == pytest.approx(float(fitted.coef_[0, 0]), abs=1e-4)
    assert slope.privacy_error == 0.0
    # with the slope 1 as many positives are expected as there are
    expected = expit(intercept.value + ODDS) @ (positives + negatives)
    assert expected == pytest.approx(positives.sum(), rel=1e-9)


@pytest.mark.parametrize("factor", [1.0, 0.7, 1.3])
def test_the_error_by_noise_is_the_stated_one(factor: float) -> None:
    """400 repetitions know a standard deviation to 3.5 %: 15 % off is 4 errors."""
    positives, negatives = counts(0.3, 0.8)
    exact = known(calibration_line(ODDS, positives, negatives, silent))
    rng, deviation = np.random.default_rng(3), 12.0
    errors = []
    for _ in range(400):
        first, second = (
            each + factor * deviation * rng.normal(size=ODDS.size)
            for each in (positives, negatives)
        )
        line = known(calibration_line(ODDS, first, second, lambda w: deviation**2 * float(w @ w)))
        errors.append(
            [(a.value - b.value) / a.privacy_error for a, b in zip(line, exact, strict=True)]
        )
    spread = np.std(errors, axis=0)
    assert np.all(np.abs(spread / factor - 1) < 0.15), spread
    assert (factor == 1.0) == bool(np.all(np.abs(spread - 1) < 0.15))


def test_noise_that_leaves_no_line_gives_none() -> None:
    positives, negatives = counts(0.3, 0.8)
    assert (
        calibration_line(ODDS, positives / 100, negatives / 100, lambda w: 1e4 * float(w @ w))
        is None
    )


def test_cells_whose_log_odds_are_infinite_have_a_line() -> None:
    positives, negatives = counts(0.3, 0.8)
    odds = np.concatenate([[-np.inf], ODDS[1:-1], [np.inf]])
    assert calibration_line(odds, positives, negatives, silent) is not None
