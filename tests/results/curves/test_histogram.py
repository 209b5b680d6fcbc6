"""Histograms of both classes' scores: rates at thresholds, curves, and their errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as sklearn

import tacit
from tacit import Clients, PublishedHistogram, ScoreHistogram, evaluate
from tacit.metrics.ranking import auc
from tacit.metrics.trees import TreeNoise
from tacit.protocol import Histogram, SimulatedNoise
from tacit.results.measures.catalogue import CATALOGUE, rates_at
from tacit.results.measures.figures import CellView
from tacit.running.simulation import simulate
from tests import known
from tests.federations import binormal_clients
from tests.metrics.test_functional import REFERENCES

Floats = NDArray[np.float64]

EXACT = ScoreHistogram("exact-sum", scale="even")
NOISY = ScoreHistogram("secure-sum", 1.0, height=7, scale="even")


@pytest.fixture(scope="module")
def clients() -> Clients:
    return binormal_clients(8000, 12000, 20, seed=5)


def histogram_of(clients: Clients, protocol: ScoreHistogram, seed: int = 0) -> Histogram:
    return known(simulate(clients, protocol, SimulatedNoise(seed)).server_result.histogram)


def exact_counts(counts: Floats, buckets: int = 8) -> Histogram:
    levels = counts.size.bit_length()
    variances = np.append(np.full(levels - 1, np.inf), 0.0)
    return Histogram(counts, TreeNoise(variances), buckets, buckets)


class TestAtAThreshold:
    @pytest.mark.parametrize("threshold", [0.11, 0.25, 0.5, 0.7321, 0.9])
    def test_rates_are_those_of_scikit_learn(self, threshold: float, clients: Clients) -> None:
        result = evaluate(clients, EXACT).at(threshold)
        for name, reference in REFERENCES.items():
            expected = reference(clients.labels, clients.scores >= threshold)
            assert result[name].value == pytest.approx(expected, abs=1e-4)
            assert result[name].privacy_error == 0
            assert result[name].approximation_error < 1e-4

    def test_nothing_is_called_at_one(self) -> None:
        histogram = exact_counts(np.array([[0.0, 5.0], [4.0, 3.0]]))
        assert {rate.approximation_error for rate in rates_at(histogram, 0.5).values()} == {0.0}
        everything, nothing = (rates_at(histogram, threshold) for threshold in (0.0, 1.0))
        assert (everything["recall"].value, everything["specificity"].value) == (1, 0)
        assert (nothing["recall"].value, nothing["specificity"].value) == (0, 1)
        assert math.isnan(nothing["precision"].value)

    def test_errors_are_as_large_as_said(self) -> None:
        """200 runs on 20 data sets: the spread's own error is 5 %; false alarm below 1e-5 a rate.

        A noise scale 30 % off moves the spread by 30 %.
        """
        protocol = replace(NOISY, scale="probability")
        drawn = [binormal_clients(2000, 3000, 5, seed=seed) for seed in range(20)]
        runs = [
            rates_at(histogram_of(drawn[seed % 20], protocol, seed), 0.6) for seed in range(200)
        ]
        for name, reference in REFERENCES.items():
            exact = np.array([reference(few.labels, few.scores >= 0.6) for few in drawn])
            missed = np.array([run[name].value for run in runs]) - np.tile(exact, 10)
            reported = np.array([run[name].standard_error for run in runs])
            assert missed.std() == pytest.approx(reported.mean(), rel=0.22)
            assert np.mean(np.abs(missed) < 1.96 * reported) > 0.88

    @pytest.mark.parametrize("place", [0, 3, 7])
    def test_a_cut_in_the_middle_of_a_cell_may_be_anywhere_in_it(self, place: int) -> None:
        """Of counts that are rough, the worst places of a class in the cell are one error away."""
        counts = 1000 * (np.arange(16.0).reshape(2, 8) % 3 + 1)
        result = rates_at(exact_counts(counts), (place + 0.5) / 8)["recall"]
        ends = [
            rates_at(exact_counts(counts), (place + step) / 8)["recall"].value for step in (0, 1)
        ]
        assert result.value == pytest.approx(np.mean(ends))
        assert result.approximation_error == pytest.approx(abs(ends[0] - ends[1]) / 2)

    def test_rounded_scores_are_as_wrong_as_said(self) -> None:
        """Scores of two decimals in cells of a 1/64, cut between 1,000 random places.

        The records of a cell that holds one such score are all above the cut, or all below it; the
        mean squared error over the predicted one is 1 there, and less in cells that hold more.
        """
        rng = np.random.default_rng(2)
        labels = rng.integers(0, 2, 20_000)
        scores = np.round(np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1), 2)
        stored = Clients.from_arrays(scores, labels)
        histogram = histogram_of(stored, ScoreHistogram("exact-sum", height=6, scale="even"))
        thresholds = rng.uniform(0.1, 0.9, 1000)
        [recall] = [each for each in CATALOGUE if "sensitivity" in each.names]
        ratios = []
        for threshold, rate in zip(
            thresholds, recall.measures(CellView.of(histogram), tuple(thresholds)), strict=True
        ):
            missed = rate.value - float(np.mean(scores[labels == 1] >= threshold))
            ratios.append((missed / rate.approximation_error) ** 2)
        assert 0.5 < np.mean(ratios) < 1.2

    def test_other_protocols_say_where_to_turn(self) -> None:
        result = evaluate(binormal_clients(60, 90, 3), tacit.FedAUC(1.0), seed=0)
        for query in (lambda: result.at(0.5), result.calibrator, lambda: result.measures):
            with pytest.raises(AttributeError, match="fedauc gives no score histogram"):
                query()


class TestAreas:
    @settings(max_examples=60, deadline=None)
    @given(data=st.data(), height=st.integers(1, 4))
    def test_the_certain_range_holds_the_exact_area(self, data: st.DataObject, height: int) -> None:
        """Whatever lies where: scores on a grid finer than the cells."""
        size = data.draw(st.integers(2, 40))
        scores = (
            np.array(data.draw(st.lists(st.integers(0, 31), min_size=size, max_size=size))) / 31
        )
        labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
        if not 0 < labels.sum() < size:
            return
        stored = Clients.from_arrays(scores, labels)
        histogram = histogram_of(stored, ScoreHistogram("exact-sum", height=height))
        low, high = histogram.certain_range()
        assert low - 1e-12 <= auc(stored.scores, stored.labels) <= high + 1e-12

    def test_the_certain_range_is_reached(self) -> None:
        """All pairs of a cell won, or all lost."""
        result = exact_counts(np.array([[2.0, 3.0], [4.0, 1.0]]))
        assert result.certain_range() == pytest.approx(((3 * 4) / 25, (3 * 5 + 2 * 4) / 25))
        nothing = exact_counts(np.array([[2.0, 3.0], [0.0, 0.0]])).certain_range()
        assert np.isnan(nothing).all()

    @pytest.mark.parametrize("buckets", [20, 100])
    def test_areas_of_buckets_near_the_exact_one(self, buckets: int, clients: Clients) -> None:
        histogram, exact = histogram_of(clients, EXACT), auc(clients.scores, clients.labels)
        assert histogram.auc(buckets) == pytest.approx(exact, abs=0.1 / buckets**2 + 1e-4)
        plain = histogram.auc(buckets, density=False)
        assert abs(plain - exact) > 2 * abs(histogram.auc(buckets) - exact)


class TestCurves:
    def test_reliability_holds_the_buckets_shares(self, clients: Clients) -> None:
        diagram = histogram_of(clients, EXACT).reliability()
        assert diagram.low[0] == 0
        assert diagram.high[-1] == 1
        np.testing.assert_array_equal(diagram.low[1:], diagram.high[:-1])
        assert diagram.records.sum() == clients.records
        for index in range(0, diagram.low.size, 23):
            inside = (clients.scores >= diagram.low[index]) & (clients.scores < diagram.high[index])
            assert diagram.records[index] == inside.sum()
            share = clients.labels[inside].mean()
            assert diagram.observed.value[index] == pytest.approx(share)
            mean = clients.scores[inside].mean()
            assert diagram.predicted[index] == pytest.approx(mean, abs=2**-14)

    def test_a_bucket_of_one_class_is_not_certain(self) -> None:
        counts = np.array([[10.0, 0.0, 9.0, 12.0], [0.0, 11.0, 1.0, 0.0]])
        observed = exact_counts(counts, buckets=4).reliability().observed
        assert observed.value.tolist() == [1.0, 0.0, 0.9, 1.0]
        low, high = observed.limits()
        assert (high - low > 0.1).all()

    def test_curves_of_noisy_counts_fall(self, clients: Clients) -> None:
        histogram = histogram_of(clients.part(0, 2), NOISY)
        roc = histogram.roc()
        for rates in (roc.true_positive_rate, roc.false_positive_rate):
            assert (np.diff(rates) <= 0).all()
            assert rates[0] == 1
            assert rates.min() >= 0
        assert roc.thresholds.size == histogram.starts.size <= histogram.buckets


class TestShown:
    def test_rows_tell_the_figures_with_their_errors(self, clients: Clients) -> None:
        result = evaluate(clients, NOISY, seed=1)
        rows = dict(result.to_rows())
        half = result.at(0.5)["precision"]
        low, high = half.interval(0.95)
        message = f"{half.value:.4f}, 95 % interval (these records) {low:.4f} to {high:.4f}"
        assert rows["precision at 0.5"] == message
        precision = known(result.histogram).average_precision().value
        start = f"{precision:.4f}, 95 % interval (these records) 0."
        assert rows["average precision"].startswith(start)
        assert ", 95 % interval (population) 0." in rows["calibration error (ECE)"]
        assert "noise supports" not in rows


class TestDebiasedError:
    def test_sampling_is_subtracted_where_scores_are_calibrated(self) -> None:
        """At most 0.27 s a bucket remain; a mean of 400 draws fails by chance in 1 of 3 million.

        A sampling variance of half its size leaves 0.44 s.
        """
        rng, chances, records = np.random.default_rng(3), (np.arange(8) + 0.5) / 8, 400
        spreads = np.sqrt(chances * (1 - chances) * records)
        left = []
        for _ in range(400):
            positives = rng.binomial(records, chances)
            counts = np.stack([positives, records - positives]).astype(np.float64)
            left.append(exact_counts(counts).debiased_ece().value * 8 * records / spreads.sum())
        assert np.mean(left) < 0.27 + 5 * np.std(left) / math.sqrt(len(left))


def test_figures_of_exact_counts_come_from_the_finest_cells() -> None:
    """Of crowded scores, whose buckets are far wider than cells; beside scikit-learn's figures."""
    scores, labels = tacit.binormal_scores(600, 1400, 0.8, seed=3)
    dense = np.clip(scores, 1e-9, 1 - 1e-9) ** 6
    clients = Clients.split(dense, labels, 10, seed=0)
    protocol = PublishedHistogram("exact-sum", buckets=4)
    histogram = histogram_of(clients, protocol)
    known = clients.labels, clients.scores
    brier, average = sklearn.brier_score_loss(*known), sklearn.average_precision_score(*known)
    assert histogram.calibration().brier == pytest.approx(brier, abs=2e-5)
    assert histogram.average_precision().value == pytest.approx(average, abs=3e-3)
    noisy = histogram_of(clients, PublishedHistogram("secure-sum", 1.0, buckets=4))
    assert noisy.finest is noisy.cells
