"""Cells of a report's tree that the rounds before it place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit import Clients, Evaluation, ScoreHistogram, binormal_scores, evaluate
from tacit.counts.placing import balanced_borders, with_edges
from tacit.metrics.cells.score_scale import named_scale
from tacit.protocol import SimulatedNoise
from tacit.results.measures.catalogue import rates_at
from tacit.running.evaluating import exact_auc
from tacit.running.simulation import simulate

PLACED = ScoreHistogram("secure-sum", 1.0)


def records(size: int = 20_000) -> Clients:
    scores, labels = binormal_scores(size // 2, size // 2, 0.8, seed=4)
    return Clients.split(scores, labels, clients=5, seed=0)


def test_without_noise_cells_hold_equal_products() -> None:
    clients = records(200_000)
    scale = named_scale("probability")
    counts = np.stack(
        [
            np.histogram(scale.positions(clients.scores[clients.labels == label]), 128, (0, 1))[0]
            for label in (1, 0)
        ]
    )
    borders = balanced_borders(scale, counts.astype(np.float64), 0.0, 6)
    edges = np.concatenate([[0.0], borders, [1.0]])
    held = [
        np.histogram(clients.scores[clients.labels == label], edges)[0].astype(np.float64)
        for label in (1, 0)
    ]
    products = np.sqrt(held[0] * held[1])
    # a part of the cells follows either class alone, and a few lie evenly
    assert np.quantile(products, 0.9) < 1.6 * products.mean()
    fixed = scale.scores(np.arange(1, 64) / 64)
    assert np.any(np.histogram(clients.scores, np.concatenate([[0.0], fixed, [1.0]]))[0] == 0)


def test_where_no_count_is_clear_cells_stay_those_of_the_scale() -> None:
    scale = named_scale("probability")
    borders = balanced_borders(scale, np.zeros((2, 128)), 50.0, 6)
    np.testing.assert_allclose(borders, scale.scores(np.arange(1, 64) / 64), rtol=1e-9)


def test_edges_take_the_place_of_the_nearest_knots() -> None:
    borders = np.linspace(0.01, 0.99, 99)
    edges = np.array([0.055, 0.5, 0.5000001, 0.9999])
    moved = with_edges(borders, edges, np.zeros(0), 99)
    assert moved.size == borders.size
    assert np.isin(edges, moved).all()
    assert np.all(np.diff(moved) > 0)
    assert np.setdiff1d(borders, moved).size == 3  # 0.5 was there
    spare = np.linspace(0, 1, 301)[1:-1]
    assert np.isin(edges, with_edges(borders[:5], edges, spare, 99)).all()
    assert with_edges(borders[:5], edges, spare, 99).size == 99


def report(clients: Clients, epsilon: float = 1.0, seed: int = 1, **settings: Any) -> Evaluation:
    return evaluate(clients, ScoreHistogram("secure-sum", epsilon, **settings), seed=seed)


@pytest.mark.parametrize("digits", [1, 2])
def test_rounded_scores_get_cells_of_their_own(digits: int) -> None:
    """What cells hide is a small part of what noise does, and the interval holds the AUC."""
    plain = records(40_000)
    rounded = Clients.split(plain.scores.round(digits), plain.labels, clients=5, seed=0)
    auc = report(rounded).auc
    assert auc.approximation_error < auc.privacy_error
    assert abs(auc.value - exact_auc(rounded)) < 5 * auc.privacy_error


class TestThePolicy:
    """What a report gives the AUC, by how much signal there is."""

    @staticmethod
    def ratio(size: int, epsilon: float, **settings: Any) -> float:
        """The median over 9 runs of the AUC's noise in its sampling error."""
        clients = records(size)
        runs = [report(clients, epsilon, seed, **settings).auc for seed in range(9)]
        return float(np.median([each.privacy_error / each.sampling_error for each in runs]))

    def test_with_much_signal_all_goes_to_the_counts(self) -> None:
        """Two rounds: a round, and a tree with the rest."""
        run = simulate(records(40_000), PLACED, SimulatedNoise(1))
        assert run.rounds == 2
        assert str(run.server_result.division).startswith("all of it for the counts")
        assert self.ratio(40_000, 1.0) < 0.3

    def test_in_between_the_auc_gets_what_it_needs(self) -> None:
        run = simulate(records(3_000), PLACED, SimulatedNoise(1))
        assert run.rounds in (3, 4)
        assert "for the AUC alone, the rest for all" in str(run.server_result.division)
        assert 0.3 < self.ratio(3_000, 1.0) < 0.47

    def test_scores_of_one_value_have_no_ratio_of_noise(self) -> None:
        one = Clients.from_arrays([0.3] * 400, [0, 0, 1, 0] * 100)
        for seed in range(4):
            line = str(simulate(one, PLACED, SimulatedNoise(seed)).server_result.division)
            assert "nan" not in line and "inf" not in line

    def test_with_little_signal_the_auc_gets_all(self) -> None:
        few = [self.ratio(500, 0.5, aim=aim) for aim in ("report", "auc")]
        assert few[0] == pytest.approx(few[1], rel=0.05)


def test_cells_end_at_the_thresholds_that_were_asked_for() -> None:
    """A rate there has no error of placement: it is that of whole cells."""
    clients = records(10_000)
    plain, result = report(clients).histogram, report(clients, thresholds=(0.6137, 0.2718))
    assert plain is not None and {0.05, 0.1, 0.2, 0.3, 0.5} <= set(plain.edges)
    assert result.histogram is not None
    assert result.decisions == (0.2718, 0.6137)
    assert rates_at(result.histogram, 0.6137)["recall"].approximation_error == 0
    assert rates_at(result.histogram, 0.6037)["recall"].approximation_error > 0


def test_thresholds_of_log_odds_are_log_odds() -> None:
    clients = records(10_000)
    protocol = ScoreHistogram("secure-sum", 1.0, scale="log-odds").deciding((0.5, 0.2))
    assert protocol.threshold_edges.tolist() == pytest.approx([np.log(0.25), 0.0])
    assert protocol.decisions == pytest.approx((0.2, 0.5))
    result = evaluate(clients, protocol, seed=1)
    assert result.histogram is not None
    assert set(protocol.threshold_edges) <= set(result.histogram.edges)


def test_the_usual_thresholds_serve_where_no_others_can() -> None:
    real = ScoreHistogram("secure-sum", 1.0, scale="real")
    assert real.deciding((0.2,)) is real
    assert real.threshold_edges.size == 0
    assert replace(real, thresholds=(7.5,)).decisions == real.decisions
