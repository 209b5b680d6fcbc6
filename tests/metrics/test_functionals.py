"""Figures of counts against their definitions, and gradients against differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from tacit.arrays import Floats
from tacit.metrics import functional, logistic, operating_points
from tacit.metrics.functional import Functional, prevalence
from tacit.results.measures import smooth_calibration

CELLS = 16
MIDDLES = (np.arange(CELLS) + 0.5) / CELLS
ODDS = logit(MIDDLES)
ABOVE = (np.arange(CELLS) >= 5).astype(float)[np.newaxis]
ALL, POSITIVES, NEGATIVES = np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0])


def some_counts(seed: int = 0) -> Floats:
    """Counts of a model that is no better calibrated than most."""
    source = np.random.default_rng(seed)
    share = expit(0.5 + 1.4 * ODDS)
    totals = source.integers(20, 200, CELLS)
    positives = source.binomial(totals, share)
    return np.stack([positives, totals - positives]).astype(np.float64)


def records(counts: Floats) -> tuple[Floats, Floats]:
    """The records that the counts are of, each at its cell's middle."""
    whole = counts.astype(np.int64)
    scores = np.concatenate([np.repeat(MIDDLES, whole[0]), np.repeat(MIDDLES, whole[1])])
    return scores, np.repeat([1.0, 0.0], whole.sum(axis=1))


def known(figure: Functional | None) -> Functional:
    assert figure is not None
    return figure


SMOOTH_FIGURES: dict[str, Callable[[Floats], Functional]] = {
    "prevalence": prevalence,
    "net benefit": lambda c: functional.net_benefit(c, ABOVE, np.array([0.2])),
    "net benefit of all": lambda c: functional.treat_all(c, np.array([0.2])),
    "ppv": lambda c: functional.positive_predictive_value(c, ABOVE),
    "npv": lambda c: functional.negative_predictive_value(c, ABOVE),
    "sensitivity": lambda c: functional.sensitivity(c, ABOVE),
    "specificity": lambda c: functional.specificity(c, ABOVE),
    "lr+": lambda c: functional.positive_likelihood_ratio(c, ABOVE),
    "accuracy": lambda c: functional.accuracy(c, ABOVE),
    "f1": lambda c: functional.f1(c, ABOVE),
    "lr-": lambda c: functional.negative_likelihood_ratio(c, ABOVE),
    "brier": lambda c: functional.brier(c, MIDDLES),
    "scaled brier": lambda c: functional.scaled_brier(c, MIDDLES),
    "log loss": lambda c: functional.log_loss(c, ODDS),
    "normalised entropy": lambda c: functional.normalised_entropy(c, ODDS),
    "intercept": lambda c: known(logistic.calibration_intercept(c, ODDS)),
    "slope": lambda c: known(logistic.calibration_slope(c, ODDS)),
    "intercept beside": lambda c: known(logistic.intercept_beside_slope(c, ODDS)),
    "o/e": lambda c: logistic.observed_over_expected(c, MIDDLES),
    "ratio": lambda c: logistic.calibration_ratio(c, MIDDLES, ABOVE),
    "partial auc": lambda c: operating_points.partial_auc(c, 0.1),
    "separation": lambda c: operating_points.separation(c, np.array([6.0])),
}


@pytest.mark.parametrize("name", SMOOTH_FIGURES)
def test_a_gradient_is_the_change_by_one_record(name: str) -> None:
    figure, counts = SMOOTH_FIGURES[name], some_counts()
    made = figure(counts)
    assert float(np.sum(made.gradient[0] * counts)) == pytest.approx(0, abs=1e-9)
    for row, cell in [(0, 2), (1, 2), (0, 7), (1, 7), (0, 14), (1, 14)]:
        step = np.zeros_like(counts)
        step[row, cell] = 1e-3
        change = (figure(counts + step).value[0] - figure(counts - step).value[0]) / 2e-3
        assert made.gradient[0, row, cell] == pytest.approx(change, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.35])
@pytest.mark.parametrize(("fixed", "read"), [(NEGATIVES, POSITIVES), (ALL, POSITIVES)])
def test_a_rate_at_a_rate_follows_a_moved_mass(share: float, fixed: Floats, read: Floats) -> None:
    """The slope is that of normal scores: much moved mass changes the figure as it says, about."""
    counts, shares, errors = 100 * some_counts(), np.array([share]), np.zeros(1)
    made = operating_points.rate_at_rate(counts, fixed, read, shares, errors)
    moved = np.zeros_like(counts)
    moved[:, 1], moved[:, 14] = (200.0, 100.0), (100.0, 300.0)
    again = operating_points.rate_at_rate(counts + moved, fixed, read, shares, errors)
    change = float(np.sum(made.gradient[0] * moved))
    assert again.value[0] - made.value[0] == pytest.approx(change, rel=0.25, abs=2e-4)


