"""Curves: their bands, and rates at thresholds."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import tacit
from tacit import Clients, PublishedHistogram, ScoreHistogram
from tacit.metrics.curves import counts_from_thresholds
from tacit.metrics.functional import rate_name
from tacit.privacy.noise import SimulatedNoise
from tacit.results.curves.curve import (
    WRITTEN_RATES,
    Band,
    Curve,
    PrecisionRecall,
    Reliability,
    rates_entry,
    rates_of_curve,
)
from tacit.running.simulation import simulate
from tests.metrics.test_functional import REFERENCES

Floats = NDArray[np.float64]

SEPARATION = math.sqrt(2) * norm.ppf(0.8)
SHARE = 0.4
"""Of positives in the population."""


def band(value: list[float], privacy: float = 0.03, sampling: float = 0.04) -> Band:
    rates = np.array(value)
    return Band(rates, np.full(rates.size, privacy), np.full(rates.size, sampling))


def test_limits_stay_within_the_range_of_rates() -> None:
    low, high = band([-0.5, 0.01, 0.99, 1.5, math.nan]).limits()
    assert low.tolist()[:2] == [0.0, 0.0]
    assert high.tolist()[2:4] == [1.0, 1.0]
    assert (low <= high)[:4].all()
    assert np.isnan([low[4], high[4]]).all()


def test_rates_that_must_fall_do() -> None:
    """The nearest falling sequence averages neighbours that rise; errors stay."""
    made = band([1.2, 0.7, 0.9, 0.4, -0.1], privacy=0.02)
    result = made.falling()
    np.testing.assert_allclose(result.value, [1.0, 0.8, 0.8, 0.4, 0.0])
    np.testing.assert_array_equal(result.privacy_error, made.privacy_error)
    np.testing.assert_array_equal(result.sampling_error, made.sampling_error)
    unknown = band([1.2, math.nan, 0.4]).falling().value
    np.testing.assert_array_equal(unknown, [1.0, math.nan, 0.4])


def test_every_diagram_is_strict_json() -> None:
    rates, ends = band([0.9, math.nan]), np.array([0.0, 0.5], dtype=np.float64)
    curve = PrecisionRecall(ends, rates, rates).to_dict()
    diagram = Reliability(ends, ends + 0.5, ends + 0.25, ends * 100, rates).to_dict()
    for made in (curve, diagram):
        json.dumps(made, allow_nan=False)
        assert {len(values) for values in made.values()} == {2}
    assert curve["precision"] == [0.9, None]
    assert curve["recall_low"][0] == pytest.approx(0.9 - norm.ppf(0.975) * 0.05)
    assert {"low", "high", "predicted", "records", "observed", "observed_low"} <= diagram.keys()


def reaching(threshold: Floats, label: int) -> Floats:
    """The share of a class's population that reaches a threshold."""
    return np.asarray(norm.sf(norm.ppf(threshold) - SEPARATION * (label - 0.5)))


def positives_among(first: Floats, second: Floats) -> Floats:
    return SHARE * first / (SHARE * first + (1 - SHARE) * second)


def held(rates: Band, truth: Floats) -> NDArray[np.bool_]:
    low, high = rates.limits()
    return (low <= truth) & (truth <= high)


def coverage(protocol: ScoreHistogram, draws: int, records: int) -> Floats:
    """The share of the points of four curves whose band holds the population's rate.

    Averaged over data sets drawn from a binormal population of AUC 0.8; the first threshold is no
    question. The curves are ROC, its other coordinate, precision and reliability.
    """
    shares = []
    for draw in range(draws):
        rng = np.random.default_rng([7, draw])
        labels = (rng.random(records) < SHARE).astype(np.int8)
        scores = norm.cdf(rng.normal(size=records) + SEPARATION * (labels - 0.5))
        clients = Clients.from_arrays(scores, labels, np.arange(records) % 10)
        server_result = simulate(clients, protocol, SimulatedNoise(draw)).server_result
        histogram, roc = server_result.histogram, server_result.roc
        assert histogram is not None
        assert roc is not None
        assert roc.false_positive_sampling is not None
        first, second = (reaching(roc.thresholds, label) for label in (1, 0))
        across = Band(
            roc.false_positive_rate, roc.false_positive_error, roc.false_positive_sampling
        )
        precision = histogram.precision_recall().precision
        buckets = histogram.reliability()
        inside = [reaching(buckets.low, label) - reaching(buckets.high, label) for label in (1, 0)]
        shares.append(
            [
                held(roc.band, first)[1:].mean(),
                held(across, second)[1:].mean(),
                held(precision, positives_among(first, second))[1:].mean(),
                held(buckets.observed, positives_among(*inside)).mean(),
            ]
        )
    return np.mean(shares, axis=0)


HOLDING = (0.92, 0.98)


