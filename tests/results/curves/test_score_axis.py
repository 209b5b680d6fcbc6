"""Histograms of log-odds and of real numbers: thresholds are scores, open ends are null."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logit

import tacit
from tacit import Clients, Histogram, ScoreHistogram, evaluate
from tacit.results.curves.calibrator import Calibrator, Lines
from tacit.results.measures.catalogue import rates_at
from tests.results.curves.test_histogram import histogram_of as released_histogram

SCORES, LABELS = tacit.binormal_scores(4000, 6000, 0.8, seed=1)
LOG_ODDS = logit(np.clip(SCORES, 1e-12, 1 - 1e-12))
UNITS = {"probability": SCORES, "log-odds": LOG_ODDS, "real": 1 + 5 * LOG_ODDS}


def histogram_of(name: str, protocol: ScoreHistogram | None = None) -> Histogram:
    clients = Clients.split(UNITS[name], LABELS, 5, seed=0)
    return released_histogram(clients, protocol or ScoreHistogram("exact-sum", scale=name), 1)


def exact_rates(scores: NDArray[np.float64], threshold: float) -> tuple[float, float]:
    called = scores >= threshold
    return float(np.mean(called[LABELS == 1])), float(np.mean(~called[LABELS == 0]))


@pytest.mark.parametrize("name", list(UNITS))
def test_borders_of_buckets_are_thresholds_of_the_unit(name: str) -> None:
    histogram = histogram_of(name)
    rates, borders = histogram.rates(), histogram.edges[histogram.starts]
    for index in range(1, borders.size, 13):
        recall, specificity = exact_rates(UNITS[name], float(borders[index]))
        assert rates["recall"].value[index] == pytest.approx(recall, abs=1e-12)
        assert rates["specificity"].value[index] == pytest.approx(specificity, abs=1e-12)


@pytest.mark.parametrize("name", list(UNITS))
@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_rates_at_any_threshold_are_near_the_exact_ones(name: str, share: float) -> None:
    threshold = float(np.quantile(UNITS[name], share))
    made = rates_at(histogram_of(name), threshold)
    recall, specificity = exact_rates(UNITS[name], threshold)
    for rate, exact in ((made["recall"], recall), (made["specificity"], specificity)):
        assert abs(rate.value - exact) <= 4 * rate.approximation_error + 1e-12


@pytest.mark.parametrize(
    ("name", "threshold"), [("probability", 1.5), ("probability", math.nan), ("real", math.nan)]
)
def test_a_threshold_that_no_score_can_be_is_refused(name: str, threshold: float) -> None:
    with pytest.raises(ValueError, match="a threshold must be in"):
        rates_at(histogram_of(name), threshold)


def test_log_odds_are_calibrated_as_the_probabilities_that_they_state() -> None:
    odds, stated = histogram_of("log-odds"), histogram_of("probability")
    assert odds.calibration().brier == pytest.approx(stated.calibration().brier, abs=1e-4)
    assert odds.debiased_ece().value == pytest.approx(stated.debiased_ece().value, abs=1e-3)
    np.testing.assert_allclose(odds.reliability().predicted, stated.reliability().predicted, 2e-2)
    half, same = rates_at(odds, 0.0), rates_at(stated, 0.5)
    assert half["precision"].value == pytest.approx(same["precision"].value, abs=1e-12)
    mapped, expected = odds.calibrator("platt"), stated.calibrator("platt")
    np.testing.assert_allclose(
        mapped.transform([-3.0, 0.0, 4.0]),
        expected.transform(1 / (1 + np.exp([3.0, 0.0, -4.0]))),
        atol=2e-3,
    )


def test_real_numbers_have_a_calibrator_and_no_calibration_error() -> None:
    histogram = histogram_of("real")
    assert math.isnan(histogram.debiased_ece().value)
    assert math.isnan(histogram.calibration().brier)
    assert np.isnan(histogram.reliability().predicted).all()
    calibrator = histogram.calibrator("isotonic")
    given = calibrator.transform([-1e9, -9.0, 1.0, 11.0, 1e9])
    assert (np.diff(given) >= 0).all()
    near = np.abs(UNITS["real"] - 1) < 0.5
    assert given[2] == pytest.approx(LABELS[near].mean(), abs=0.1)
    with pytest.raises(ValueError, match="'platt' needs probabilities or log-odds"):
        histogram.calibrator("platt")


@pytest.mark.parametrize("name", list(UNITS))
def test_a_calibrator_of_a_unit_reads_back_as_it_was(name: str) -> None:
    calibrator = histogram_of(name).calibrator("bbq")
    assert json.loads(calibrator.to_json()).get("unit", "probability") == name
    with pytest.raises(ValueError, match="unit must be one of"):
        Calibrator("isotonic")._with(Lines(np.array([0.5]), np.array([0.5])), "percentage")
    again = Calibrator.from_json(calibrator.to_json())
    np.testing.assert_array_equal(
        again.transform(UNITS[name][:50]), calibrator.transform(UNITS[name][:50])
    )


@pytest.mark.parametrize("name", ["log-odds", "real"])
@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_open_ends_are_null_in_strict_json(name: str, epsilon: float | None) -> None:
    trust = "exact-sum" if epsilon is None else "secure-sum"
    clients = Clients.split(UNITS[name], LABELS, 5, seed=0)
    made = evaluate(clients, ScoreHistogram(trust, epsilon, scale=name), seed=1).to_dict()
    again = json.loads(json.dumps(made, allow_nan=False))
    assert again == made
    assert made["rates"]["thresholds"][0] is None
    assert made["rates"]["recall"][0] == 1.0
    assert None not in made["rates"]["thresholds"][1:]
    assert made["reliability"]["low"][0] is made["reliability"]["high"][-1] is None
    assert bool(made["calibration"]) is (name == "log-odds")


@pytest.mark.parametrize("height", [1, 18])
@pytest.mark.parametrize("name", list(UNITS))
def test_flat_and_tall_trees_give_all_figures(name: str, height: int) -> None:
    """Far out, many cells of a tall tree have one double for an edge."""
    histogram = histogram_of(name, ScoreHistogram("exact-sum", scale=name, height=height))
    assert histogram.finest.totals.sum() == LABELS.size
    assert histogram.to_dict()["cells"] == 1 << height