@pytest.mark.parametrize(("fixed", "read"), [(NEGATIVES, POSITIVES), (ALL, POSITIVES)])
def test_a_rates_steps_are_those_of_the_records_that_a_threshold_passes(
    fixed: Floats, read: Floats
) -> None:
    """How far the figure departs from its slope between two given parts, over 800 draws of records.

    The ratio of variances has a standard error of 0.05: it leaves 0.75 to 1.25 by chance with a
    probability below 1e-5, and errors 30 % off give 0.49 or 1.69, missed with less than 1e-6.
    """
    source, step = np.random.default_rng(1), 0.06
    means = np.stack([np.linspace(2.0, 8.0, 300), np.full(300, 10.0)])
    shares = np.array([0.3 - step / 2, 0.3, 0.3 + step / 2])
    # the mean size of a normal error of this deviation is the step
    errors = np.full(3, step / np.sqrt(2 / np.pi))
    smooth = operating_points.rate_at_rate(means, fixed, read, shares, errors)
    rough = np.zeros(3) if smooth.rough is None else smooth.rough
    draws = [
        operating_points.rate_at_rate(
            source.poisson(means).astype(float), fixed, read, shares, errors
        ).value
        for _ in range(800)
    ]
    risen = np.diff(np.array(draws)[:, [0, 2]], axis=-1)
    assert float(np.var(risen)) / rough[1] ** 2 == pytest.approx(1.0, abs=0.25)


@given(st.floats(0.01, 0.99), st.integers(0, 20))
def test_net_benefit_is_its_definition(threshold: float, seed: int) -> None:
    counts = some_counts(seed)
    scores, labels = records(counts)
    above = (threshold <= MIDDLES).astype(float)[np.newaxis]
    treated = scores >= threshold
    odds = threshold / (1 - threshold)
    won, lost = np.sum(treated & (labels == 1)), np.sum(treated & (labels == 0))
    made = functional.net_benefit(counts, above, np.array([threshold]))
    assert made.value[0] == pytest.approx((won - lost * odds) / labels.size, abs=1e-12 * (1 + odds))


def test_losses_are_those_of_scikit_learn() -> None:
    counts = some_counts()
    scores, labels = records(counts)
    assert functional.brier(counts, MIDDLES).value[0] == pytest.approx(
        brier_score_loss(labels, scores), rel=1e-12
    )
    assert functional.log_loss(counts, ODDS).value[0] == pytest.approx(
        log_loss(labels, scores), rel=1e-12
    )


def test_the_standardised_partial_area_is_that_of_scikit_learn() -> None:
    counts = some_counts()
    scores, labels = records(counts)
    made = operating_points.standardised(operating_points.partial_auc(counts, 0.1), 0.1)
    assert made.value[0] == pytest.approx(roc_auc_score(labels, scores, max_fpr=0.1), rel=1e-9)


def test_a_logistic_fit_solves_its_equations() -> None:
    counts = some_counts()
    design = np.stack([np.ones(CELLS), ODDS])
    fit = logistic.logistic_fit(counts, design)
    assert fit is not None
    residual = counts[0] - counts.sum(axis=0) * fit.fitted
    assert np.abs(design @ residual).max() < 1e-8


def test_counts_without_information_have_no_fit() -> None:
    assert logistic.calibration_slope(-some_counts(), ODDS) is None


def test_a_smooth_curve_through_a_line_is_that_line() -> None:
    share, totals = expit(0.3 + 0.8 * ODDS), np.full(CELLS, 1000.0)
    fitted = smooth_calibration.smooth_calibration(
        np.stack([totals * share, totals * (1 - share)]), ODDS
    )
    assert fitted is not None
    assert expit(fitted.observed_log_odds(ODDS).value) == pytest.approx(share, abs=1e-8)


def test_distances_are_weighted_quantiles_and_means() -> None:
    found = smooth_calibration.distances(
        np.zeros((1, 1)), np.ones((1, 4)), np.array([0.1, 0.3, 0.45, 0.5]), np.full(4, 0.25)
    )
    assert found[:, 0] == pytest.approx([0.1625, 0.05, 0.4, 0.4])


def test_records_that_are_spread_evenly_have_the_distances_of_equal_weights() -> None:
    """Of 15 records a median and a 90th percentile are records themselves."""
    source = np.random.default_rng(0)
    log_odds = np.linspace(-3, 2, 15)
    design = smooth_calibration.spline(log_odds, np.array([-2.0, 0.0, 1.0]))
    coefficients = source.normal(size=(20, 3))
    found = smooth_calibration.even_distances(coefficients, design, expit(log_odds))
    naive = smooth_calibration.distances(coefficients, design, expit(log_odds), np.full(15, 1 / 15))
    np.testing.assert_allclose(found, naive, rtol=1e-12)


@pytest.mark.parametrize("threshold", [-0.1, 1.0, np.nan])
def test_a_threshold_of_a_net_benefit_is_a_probability(threshold: float) -> None:
    with pytest.raises(ValueError, match=r"must be in \[0, 1\), got"):
        functional.odds(np.array([threshold]))