@pytest.mark.parametrize(
    ("protocol", "data_sets", "rates", "reliability"),
    [
        # epsilon 1, 2,000 records, 8 buckets: privacy and sampling matter alike
        (
            PublishedHistogram("secure-sum", 1.0, height=8, aim="auc", buckets=8),
            *(250, HOLDING, HOLDING),
        ),
        # buckets of equal noisy depth: their totals hide a part of their noise, and reliability
        # covers 98.6 %; what bands hold is not lost
        (ScoreHistogram("secure-sum", 1.0, height=8), 150, (0.92, 0.985), (0.95, 0.995)),
        # exact counts of 2,000 records in 80 buckets of 25: some hold one class alone
        (ScoreHistogram("exact-sum", height=10), 250, HOLDING, HOLDING),
        (PublishedHistogram("local", 4.0, buckets=4), 250, HOLDING, HOLDING),
    ],
    ids=["noise", "supported-buckets", "sampling-alone", "private-reports"],
)
def test_bands_hold(
    protocol: ScoreHistogram,
    data_sets: int,
    rates: tuple[float, float],
    reliability: tuple[float, float],
) -> None:
    """Pointwise 95 % bands about the population, averaged over points and data sets.

    Points of one data set err together: the mean over 250 data sets has a standard error of 0.3 to
    0.7 % (0.1 to 0.4 % for the buckets of a reliability diagram, which err apart), so that a band
    that covers 95 % leaves 92 to 98 % with probability below 1e-4.
    """
    *of_rates, of_buckets = coverage(protocol, data_sets, 2000).tolist()
    assert rates[0] <= min(of_rates) <= max(of_rates) <= rates[1]
    assert reliability[0] <= of_buckets <= reliability[1]


def test_the_rates_agree_with_the_curves_beside_them_and_with_those_at_a_threshold() -> None:
    clients = tacit.Clients.split(*tacit.binormal_scores(800, 1700, 0.8, seed=0), 3, seed=0)
    result = tacit.evaluate(clients, tacit.ScoreHistogram("secure-sum", 2.0, height=6), seed=0)
    made = result.to_dict()
    rates, curve, roc = made["rates"], made["precision_recall"], made["roc"]
    assert rates["thresholds"] == curve["thresholds"] == roc["thresholds"]
    assert rates["recall"] == curve["recall"] == roc["true_positive_rate"]
    assert rates["precision"] == curve["precision"]
    expected = [1 - rate for rate in roc["false_positive_rate"]]
    assert rates["specificity"] == pytest.approx(expected, abs=1e-12)
    for end in ("low", "high"):
        assert roc[f"true_positive_rate_{end}"] == rates[f"recall_{end}"]
    index = len(rates["thresholds"]) // 2
    there = result.at(rates["thresholds"][index])
    for name in ("f1", "accuracy", "precision"):
        assert rates[name][index] == pytest.approx(there[name].value, abs=1e-9)
        low, high = there[name].interval(about="population")
        assert rates[f"{name}_low"][index] == pytest.approx(max(low, 0), abs=1e-6)
        assert rates[f"{name}_high"][index] == pytest.approx(min(high, 1), abs=1e-6)


def test_a_curve_with_class_sizes_has_the_exact_rates() -> None:
    scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=1)
    edges = np.linspace(0, 1, 21)[:-1]
    cells = np.searchsorted(edges, scores, side="right") - 1
    counts = [np.bincount(cells[labels == label], minlength=20) for label in (1, 0)]
    up, across = (counts_from_thresholds(part) / part.sum() for part in counts)
    none = np.zeros(20)
    rates = rates_of_curve(Curve(edges, across, up, none, none), 300, 700)
    entry = rates_entry(edges, rates)
    for index, threshold in enumerate(edges):
        for name in WRITTEN_RATES:
            expected = REFERENCES[rate_name(name)](labels, scores >= threshold)
            assert rates[name].value[index] == pytest.approx(expected)
    assert entry["recall_low"] == entry["recall"]
    assert set(entry["precision_low"]) == {None}
    assert entry.keys() == {"thresholds"} | {
        f"{name}{end}" for name in WRITTEN_RATES for end in ("", "_low", "_high")
    }


@pytest.mark.parametrize("sizes", [(-3.0, 100.0), (100.0, 0.0), (np.nan, 100.0)])
def test_without_class_sizes_only_the_curves_rates_are_known(sizes: tuple[float, float]) -> None:
    rates, none = np.array([0.9, 0.2]), np.zeros(2)
    result = rates_of_curve(Curve(np.array([0.0, 0.5]), rates, rates, none, none), *sizes)
    assert np.isnan([result[name].value for name in ("precision", "accuracy", "f1")]).all()
    assert result["recall"].value.tolist() == [0.9, 0.2]
