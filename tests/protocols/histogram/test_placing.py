"""Cells of a summed tree that a first count places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit import Clients, ScoreHistogram, binormal_scores
from tacit.metrics.cells.score_scale import named_scale
from tacit.privacy.sampling.noise import SimulatedNoise
from tacit.protocol.conversation import ClientState, Query, View
from tacit.protocols.histogram.steps import summed_trees
from tacit.protocols.histogram.trees import (
    PLACING_CELLS,
    balanced_knots,
    placing_counts,
    placing_field,
)
from tacit.protocols.shared.cells import KNOTS
from tacit.running.simulation import simulate
from tacit_studies.floors.curve_areas import areas_between, exact_curves

PLACED = ScoreHistogram("secure-sum", 1.0, aim="curves")


def records(size: int = 20_000) -> Clients:
    scores, labels = binormal_scores(size // 2, size // 2, 0.8, seed=4)
    return Clients.split(scores, labels, clients=5, seed=0)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("adjacency", ["record", "replace"])
def test_both_rounds_spend_epsilon_and_no_more(epsilon: float, adjacency: str) -> None:
    protocol = ScoreHistogram("secure-sum", epsilon, aim="curves", adjacency=adjacency)  # type: ignore[arg-type]
    tree = sum(protocol.level_parts(protocol.tree_height(5)).values())
    assert placing_field(protocol).epsilon + tree == pytest.approx(epsilon, rel=1e-12)
    spent = simulate(records(2_000), protocol, SimulatedNoise(1)).spent.epsilon
    assert epsilon * (1 - 1e-12) < spent <= epsilon


def test_the_first_count_has_the_noise_that_it_pays_for() -> None:
    """The variance of 40 x 256 draws, whose relative standard error is about 0.022.

    A scale 30 % off is 18 standard errors away or more; a false alarm has a probability below 1e-6.
    """
    clients = records(200)
    query = Query(placing_counts, PLACED, broadcast={"clients": 5}, view=View.SUM)
    reply = placing_counts.answer(clients, query, SimulatedNoise(3, 40), ClientState())
    counts = np.asarray(reply["cells"], dtype=np.float64)
    assert counts.shape == (40, 2 * PLACING_CELLS)
    spread = np.mean((counts - counts.mean(axis=0)) ** 2) * 40 / 39
    assert spread == pytest.approx(2 * 32**2, rel=0.15)


def test_without_noise_cells_hold_equal_products() -> None:
    clients = records(200_000)
    scale = named_scale("probability")
    counts = np.stack(
        [
            np.histogram(scale.positions(clients.scores[clients.labels == label]), 128, (0, 1))[0]
            for label in (1, 0)
        ]
    )
    knots = balanced_knots(scale, counts.astype(np.float64), 0.0, 6)
    edges = np.concatenate([[0.0], knots, [1.0]])
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
    knots = balanced_knots(scale, np.zeros((2, PLACING_CELLS)), 50.0, 6)
    np.testing.assert_allclose(knots, scale.scores(np.arange(1, 64) / 64), rtol=1e-9)


def test_knots_come_where_they_were_agreed_and_nowhere_else() -> None:
    clients, knots = records(200), np.linspace(0.1, 0.9, 1023)
    shared = {"clients": 5, "height": 10}
    plain = replace(PLACED, height=10)
    for protocol, fields in ((PLACED, {}), (plain, {KNOTS: knots})):
        query = Query(summed_trees, protocol, broadcast={**shared, **fields}, view=View.SUM)
        with pytest.raises(ValueError, match="where they were agreed"):
            summed_trees.answer(clients, query, SimulatedNoise(1), ClientState())
    query = Query(summed_trees, PLACED, broadcast={**shared, KNOTS: knots[:-1]}, view=View.SUM)
    with pytest.raises(ValueError, match="1023"):
        summed_trees.answer(clients, query, SimulatedNoise(1), ClientState())


def test_whatever_the_knots_a_record_moves_one_count_of_each_level() -> None:
    """The same noise on both data, so that only the counts differ."""
    scores, labels = binormal_scores(30, 30, 0.8, seed=1)
    rng = np.random.default_rng(0)
    for knots in (np.sort(rng.uniform(0, 1, 1023)), np.linspace(0.4, 0.41, 1023)):
        shared = {"clients": 1, "height": 10, KNOTS: knots}
        query = Query(summed_trees, PLACED, broadcast=shared, view=View.SUM)
        replies = [
            summed_trees.answer(
                Clients.from_arrays(scores[:n], labels[:n]),
                query,
                SimulatedNoise(7),
                ClientState(),
            )
            for n in (60, 59)
        ]
        for level in PLACED.level_parts(10):
            apart = np.abs(np.subtract(*(np.asarray(reply[f"level-{level}"]) for reply in replies)))
            assert apart.sum() == 1


def test_replicates_have_their_own_cells() -> None:
    run = simulate(records(4_000), PLACED, SimulatedNoise(5, replicates=3))
    assert np.shape(run.server_result.value) == (3,)
    assert np.unique(run.server_result.value).size == 3


def test_placed_cells_leave_less_area_than_fixed_ones() -> None:
    """Mean ROC areas of 12 runs; about 0.7 of that of fixed cells of the same number."""
    clients = records()
    exact = exact_curves(clients.scores, clients.labels)

    def area(protocol: ScoreHistogram, seed: int) -> float:
        histogram = simulate(clients, protocol, SimulatedNoise(seed)).server_result.histogram
        assert histogram is not None
        return areas_between(exact, histogram.smooth_curves())[0]

    placed, fixed = (
        np.mean([area(each, seed) for seed in range(12)])
        for each in (PLACED, replace(PLACED, height=10))
    )
    assert placed < fixed


def test_the_other_forms_place_no_cells() -> None:
    for settings in ({"height": 8}, {"aim": "auc"}, {"aim": "all"}):
        assert not replace(PLACED, **settings).places_trees
    assert not ScoreHistogram("secure-sum", 1.0, aim="curves", scale="even").places_trees
