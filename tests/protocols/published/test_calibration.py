"""Cormode and Markov's histograms: sampled levels cost epsilon once, and their errors hold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from tacit import Clients
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.response import Choices
from tacit.protocol import Adjacency, ClientState, Cost, Query, SimulatedNoise, View
from tacit.protocols.histogram.steps import leaves_of
from tacit.protocols.published.calibration import LevelSum, PublishedHistogram, sampled_trees
from tacit.running.simulation import simulate
from tacit.testing.recording import Recorder, values_of
from tests.federations import binormal_clients
from tests.protocols.histogram.losses import HEIGHT, answer, hospital, worst_loss
from tests.protocols.histogram.test_protocol import loss_of_counts

SAMPLE = LevelSum(budget="sample")
SAMPLED = {name: PublishedHistogram(SAMPLE, 1.5, HEIGHT, name) for name in ("record", "replace")}


@dataclass
class Chosen(Recorder):
    """Records choose this level, or these."""

    levels: Any = 0

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> Any:
        if isinstance(distribution, Choices):
            return np.broadcast_to(np.asarray(self.levels), shape)
        return super().draw(distribution, shape)


def query_of(protocol: PublishedHistogram) -> Query:
    shared = {"clients": 1, "height": HEIGHT}
    return Query(sampled_trees, protocol, broadcast=shared, view=View.SUM)


@pytest.mark.parametrize("name", list(SAMPLED))
def test_a_record_on_one_level_spends_epsilon_once(name: str) -> None:
    """Whichever level records choose: what others chose does not matter."""
    query = query_of(SAMPLED[name])
    cost = query.step.cost(hospital(), query, ClientState())
    assert cost == Cost(1.5, adjacency=Adjacency(name))
    losses = [
        worst_loss(query, hospital(), partial(Chosen, levels=level)) for level in range(HEIGHT)
    ]
    assert losses == pytest.approx([cost.epsilon] * HEIGHT, rel=1e-12)


def test_a_record_is_counted_on_the_level_that_it_chose() -> None:
    levels = (0, 1, 2, 2, 1, 0)
    reply = answer(query_of(SAMPLED["record"]), hospital(), Chosen(levels=levels))
    for level in (2, 3, 4):
        mine = np.flatnonzero(np.array(levels) == level - 2)
        leaves = leaves_of(hospital(), HEIGHT, SAMPLED["record"])[mine]
        expected = np.bincount(leaves >> (HEIGHT + 1 - level), minlength=1 << level)
        np.testing.assert_array_equal(values_of(reply[f"level-{level}"]), expected)


@pytest.fixture(scope="module")
def clients() -> Clients:
    return binormal_clients(8000, 12000, 20, seed=5)


def test_what_is_left_of_the_guarantee_is_said(clients: Clients) -> None:
    protocol = PublishedHistogram(SAMPLE, 1.0, 3)
    run = simulate(clients, protocol, SimulatedNoise(1), asked=25)
    assert run.server_result.protection is not None
    assert run.server_result.protection.epsilon == pytest.approx(loss_of_counts(1.0, 0.8), rel=1e-3)
    assert run.spent == protocol.guarantee


@pytest.mark.parametrize("asked", [None, 40, 300])
def test_more_buckets_than_the_counts_support_are_warned_of(asked: int | None) -> None:
    protocol = PublishedHistogram("secure-sum", 1.0, aim="auc", buckets=asked)
    clients = binormal_clients(2000, 3000, 5)
    server_result = simulate(clients, protocol, SimulatedNoise(2)).server_result
    assert server_result.histogram is not None
    supported = server_result.histogram.supported
    assert 40 < supported < 300
    warned = [each for each in server_result.warnings if "more than these counts" in each]
    assert len(warned) == (asked == 300)
    assert all("300 buckets are more" in w and f"with {supported} each" in w for w in warned)
