"""Figures of counts against their definitions, and gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn import metrics as sklearn

from tacit import binormal_scores
from tacit.arrays import Floats
from tacit.metrics import functional, logistic, operating_points
from tacit.results.measures import smooth_calibration
from tests import known

CELLS = 16
MIDDLES = (np.arange(CELLS) + 0.5) / CELLS
ODDS = logit(MIDDLES)
ABOVE = np.clip(np.arange(CELLS) - 3.7, 0.0, 1.0)[np.newaxis]
"""A threshold that cuts the cell of index 4."""
ALL, POSITIVES, NEGATIVES = np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0])


def some_counts(seed: int = 0) -> Floats:
    """Counts of a model that is no better calibrated than most."""
    source = np.random.default_rng(seed)
    share = expit(0.5 + 1.4 * ODDS)
    totals = source.integers(20, 200, CELLS)
    positives = source.binomial(totals, share)
    return np.stack([positives, totals - positives]).astype(np.float64)


def records(counts: Floats, places: Floats = MIDDLES) -> tuple[Floats, NDArray[np.int64]]:
    """The scores of the records that the counts are of, one score a cell, and their labels."""
    whole = counts.astype(np.int64)
    scores = np.concatenate([np.repeat(places, row) for row in whole])
    return scores, np.repeat([1, 0], whole.sum(axis=1))


FIGURES: dict[str, Callable[[Floats], functional.Functional]] = {
    "prevalence": functional.prevalence,
    **{name: lambda c, rate=rate: rate(c, ABOVE) for name, rate in functional.RATES.items()},  # type: ignore[misc]
    "average precision": functional.average_precision,
    "net benefit": lambda c: functional.net_benefit(c, ABOVE, np.array([0.2])),
    "net benefit of all": lambda c: functional.treat_all(c, np.array([0.2])),
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


@pytest.mark.parametrize("name", FIGURES)
def test_a_gradient_is_the_change_by_one_record(name: str) -> None:
    figure, counts = FIGURES[name], some_counts()
    made = figure(counts)
    assert made.gradient.shape == (1, 2, CELLS)
    assert float(np.sum(made.gradient[0] * counts)) == pytest.approx(0, abs=1e-9)
    for row, cell in [(0, 2), (1, 2), (0, 4), (1, 4), (0, 7), (1, 7), (0, 14), (1, 14)]:
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
def test_steps_are_those_of_records_that_a_threshold_passes(fixed: Floats, read: Floats) -> None:
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


def test_losses_and_the_standardised_partial_area_are_those_of_scikit_learn() -> None:
    counts = some_counts()
    scores, labels = records(counts)
    partial = operating_points.standardised_partial_auc(counts, 0.1)
    for made, expected in (
        (functional.brier(counts, MIDDLES), sklearn.brier_score_loss(labels, scores)),
        (functional.log_loss(counts, ODDS), sklearn.log_loss(labels, scores)),
        (partial, sklearn.roc_auc_score(labels, scores, max_fpr=0.1)),
    ):
        assert made.value[0] == pytest.approx(expected, rel=1e-9)


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


EDGES = np.linspace(0.0, 1.0, 9)
REFERENCES: dict[str, Callable[[Any, Any], float]] = {
    "positive_predictive_value": sklearn.precision_score,
    "sensitivity": sklearn.recall_score,
    "specificity": lambda labels, called: sklearn.recall_score(labels, called, pos_label=0),
    "accuracy": sklearn.accuracy_score,
    "f1": sklearn.f1_score,
}


def test_a_threshold_takes_its_part_of_the_cell_that_it_cuts() -> None:
    edges = np.array([0.0, 0.2, 1.0])
    fractions = functional.reaching(edges, np.array([0.0, 0.05, 0.2, 0.6, 1.0]))
    expected = np.array([[1, 1], [0.75, 1], [0, 1], [0, 0.5], [0, 0]])
    np.testing.assert_allclose(fractions, expected)


def test_rates_of_nothing_are_unknown() -> None:
    counts = np.array([[0.0, 3.0], [0.0, 0.0]])
    above = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert np.isnan(functional.specificity(counts, above).value).all()
    assert functional.sensitivity(counts, above).value.tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(
        functional.positive_predictive_value(counts, above).value, [1.0, np.nan]
    )
    np.testing.assert_array_equal(
        functional.positive_predictive_value(counts, np.eye(2)).value, [np.nan, 1.0]
    )
    assert np.isnan(functional.average_precision(np.zeros((2, 4))).value)


@pytest.mark.parametrize(
    ("separation", "times", "error"), [(0.6, 1, 1e-3), (0.95, 1, 1e-3), (0.8, 100, 5e-5)]
)
def test_average_precision_is_that_of_sklearn(separation: float, times: int, error: float) -> None:
    """Scores without ties in 4,096 cells: 10,000 records, and a million.

    A positive counts itself among those that reach its score, in a cell half of them: up to 7e-4
    with 10,000 records, and a hundredth of that with a million, where cells hide up to 3e-5.
    """
    scores, labels = binormal_scores(3000 * times, 7000 * times, separation, seed=1)
    edges = np.linspace(0, 1, 4097)
    counts = np.stack([np.histogram(scores[labels == own], edges)[0] for own in (1, 0)])
    exact = sklearn.average_precision_score(labels, scores)
    computed_precision = float(functional.average_precision(counts.astype(np.float64)).value[0])
    assert computed_precision == pytest.approx(exact, abs=error)


@pytest.mark.parametrize("rate", [functional.sensitivity, functional.specificity])
def test_the_sampling_error_of_a_share_is_that_of_a_binomial_one(
    rate: Callable[[Floats, Floats], functional.Functional],
) -> None:
    """Those of other figures follow from their gradients in the same way."""
    counts = some_counts()
    made = rate(counts, ABOVE.round())
    records = counts[0 if rate is functional.sensitivity else 1].sum()
    expected = np.sqrt(made.value * (1 - made.value) / records)
    assert made.sampling_error(counts) == pytest.approx(expected, rel=1e-12)


def test_noise_in_empty_cells_is_not_taken_for_records() -> None:
    """Errors of 200 noisy tables of 1,024 cells with 500 records: the exact one within 10 %."""
    rng = np.random.default_rng(0)
    counts = np.zeros((2, 1024))
    counts[0, 300:1000:7], counts[1, 100:900:2] = 1, 1
    above = functional.reaching(np.linspace(0, 1, 1025), np.array([0.5]))
    exact = float(functional.sensitivity(counts, above).sampling_error(counts)[0])
    errors = []
    for _ in range(200):
        noisy = counts + rng.normal(0, 0.5, counts.shape)
        errors.append(float(functional.sensitivity(noisy, above).sampling_error(noisy)[0]))
    assert np.mean(errors) == pytest.approx(exact, rel=0.1)


def test_both_fields_names_are_known() -> None:
    assert {
        functional.rate_name(name) for name in functional.OTHER_NAMES
    } <= functional.RATES.keys()
    assert functional.rate_name("Positive predictive value") == functional.rate_name("precision")
    with pytest.raises(KeyError, match=r"did you mean 'accuracy'.*sensitivity, .*ppv"):
        functional.rate_name("acuracy")


REACH = 1.959964
DRAWS = 200_000


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.6])
def test_the_interval_holds_a_quotient_whose_denominator_is_noisy(correlation: float) -> None:
    """The coverage of 95 % is known to 0.05 points, and is held to 0.3.

    It fails by chance with a probability below 1e-8. Errors 30 % too small cover 83 %, and 30 % too
    large 99 %: both are missed with a probability below 1e-9.
    """
    source = np.random.default_rng(0)
    above, below, error, noise = 3.0, 10.0, 1.0, 2.0
    first, second = source.standard_normal((2, DRAWS))
    upper = above + error * (correlation * first + np.sqrt(1 - correlation**2) * second)
    lower = below + noise * first
    value = upper / lower
    cross = correlation * error * noise
    # of (A - (A / B) B) / B, its covariance with B / B, and the variance of the latter
    variance = (error**2 - 2 * value * cross + value**2 * noise**2) / lower**2
    crossed = (cross - value * noise**2) / lower**2
    low, high = functional.fieller_bounds(value, variance, crossed, noise**2 / lower**2, REACH)
    held = (low <= above / below) & (above / below <= high)
    assert np.mean(held | (lower <= REACH * noise)) == pytest.approx(0.95, abs=0.003)


def test_a_denominator_without_noise_gives_the_normal_interval_and_one_like_zero_none() -> None:
    value, variance, crossed, base = np.array([[2.0, 2.0], [0.1, 0.25], [0.0, 0.0], [0.3, 0.0]])
    low, high = functional.fieller_bounds(value, variance, crossed, base, 2.0)
    assert (low.tolist(), high.tolist()) == ([-np.inf, 1.0], [np.inf, 3.0])
