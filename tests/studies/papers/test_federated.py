"""Cormode and Markov 2023's table and figures, and our own targets beside them, on few records."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics import ranking
from tacit.metrics.curves import cell_area
from tacit.results.curves.histogram import Histogram
from tacit.results.measures.catalogue import rates_at
from tacit.running.evaluating import repeat_results
from tacit_studies.measuring import Bench
from tacit_studies.papers import federated, federated_figures, local_targets
from tacit_studies.papers.federated import (
    Records,
    all_records,
    calibration_error,
    exact_rates,
    histogram_of,
    protocol_for,
    rate_errors,
    slope,
)
from tacit_studies.references import federated as paper
from tacit_studies.registry import TABLES
from tacit_studies.rows import Measured, Row
from tacit_studies.sources import LARGE, SMALL, EvaluationSet, Scores
from tests.studies.sources import check_rows, few, real_clients

NAMES = [
    *("federated-table-1", *(f"federated-figure-{number}" for number in (2, 3, 4, 5))),
    *("score-histogram", "histogram-coverage"),
]
TEN_THOUSAND = EvaluationSet(2_500, 7_500, SMALL.auc)


def ten_thousand() -> Scores:
    return Scores(small=TEN_THOUSAND, large=LARGE)


def measured(name: str, source: Scores, repeats: int = 2, seed: int = 1) -> list[Measured]:
    return TABLES[name].measure(source, repeats, seed)


@cache
def once_measured(name: str) -> tuple[Measured, ...]:
    return tuple(measured(name, ten_thousand()))


def bench(repeats: int = 2) -> Bench:
    return Bench(ten_thousand(), repeats, 0)


def released(trust: str, seed: int = 0, **settings: Any) -> tuple[Records, Histogram]:
    """All records, and their histogram."""
    known = all_records(bench())
    histogram = histogram_of(known, protocol_for(trust, **settings), seed)
    assert histogram is not None
    return known, histogram


@pytest.mark.parametrize("name", NAMES)
def test_every_job_gives_finite_rows_and_survives_few_real_records(name: str) -> None:
    rows = once_measured(name)
    check_rows(rows, name)
    assert [row for row in rows if not math.isfinite(row.ours)] == []
    check_rows(measured(name, few(real_clients(200, 300))))


@given(
    exponent=st.floats(-3, 3),
    factor=st.floats(1e-6, 1e3),
    sizes=st.lists(st.integers(1, 10**6), min_size=2, max_size=8, unique=True),
)
def test_slopes_of_power_laws_are_their_exponents(
    exponent: float, factor: float, sizes: list[int]
) -> None:
    errors = [factor * float(index) ** exponent for index in sizes]
    assert slope(sizes, errors) == pytest.approx(exponent, abs=1e-6)


def test_slopes_leave_out_what_has_no_logarithm() -> None:
    assert slope([1, 2, 4, 8], [1.0, 0.0, 0.25, math.nan]) == pytest.approx(-1.0)
    assert math.isnan(slope([1, 2], [1.0, 0.0]))
    assert math.isnan(slope([], []))


def test_synthetic_records_are_half_positive() -> None:
    known = all_records(bench())
    assert known.size == TEN_THOUSAND.records
    assert known.labels.mean() == pytest.approx(0.5, abs=1e-3)
    # The sample's AUC has a standard error of 0.005 here; 4 of them are a false alarm of 6e-5.
    assert known.auc == pytest.approx(federated.AUC, abs=0.02)


def test_samples_are_parts_of_the_records() -> None:
    known = Records(np.linspace(0.0, 1.0, 50), np.arange(50, dtype=np.int8) % 2)
    assert known.sample(50, seed=0) is known
    label = known.sample(20, seed=0)
    assert np.unique(label.scores).size == 20
    assert np.isin(label.scores, known.scores).all()
    assert np.array_equal(label.labels, np.rint(49 * label.scores).astype(int) % 2)


def test_exact_rates_are_those_of_the_records() -> None:
    known = all_records(bench())
    cuts = np.array([0.1, 0.5, 0.9])
    for index, cut in enumerate(cuts):
        called, true = known.scores >= cut, known.labels == 1
        hits = np.count_nonzero(called & true)
        naive = [hits / called.sum(), hits / true.sum(), np.mean(called == true)]
        assert exact_rates(known, cuts)[:, index] == pytest.approx(naive, abs=1e-12)


def test_thresholds_at_borders_of_exact_cells_leave_no_error() -> None:
    errors = rate_errors(bench(), protocol_for(paper.FEDERATED, height=3), None, (0.25, 0.5, 0.75))
    assert errors.shape == (1, 3, 3)
    assert errors.max() < 1e-12
    between = rate_errors(bench(), protocol_for(paper.FEDERATED, height=3), None, (0.3,))
    assert between.min() > 1e-6


def test_rates_are_those_that_a_histogram_reports() -> None:
    cuts, (known, histogram) = np.array([0.2, 0.55]), released(paper.DISTRIBUTED, seed=3)
    reported = np.array(
        [
            [rates_at(histogram, float(c))[name].value for c in cuts]
            for name in federated.MEASURED_RATES
        ]
    )
    naive = np.abs(reported - exact_rates(known, cuts))
    assert federated._rate_errors(known, histogram, cuts) == pytest.approx(naive, abs=1e-12)


def test_rates_without_a_histogram_are_wholly_wrong() -> None:
    known = Records(np.array([0.2, 0.4, 0.6]), np.array([0, 1, 1], dtype=np.int8))
    errors = federated._rate_errors(known, None, np.array([0.5, 0.9]))
    assert errors[:, 0].tolist() == [1.0, 1.0, 1.0]
    assert np.isnan(errors[0, 1])
    assert errors[1:, 1].tolist() == [1.0, 1.0]


def test_calibration_errors_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(3)
    scores = rng.random(500)
    labels = (rng.random(500) < scores**2).astype(np.int8)
    known = Records(scores, labels)
    naive = 0.0
    for low in range(10):
        inside = (scores >= low / 10) & (scores < (low + 1) / 10)
        naive += inside.mean() * abs(labels[inside].mean() - scores[inside].mean())
    assert calibration_error(known, scores, bins=10) == pytest.approx(naive, abs=1e-12)
    assert calibration_error(Records(scores, labels, scores), scores) == 0.0
    assert calibration_error(Records(scores, labels, scores), np.ones(500)) == pytest.approx(
        1 - scores.mean()
    )


@pytest.mark.parametrize("distortion", federated.DISTORTIONS)
def test_distorted_scores_rise_with_chances_that_labels_follow(distortion: str) -> None:
    label = all_records(bench()).distorted(8_000, distortion, seed=4)
    chances = label.chances
    assert chances is not None
    order = np.argsort(chances)
    assert (np.diff(label.scores[order]) >= 0).all()
    assert calibration_error(label, label.scores) > 0.05
    deviation = np.sum(label.labels - chances) / np.sqrt(np.sum(chances * (1 - chances)))
    assert abs(deviation) < 4  # false alarm 6e-5
    weighted = np.sum((label.labels - chances) * (chances - 0.5))
    standard_deviation = np.sqrt(np.sum(chances * (1 - chances) * (chances - 0.5) ** 2))
    assert abs(weighted) < 4 * standard_deviation  # false alarm 6e-5


def test_recalibration_helps_and_noise_costs() -> None:
    several = bench(repeats=4)
    before = all_records(several).distorted(8_000, "squared", seed=4)
    errors = {
        trust: federated.calibration_errors(several, protocol_for(trust), 8_000, ("isotonic",))
        for trust in (paper.FEDERATED, paper.LOCAL)
    }
    exact, noisy = (errors[trust]["isotonic"].mean() for trust in errors)
    assert exact < noisy < calibration_error(before, before.scores)


def test_table_1_prints_every_bound_of_the_paper() -> None:
    rows = [row for row in once_measured("federated-table-1") if isinstance(row, Row)]
    assert len(rows) == len(once_measured("federated-table-1"))
    printed = {(row.row, row.column): row.paper for row in rows if "claim" not in row.column}
    bounds = {"P/R/A": paper.RATES_BOUND, "ROC AUC": paper.AUC_BOUND, "ECE": paper.ECE_BOUND}
    assert printed == {
        (f"{name} {trust}", f"slope in {parameter}, at most"): exponent
        for name, label in bounds.items()
        for trust, exponents in label.items()
        for parameter, exponent in exponents.items()
    }
    for claim in (row for row in rows if "claim" in row.column):
        excesses = [
            row.ours - row.paper for row in rows if row.row == claim.row and row.paper is not None
        ]
        assert claim.ours == max(excesses)


@pytest.mark.parametrize("epsilon", [0.25, 2.0])
def test_the_error_of_the_auc_is_the_predicted_one(epsilon: float) -> None:
    """A normal error's mean size is sqrt(2/pi) of its deviation.

    Of 1,000 runs that mean is known to 2.4 %: 12 % are a false alarm below 1e-6, and notice noise
    that is 30 % off.
    """
    protocol, several = protocol_for(paper.DISTRIBUTED, epsilon, height=8), bench()
    error = federated.auc_error(several, protocol, 3_000, 1_000)
    label = all_records(several).sample(3_000, several.seed("sample", 3_000))
    predicted = repeat_results(label.clients, protocol, 20, seed=0).standard_error.mean()
    assert error == pytest.approx(np.sqrt(2 / np.pi) * predicted, rel=0.12)


def test_the_best_height_is_where_the_points_are_lowest() -> None:
    rows = once_measured("federated-figure-2")
    for trust in (paper.DISTRIBUTED, paper.LOCAL):
        points = {
            height: np.mean(
                [
                    row.ours
                    for row in rows
                    if row.row == f"{trust} h={height}" and row.column in federated.MEASURED_RATES
                ]
            )
            for height in federated_figures.HEIGHTS[trust]
        }
        claims = [row for row in rows if row.row == trust]
        assert claims[0].ours == min(points, key=lambda height: points[height])
        assert claims[1].ours == pytest.approx(min(points.values()))


def test_the_worst_case_bounds_the_error_of_exact_buckets() -> None:
    known, histogram = released(paper.FEDERATED, height=10)
    for buckets in federated_figures.BUCKETS:
        worst = federated_figures._worst_case(known, histogram, buckets)
        assert federated_figures._equi_depth(known, histogram, buckets) < worst <= 1 / buckets


def test_uniform_buckets_are_the_cells_of_a_lower_tree() -> None:
    known, fine = released(paper.FEDERATED, height=10)
    index = np.minimum((known.scores * 16).astype(int), 15)
    positives, negatives = (
        np.bincount(index[known.labels == label], minlength=16) for label in (1, 0)
    )
    expected = abs(float(cell_area(positives, negatives)) - ranking.auc(known.scores, known.labels))
    assert federated_figures._equal_width(known, fine, 16) == pytest.approx(expected, abs=1e-12)


def test_as_many_buckets_as_bins_are_fitted() -> None:
    known, histogram = released(paper.FEDERATED)
    few_bins = federated_figures._recalibrated(known, histogram, "binning", 1)
    assert few_bins == pytest.approx(0.0, abs=1e-3)  # one bucket: the share of positives for all
    assert math.isnan(federated_figures._recalibrated(known, None, "binning", 1))


def test_areas_between_curves() -> None:
    line = local_targets.CURVE_POINTS
    falling = np.array([1.0, 0.5, 0.0])
    assert local_targets._area(line, falling, falling) == pytest.approx(0.0, abs=1e-12)
    raised = np.array([1.0, 0.75, 0.0])
    assert local_targets._area(line, falling, raised) == pytest.approx(1 / 8, abs=1e-3)
    part = np.array([0.75, 0.25])
    assert local_targets._area(line, part, part + 0.1) == pytest.approx(0.05, abs=1e-3)


def test_exact_curves_hold_the_exact_areas() -> None:
    known = all_records(bench())
    curves = local_targets._exact_curves(known)
    assert np.mean(curves["roc"]) == pytest.approx(known.auc, abs=1e-3)
    fraction = known.labels.mean()
    assert curves["pr"][-1] == pytest.approx(fraction)
