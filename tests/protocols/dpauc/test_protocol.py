"""DPAUC: accounting, cells, bias, and what it refuses."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest

from tacit import DPAUC, Clients, ClientState, DataError, NoisyScores, evaluate, repeat
from tacit.privacy.sampling.noise import NoNoise
from tacit.protocols.shared.cell_counts import cell_counts
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.running.simulation import simulate
from tests.federations import binormal_clients


@pytest.mark.parametrize(
    ("accounting", "adjacency", "distance"),
    [
        ("paper", "label", 400),
        ("paper", "record", 400),
        ("tight", "label", 200),
        ("tight", "replace", 200),
        ("tight", "record", 100),
    ],
)
def test_the_noise_on_a_count_follows_the_accounting(
    accounting: str, adjacency: str, distance: int
) -> None:
    protocol = DPAUC(2.0, 100, "laplace", accounting=accounting, adjacency=adjacency)  # type: ignore[arg-type]
    assert protocol.count_scale == distance / 2.0


@pytest.mark.parametrize(("adjacency", "scale"), [("record", 1), ("label", 1), ("replace", 2)])
def test_the_histogram_has_the_sensitivity_of_one_record(adjacency: str, scale: float) -> None:
    assert DPAUC(1.0, adjacency=adjacency).record_distance == scale  # type: ignore[arg-type]


def test_cells_count_every_record_once() -> None:
    clients = Clients.from_arrays([0.0, 0.25, 0.49, 0.5, 1.0], [1, 0, 1, 1, 0], [0, 0, 1, 1, 1])
    positives, records = cell_counts(clients, np.array([0.0, 0.5]), clients.labels)
    np.testing.assert_array_equal(records, [[2, 1], [0, 2]])
    np.testing.assert_array_equal(positives, [[1, 1], [0, 1]])


def test_replicated_labels_are_counted_as_single_ones() -> None:
    clients = binormal_clients(40, 60, 7)
    labels = np.random.default_rng(0).integers(0, 2, (5, 100)).astype(np.int8)
    edges = np.linspace(0, 1, 11)[:-1]
    several, _ = cell_counts(clients, edges, labels)
    for one, row in zip(labels, several, strict=True):
        np.testing.assert_array_equal(row, cell_counts(clients, edges, one)[0])


@pytest.mark.parametrize("score", [-0.1, 1.5])
@pytest.mark.parametrize(
    "protocol", [DPAUC(1.0), DPAUC(1.0, mechanism="laplace"), NoisyScores(1.0)]
)
def test_scores_outside_the_unit_interval_are_refused(
    score: float, protocol: DPAUC | NoisyScores
) -> None:
    clients = Clients.from_arrays([0.5, score, 0.2], [1, 0, 1])
    with pytest.raises(DataError, match=rf"scores must be in \[0, 1\].*{score}"):
        evaluate(clients, protocol)


def test_the_histogram_is_far_more_accurate_than_the_confusion_counts() -> None:
    """Spreads of 60 repetitions have 9 % error each; the ratios stand far from the bounds."""
    clients = binormal_clients(20000, 60000, 10)
    spread = {
        name: repeat(clients, protocol, 60, seed=1).std()
        for name, protocol in {
            "paper, label": DPAUC(1.0, mechanism="laplace", accounting="paper", adjacency="label"),
            "tight, record": DPAUC(1.0, mechanism="laplace"),
            "tight, label": DPAUC(1.0, mechanism="laplace", adjacency="label"),
            "histogram, record": DPAUC(1.0, second_round=0.0),
            "histogram, label": DPAUC(1.0, adjacency="label"),
        }.items()
    }
    assert spread["paper, label"] > 8 * spread["histogram, record"]
    assert spread["tight, record"] > 3 * spread["histogram, record"]
    assert spread["tight, label"] > 3 * spread["histogram, label"]


def test_clamping_bias_is_known_and_taken_out_of_the_interval() -> None:
    clients = binormal_clients(12000, 34000, 100)
    protocol = DPAUC(1.0, mechanism="laplace", accounting="paper", adjacency="label")
    server_result = repeat_results(clients, protocol, 100, seed=3)
    exact = exact_auc(clients)
    plain = np.abs(server_result.value - exact) <= 1.96 * server_result.standard_error
    assert server_result.value.mean() < exact - 0.5 * server_result.value.std()
    assert server_result.covers(exact).mean() > plain.mean() + 0.1
    warned = evaluate(clients, protocol, seed=0)
    assert any("clamping and ordering" in warning for warning in warned.warnings)


def test_the_density_inside_a_cell_is_modelled() -> None:
    clients = binormal_clients(40000, 40000, 3)
    value = simulate(
        clients, DPAUC(1.0, 20, second_round=0.0, scale="even"), NoNoise()
    ).server_result.value
    lines = simulate(
        clients, DPAUC(1.0, 21, "laplace", scale="even"), NoNoise()
    ).server_result.value
    exact = exact_auc(clients)
    assert abs(float(value) - exact) < 0.2 * abs(float(lines) - exact)


def test_flipped_labels_are_kept_for_the_next_evaluation() -> None:
    clients = binormal_clients(400, 600, 5)
    state = ClientState()
    protocol = DPAUC(1.0, mechanism="rr", adjacency="label")
    first = evaluate(clients, protocol, seed=1, state=state)
    second = evaluate(clients, protocol, seed=2, state=state)
    assert (first.spent.epsilon, second.spent.epsilon) == (1.0, 0.0)
    assert first.auc.value == second.auc.value


def test_the_curve_runs_from_corner_to_corner() -> None:
    result = evaluate(binormal_clients(4000, 6000, 5), DPAUC(4.0, second_round=0.0), seed=0)
    assert result.roc is not None
    assert result.roc.true_positive_rate[0] == pytest.approx(1.0)
    assert result.roc.false_positive_error.shape == (100,)
    assert np.isfinite(result.roc.true_positive_error).all()


def test_curve_bands_hold_their_points() -> None:
    """1,200 curves: 95 % bands cover the noiseless rates 93 to 97 % of the time on average.

    Neighbouring points move together, so the average's error is about 0.6 %; false alarm ~1e-3.
    """
    clients, protocol = binormal_clients(4000, 6000, 5), DPAUC(1.0, 20, second_round=0.0)
    truth = simulate(clients, protocol, NoNoise()).server_result.roc
    assert truth is not None
    covered = []
    for seed in range(1200):
        curve = evaluate(clients, protocol, seed=seed).roc
        assert curve is not None
        reach = 1.96 * curve.true_positive_error[1:]
        covered.append(np.abs(curve.true_positive_rate - truth.true_positive_rate)[1:] <= reach)
    assert 0.93 <= np.mean(covered) <= 0.97


def test_no_signal_gives_no_number() -> None:
    clients = binormal_clients(3, 4, 2)
    results = [evaluate(clients, DPAUC(0.01, 10), seed=s) for s in range(30)]
    silent = [r for r in results if not r.has_signal]
    assert silent
    assert all("not enough signal" in r.warnings[-1] for r in silent)
    assert all(r.to_dict()["auc"]["value"] is None for r in silent)


def test_noisy_scores_fail_and_say_so() -> None:
    clients = binormal_clients(4000, 6000, 5)
    result = evaluate(clients, NoisyScores(1.0), seed=0)
    assert 0.5 < result.auc.value < 0.62
    assert math.isnan(result.auc.standard_error)
    assert "biases the AUC towards 1/2" in result.warnings[-1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"thresholds": 1}, "thresholds must be between 2 and"),
        ({"mechanism": "x"}, "mechanism must be one of"),
        ({"accounting": "x"}, "accounting must be one of .*'paper'"),
        ({"adjacency": "x"}, "adjacency must be one of .*'replace'"),
        ({"mechanism": "rr"}, "randomised response protects labels only"),
        ({"mechanism": "gaussian"}, "gaussian noise needs a delta"),
        ({"delta": 0.1}, "delta belongs to gaussian noise"),
    ],
)
def test_settings_outside_their_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DPAUC(1.0, **settings)


@pytest.mark.parametrize("power", [1, 3, 6])
@pytest.mark.parametrize("adjacency", ["record", "label"])
def test_crowded_scores_are_known_to_hide_much(power: int, adjacency: str) -> None:
    """Scores near 0, as click rates are: the interval still covers, and the result says why."""
    plain = binormal_clients(8000, 12000, 20)
    clients = Clients(plain.scores**power, plain.labels, plain.offsets)
    protocol = DPAUC(
        6.0,
        100,
        adjacency=adjacency,  # type: ignore[arg-type]
        second_round=0.0,
        scale="even",
    )
    server_result = repeat_results(clients, protocol, 200, seed=1)
    assert server_result.covers(exact_auc(clients)).mean() > 0.85
    warned = any("what the cells hide" in w for w in evaluate(clients, protocol, seed=0).warnings)
    assert warned == (power > 1)


def test_a_class_that_may_be_empty_is_warned_of() -> None:
    clients = Clients.split(np.linspace(0, 1, 200), np.ones(200, dtype=int), clients=5, seed=0)
    results = [evaluate(clients, DPAUC(1.0, 20), seed=s) for s in range(20)]
    for result in results:
        said = " ".join(result.warnings)
        assert "smaller class" in said or "not enough signal" in said


def test_gaussian_noise_refuses_a_delta_that_its_grid_would_eat() -> None:
    with pytest.raises(ValueError, match="delta must be at least"):
        DPAUC(1.0, mechanism="gaussian", delta=1e-20)


def test_the_curve_of_confusion_counts_belongs_to_its_thresholds() -> None:
    """400 curves, unclamped: errors of 3.5 % in each spread, averaged over 19 thresholds."""
    clients = binormal_clients(8000, 12000, 5)
    protocol = DPAUC(1.0, 20, "laplace", clamp=False, scale="even")
    truth = simulate(clients, protocol, NoNoise()).server_result.roc
    assert truth is not None
    curves = [evaluate(clients, protocol, seed=s).roc for s in range(400)]
    rates = np.array([curve.true_positive_rate for curve in curves if curve is not None])
    stated = np.array([curve.true_positive_error for curve in curves if curve is not None])
    middle = slice(4, 14)
    observed = np.sqrt(((rates - truth.true_positive_rate) ** 2).mean(axis=0))[middle]
    assert np.mean(observed / stated.mean(axis=0)[middle]) == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("adjacency", ["label", "record"])
def test_empty_cells_do_not_make_the_others_crowds(adjacency: Literal["label", "record"]) -> None:
    """Smooth scores fill a fifth of the scale's cells, and hide far less than noise."""
    clients = binormal_clients(20_000, 20_000, 3, seed=1)
    protocol = DPAUC(1.0, adjacency=adjacency, second_round=0.0)
    result = evaluate(clients, protocol, seed=1)
    assert abs(result.auc.value - exact_auc(clients)) < 4 * result.auc.standard_error
    assert result.auc.approximation_error < 1e-3
    one_score = clients.rescored(lambda scores: np.where(scores < 0.4, scores, 0.7))
    crowded = evaluate(one_score, protocol, seed=1)
    assert crowded.auc.approximation_error > 0.01
