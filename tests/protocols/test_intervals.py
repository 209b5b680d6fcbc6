"""Intervals where draws of noise are few, or leave too little of a class to divide by."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit import DPAUC, Clients, FedAUC, Protocol, PublishedDPAUC, ScoreHistogram, evaluate
from tacit.counts.cell_areas import Levels
from tacit.running.evaluating import exact_auc, repeat_results
from tests.federations import binormal_clients


@pytest.mark.parametrize(
    ("protocol", "clients"),
    [
        (ScoreHistogram("secure-sum", 1.0, aim="auc"), 3),
        (FedAUC(1.0, trust="secure-sum"), 3),
        (ScoreHistogram("each", 1.0, aim="auc"), 1),
    ],
)
def test_one_draw_widens_the_interval(protocol: Protocol, clients: int) -> None:
    result = evaluate(binormal_clients(2000, 3000, clients, seed=1), protocol, seed=1)
    error, low_high = result.auc.standard_error, result.auc.interval(0.95)
    half = (low_high.high - low_high.low) / 2
    assert 0 < result.auc.laplace_error <= result.auc.privacy_error
    assert 1.961 * error < half < 2.119 * error
    assert result.to_dict()["auc"]["laplace_error"] == result.auc.laplace_error


@pytest.mark.parametrize(
    ("protocol", "clients"),
    [(DPAUC(1.0), 3), (FedAUC(1.0), 3), (ScoreHistogram("secure-sum", 1.0, 10), 3)],
)
def test_many_draws_are_taken_as_normal(protocol: Protocol, clients: int) -> None:
    result = evaluate(binormal_clients(2000, 3000, clients, seed=1), protocol, seed=1)
    assert result.auc.laplace_error == 0
    assert "laplace_error" not in result.to_dict()["auc"]


def test_the_number_alone_is_covered_as_often_as_said() -> None:
    """At epsilon 1 one draw is nearly all of the error.

    The stated coverage of 16,000 runs lies within 3.3 of its standard errors: a false alarm has a
    probability of 0.001. Normal intervals cover 0.938 or so, seven standard errors less.
    """
    clients = binormal_clients(20_000, 20_000, 1, seed=2)
    results = repeat_results(clients, FedAUC(1.0, trust="secure-sum"), 16_000, 5)
    errors, deviation = results.value - exact_auc(clients), np.sqrt(0.95 * 0.05 / 16_000)
    assert abs(np.mean(results.covers(exact_auc(clients))) - 0.95) < 3.3 * deviation
    normal = np.mean(np.abs(errors) <= 1.96 * results.standard_error)
    assert normal < 0.95 - 3.3 * deviation


RNG = np.random.default_rng(5)


@pytest.mark.parametrize("levels", [Levels(12, 3, 3.0, 4.0), Levels(12, 0, 7.0, 0.0)])
def test_the_law_of_cells_has_the_variance_of_their_weighted_sum(levels: Levels) -> None:
    weights = RNG.normal(size=(2, 12)), RNG.normal(size=(2, 12))
    law = levels.law(weights, 3, 2.0, np.zeros(2))
    assert law is not None
    noise = levels.noise(3, 2.0)
    np.testing.assert_allclose(law.variance, sum(noise.variance_of(each) for each in weights))


@pytest.mark.parametrize(("cells", "epsilon", "clients"), [(64, 0.5, 10), (600, 9.0, 1)])
def test_many_draws_have_no_law(cells: int, epsilon: float, clients: int) -> None:
    """Many small ones are normal, and the law of many cells is not computed."""
    weights = RNG.normal(size=cells), RNG.normal(size=cells)
    assert Levels(cells, 0, epsilon, 0.0).law(weights, clients, 1.0, np.zeros(())) is None


def test_few_clients_have_a_law_and_many_none() -> None:
    for clients, known in ((3, True), (40, False)):
        records = binormal_clients(400, 600, clients)
        result = tacit.evaluate(records, tacit.FedAUC(8.0), seed=1)
        assert (result.auc.law is not None) == known
        low, high = result.auc.interval(0.95)
        errors = (high - low) / 2 / result.auc.standard_error
        assert (abs(errors - 1.96) > 0.1) == known


def test_intervals_of_a_law_reach_replicates_and_the_population() -> None:
    records = binormal_clients(300, 300, 3)
    result = tacit.evaluate(records, tacit.DPAUC(8.0, 100), seed=1).auc
    assert result.law is not None
    narrow, wide = result.interval(0.95), result.interval(0.95, about="population")
    assert wide.low < narrow.low < result.value < narrow.high < wide.high
    assert math.hypot(result.sampling_error, result.standard_error) * 1.9 < wide.high - result.value


RARE: dict[str, Protocol] = {
    "FedAUC": tacit.FedAUC(0.4),
    "FedAUC, randomised response": tacit.FedAUC(3.0, trust="local"),
    "DPAUC": tacit.DPAUC(0.7),
    "DPAUC, labels": tacit.DPAUC(0.7, adjacency="label"),
    "DPAUC, Laplace": PublishedDPAUC(3.0),
    "DPAUC, Gaussian": PublishedDPAUC(0.6, mechanism="gaussian(delta=1e-6)"),
    "DPAUC, response": PublishedDPAUC(3.0, mechanism="randomised-response", adjacency="label"),
    "ScoreHistogram, secure sum": tacit.ScoreHistogram("secure-sum", epsilon=0.3),
    "ScoreHistogram, local": tacit.ScoreHistogram("local", epsilon=5.0),
    "UStatistic": tacit.UStatistic("auc", 4.0),
    "PairedUStatistic": tacit.PairedUStatistic("auc", 2.0),
    "TwoRoundAUC": tacit.TwoRoundAUC(5.0),
}
"""Settings with which the noisy class size has 1 to 3 standard errors."""


def one_percent(records: int, seed: int = 0) -> Clients:
    """Records of five clients, of which 1 % are positive, with an AUC of 0.8."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([1, 0], [records // 100, records - records // 100])
    scores = 1 / (1 + np.exp(0.6 - rng.normal(size=records) - 1.2 * labels))
    return Clients.from_arrays(scores, labels, rng.integers(0, 5, records))


@pytest.mark.parametrize("name", list(RARE))
def test_a_class_that_is_lost_in_the_noise_gives_no_figure(name: str) -> None:
    """Where only the runs that overestimate the class gave a figure, their intervals missed."""
    clients = one_percent(4_000)
    for seed in range(10):
        result = evaluate(clients, RARE[name], seed=seed)
        assert not result.has_signal
        assert result.to_dict()["auc"]["value"] is None
        assert result.to_dict()["auc"]["interval"] == [None, None]
        assert any("not enough signal at this epsilon" in warning for warning in result.warnings)


def test_few_cells_of_a_rare_class_are_covered() -> None:
    """Noise moves the area and the estimated bias of four cells in the same direction.

    400 runs know the coverage to 1.3 %.
    """
    clients, protocol = one_percent(20_000, seed=3), tacit.HierarchicalAUC(5.0, height=2)
    results = repeat_results(clients, protocol, 400, seed=12)
    assert results.covers(protocol.exact(clients)).mean() >= 0.92
