"""Curves between the borders of cells, beside those of the records."""

from __future__ import annotations

import numpy as np
import pytest

from tacit import ScoreHistogram
from tacit.metrics.trees import TreeNoise
from tacit.privacy.noise import SimulatedNoise
from tacit.results.curves.histogram import Histogram
from tacit.running.simulation import simulate
from tacit_studies.floors.curve_areas import areas_between, exact_curves
from tests.federations import binormal_clients


def smooth(protocol: ScoreHistogram, seed: int = 0) -> tuple[Histogram, tuple[float, float]]:
    clients = binormal_clients(8000, 12000, 5, seed=2)
    histogram = simulate(clients, protocol, SimulatedNoise(seed)).server_result.histogram
    assert histogram is not None
    exact = exact_curves(clients.scores, clients.labels)
    return histogram, areas_between(exact, histogram.smooth_curves())


def test_they_go_through_the_points_of_the_plain_curve() -> None:
    histogram, _ = smooth(ScoreHistogram("exact-sum", height=8))
    roc, curves = histogram.roc(), histogram.smooth_curves()
    found = curves.recall_at(roc.false_positive_rate)
    np.testing.assert_allclose(found, roc.true_positive_rate, atol=2e-3)
    at = np.searchsorted(curves.thresholds, roc.thresholds)
    np.testing.assert_allclose(curves.true_positive_rate[at], roc.true_positive_rate, atol=1e-12)


def test_more_cells_leave_less_area() -> None:
    flat, tall = (smooth(ScoreHistogram("exact-sum", height=height))[1] for height in (5, 9))
    assert tall[0] < flat[0] / 3
    assert tall[1] < flat[1] / 3


def test_less_noise_leaves_less_area() -> None:
    """The means of 5 runs; the areas differ by a factor of about 7."""
    errors = [
        np.mean([smooth(ScoreHistogram(epsilon=e), s)[1] for s in range(5)], axis=0)
        for e in (0.3, 3.0)
    ]
    assert (errors[1] < errors[0] / 2).all()


def test_rates_never_rise_and_stay_in_range() -> None:
    curves = smooth(ScoreHistogram(epsilon=0.05))[0].smooth_curves()
    for rates in (curves.false_positive_rate, curves.true_positive_rate):
        assert (np.diff(rates) <= 0).all()
        assert (rates[0], rates[-1]) == (1.0, 0.0)
    assert (np.diff(curves.thresholds) >= 0).all()


def test_one_run_of_cells_is_a_diagonal() -> None:
    histogram = Histogram(np.array([[3.0, 1.0], [2.0, 2.0]]), TreeNoise(np.full(3, 9.0)), 1, 1)
    curves = histogram.smooth_curves()
    np.testing.assert_allclose(curves.recall_at([0.0, 0.3, 1.0]), [0.0, 0.3, 1.0], atol=1e-12)
    assert curves.precision_at(0.7) == pytest.approx(0.5)
