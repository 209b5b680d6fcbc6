"""Areas between curves, and the reference that they are compared with."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sklearn

from tacit import Histogram, ScoreHistogram, binormal_scores
from tacit.metrics.ranking import auc
from tacit.metrics.trees import TreeNoise
from tacit_studies.floors.curve_areas import EPSILONS, SHAPES, areas_between, exact_curves
from tacit_studies.measuring import Bench
from tacit_studies.references.fedcurve import fedcurve
from tacit_studies.references.smooth_curves import SmoothCurves
from tacit_studies.registry import TABLES
from tacit_studies.rows import Row, Target
from tacit_studies.sources import Scores
from tests.federations import binormal_clients
from tests.results.curves.test_histogram import histogram_of
from tests.studies.sources import SOME

SCORES, LABELS = binormal_scores(3000, 5000, 0.8, seed=4)
THRESHOLDS = np.linspace(0.0, 1.0, 4097)


def test_exact_curves_are_those_of_scikit_learn() -> None:
    scores = np.round(SCORES, 2)
    curves = exact_curves(scores, LABELS)
    across, up, _ = sklearn.roc_curve(LABELS, scores)
    np.testing.assert_allclose(
        np.interp(np.unique(across), across, up), curves.recall_at(np.unique(across)), atol=1e-12
    )
    precision, recall, _ = sklearn.precision_recall_curve(LABELS, scores)
    np.testing.assert_allclose(curves.precision_at(recall[:-1]), precision[:-1], atol=1e-12)


def test_areas_of_known_curves() -> None:
    rates = np.linspace(1.0, 0.0, 10_001)
    even = SmoothCurves(rates, rates, rates, 100.0, 100.0)
    square = SmoothCurves(rates, rates**2, rates, 100.0, 100.0)
    area, precision = areas_between(even, square)
    # the integral of sqrt(x) - x, and of 1 / (1 + r) - 1/2
    assert area == pytest.approx(1 / 6, abs=1e-4)
    assert precision == pytest.approx(np.log(2) - 0.5, abs=1e-4)
    assert areas_between(even, even) == (0.0, 0.0)


def test_the_reference_finds_the_curves_where_noise_is_small() -> None:
    rng = np.random.default_rng(0)
    exact = exact_curves(SCORES, LABELS)
    few, many = (
        areas_between(exact, fedcurve(SCORES, LABELS, 1e4, q, THRESHOLDS, rng)) for q in (16, 256)
    )
    assert many[0] < min(few[0] / 2, 2e-3)
    assert many[1] < 5e-3


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_its_area_errs_as_noise_of_its_levels_does(epsilon: float) -> None:
    """A tree of ten levels at epsilon 1 moves an AUC of 3,000 positives by about 1/100."""
    exact = auc(SCORES, LABELS)
    errors = []
    for seed in range(20):
        made = fedcurve(SCORES, LABELS, epsilon, 64, THRESHOLDS, np.random.default_rng(seed))
        places = np.linspace(0, 1, 2001)
        errors.append(float(np.mean(made.recall_at(places))) - exact)
    assert 1e-4 < np.std(errors) * epsilon < 2e-2


def test_every_figure_has_a_row_and_a_target() -> None:
    source = Scores(small=SOME)
    (job, *_), jobs = TABLES["curves"].jobs(), TABLES["curves"].jobs()
    assert len(jobs) == len(SHAPES) * len(EPSILONS)
    rows = jobs[1].work(Bench(source, 2, 0))
    assert [type(row) for row in rows] == [Row, Target] * 2
    assert all(0 < row.ours < 3 for row in rows)
    assert job.records == 1


def smooth(protocol: ScoreHistogram, seed: int = 0) -> tuple[Histogram, tuple[float, float]]:
    clients = binormal_clients(8000, 12000, 5, seed=2)
    histogram = histogram_of(clients, protocol, seed)
    exact = exact_curves(clients.scores, clients.labels)
    return histogram, areas_between(exact, SmoothCurves.of(histogram))


def test_smooth_curves_go_through_the_points_of_the_plain_curve() -> None:
    histogram, _ = smooth(ScoreHistogram("exact-sum", height=8))
    roc, curves = histogram.roc(), SmoothCurves.of(histogram)
    found = curves.recall_at(roc.false_positive_rate)
    np.testing.assert_allclose(found, roc.true_positive_rate, atol=2e-3)
    at = np.searchsorted(curves.thresholds, roc.thresholds)
    np.testing.assert_allclose(curves.true_positive_rate[at], roc.true_positive_rate, atol=1e-12)


def test_more_cells_leave_less_area() -> None:
    flat, tall = (smooth(ScoreHistogram("exact-sum", height=height))[1] for height in (5, 9))
    assert tall[0] < flat[0] / 3
    assert tall[1] < flat[1] / 3


def test_smooth_rates_never_rise_and_stay_in_range() -> None:
    curves = SmoothCurves.of(smooth(ScoreHistogram(epsilon=0.05))[0])
    for rates in (curves.false_positive_rate, curves.true_positive_rate):
        assert (np.diff(rates) <= 0).all()
        assert (rates[0], rates[-1]) == (1.0, 0.0)
    assert (np.diff(curves.thresholds) >= 0).all()


def test_one_run_of_cells_is_a_diagonal() -> None:
    histogram = Histogram(np.array([[3.0, 1.0], [2.0, 2.0]]), TreeNoise(np.full(3, 9.0)), 1, 1)
    curves = SmoothCurves.of(histogram)
    np.testing.assert_allclose(curves.recall_at([0.0, 0.3, 1.0]), [0.0, 0.3, 1.0], atol=1e-12)
    assert curves.precision_at(0.7) == pytest.approx(0.5)
