"""Planned bytes and rounds against what a simulated run of the whole federation sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tacit
import tacit.protocol as tp
from tacit.protocol import Clients, ClientState, NoiseSource, Query, Reply, Scenario, Shape
from tacit.protocol.scenario import DRY_RECORDS
from tacit.protocol.values import encode_query
from tacit.protocols.fedauc.protocol import planned_first_round
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of

EXACT = [
    tacit.ExactAUC(),
    tacit.FedAUC(1.0),
    tacit.FedAUC(1.0, trust="local"),
    tacit.PublishedFedAUC(1.0),
    tacit.DPAUC(1.0, 100, adjacency="label"),
    tacit.PublishedDPAUC(1.0, 40, "randomised-response", "label"),
    tacit.PublishedDPAUC(1.0, 30),
    tacit.ScoreHistogram("secure-sum", 1.0, 6),
    tacit.ScoreHistogram("exact-sum", height=5),
    tacit.TwoRoundAUC(1.0),
    tacit.TwoRoundAUC(1.0, "public"),
    tacit.HierarchicalAUC(1.0, 4),
    tacit.UStatistic("auc(domain=range(bins=4))", 1.0),
    tacit.UStatistic("auc(domain=range(bins=200))", 1.0),
    tacit.PairedUStatistic("auc", 1.0),
    tacit.PairedUStatistic("auc", 1.0, matchings=2, noise="laplace"),
]


@pytest.mark.parametrize("protocol", EXACT, ids=lambda own: own.name)
@pytest.mark.parametrize("clients", [10, 1000])
def test_bytes_and_rounds_are_those_of_a_run(protocol: tacit.Protocol, clients: int) -> None:
    """Queries to 2 %, or to a few digits of the numbers that a query writes out."""
    scenario = Scenario(2000, 600, clients, 1.0)
    drawn, traffic = scenario.drawn(Shape(0.8), 0), protocol.traffic(scenario)
    run = simulate(drawn, protocol, tp.SimulatedNoise(1))
    assert abs(traffic.bytes_per_client - run.bytes_sent.mean()) < 1
    assert traffic.rounds == run.rounds
    if clients == 10:
        received, planned = queries_of(protocol, drawn), traffic.bytes_to_client
        assert planned is not None
        assert abs(planned - received) < max(0.02 * received, 30)


@pytest.mark.parametrize(
    "protocol", [tacit.DPAUC(1.0), tacit.DPAUC(1.0, scale="even")], ids=["placed", "equal"]
)
@pytest.mark.parametrize("clients", [10, 1000])
def test_where_noise_chooses_the_looks_a_plan_is_one_of_the_runs(
    protocol: tacit.Protocol, clients: int
) -> None:
    scenario = Scenario(2000, 600, clients, 1.0)
    drawn, traffic = scenario.drawn(Shape(0.8), 0), protocol.traffic(scenario)
    runs = [simulate(drawn, protocol, tp.SimulatedNoise(seed)) for seed in range(1, 13)]
    assert (traffic.bytes_per_client, traffic.rounds) in {
        (round(float(run.bytes_sent.mean())), run.rounds) for run in runs
    }
    received = [queries_of(protocol, drawn, seed) for seed in range(1, 13)]
    planned = traffic.bytes_to_client
    assert planned is not None
    assert any(abs(planned - each) < max(0.02 * each, 30) for each in received)


def test_a_first_round_is_counted() -> None:
    scenario, protocol = Scenario(20_000, 6_000, 5, 1.0), tacit.FedAUC(1.0)
    run = simulate(scenario.drawn(Shape(0.8), 0), protocol, tp.SimulatedNoise(1))
    assert planned_first_round(protocol, scenario) > 0
    assert protocol.traffic(scenario).rounds == run.rounds == 3
    assert protocol.traffic(scenario).bytes_per_client == run.bytes_sent.mean()


def test_unary_reports_have_an_expected_size() -> None:
    """2,000 records draw their levels: within 5 standard errors, or 7 %."""
    scenario, protocol = Scenario(2000, 600, 10, 1.0), tacit.ScoreHistogram("local", 1.0, 5)
    run = simulate(scenario.drawn(Shape(0.8), 0), protocol, tp.SimulatedNoise(1))
    planned = protocol.traffic(scenario).bytes_per_client
    assert abs(planned / run.bytes_sent.mean() - 1) < 0.07


def test_cryptography_is_counted_apart() -> None:
    scenario = Scenario(1000, 300, 1000, 1.0)
    assert tacit.PairedUStatistic("auc", 1.0).traffic(scenario).beyond > 300
    plain = tacit.FheAUC(most_records=1000).traffic(scenario)
    checked = tacit.FheAUC(scheme="bfv(adversary=malicious)", most_records=1000).traffic(scenario)
    assert checked.bytes_per_client == 2 * plain.bytes_per_client
    assert (plain.rounds, checked.rounds) == (4, 5)


def test_masked_values_are_counted_to_the_byte() -> None:
    scores, labels = tacit.binormal_scores(300, 700, 0.8, seed=0)
    clients = Clients.split(scores, labels, 5, seed=0)
    cases = [(100, 1000, "semi-honest"), (40, 2**20, "semi-honest"), (40, 2**20, "malicious")]
    for thresholds, most, adversary in cases:
        protocol = tacit.EncryptedAUC(thresholds, adversary, most_records=most, perturbed=False)
        sent = simulate(clients, protocol, tp.NoNoise()).bytes_sent
        planned = protocol.traffic(Scenario(1000, 300, 5, 1.0))
        assert planned.bytes_per_client == pytest.approx(sent.mean(), abs=0.5)
        assert planned.rounds == len(protocol.steps)


def queries_of(protocol: tacit.Protocol, clients: Clients, seed: int = 1) -> float:
    """The mean bytes of the queries that a client receives in a run of all clients."""
    asked = conversation_of(clients, protocol, tp.SimulatedNoise(seed), ClientState())
    return sum(
        float(np.mean([len(encode_query(query.part(k, k + 1))) for k in range(clients.count)]))
        for query, _ in asked
    )


@tp.step()
def send_twice(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Every score twice, and a constant."""
    scores = clients.ragged(clients.scores)
    return {"first": scores, "second": scores, "constant": np.zeros(clients.count)}


@tp.step()
def count_all(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"records": np.asarray(clients.records)}


@dataclass(frozen=True)
class Growing(tacit.Protocol):
    """A protocol of no family: its traffic is nowhere written down."""

    name = "growing"
    steps = (send_twice, count_all)
    guarantee: tacit.Cost = tp.UNPROTECTED

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    def replicate_size(self, clients: Clients) -> int:
        return clients.records

    def conversation(self, clients: int) -> tp.Conversation:
        yield Query(send_twice, self)
        yield Query(count_all, self, view=tp.View.SUM)
        unknown = np.asarray(np.nan)
        return tp.ServerResult(unknown, unknown, unknown, unknown, unknown)


@pytest.mark.parametrize("sizes", [(2, 2), (100, 40), (640, 10), (30_000, 10), (30_001, 10)])
def test_a_protocol_that_says_nothing_is_measured(sizes: tuple[int, int]) -> None:
    """Clients of one record, of a few, and of more than a dry run's: along a straight line."""
    records, clients = sizes
    scenario, protocol = Scenario(records, records // 2, clients, 1.0), Growing()
    run = simulate(scenario.drawn(Shape(0.8), 0), protocol, tp.SimulatedNoise(1))
    traffic = protocol.traffic(scenario)
    assert abs(traffic.bytes_per_client / run.bytes_sent.mean() - 1) < 0.02
    assert traffic.rounds == run.rounds == 2


def test_a_plan_of_large_clients_measures_small_ones() -> None:
    """A plan's time does not depend on the number of records."""
    small, large = (Scenario(10 * n, 2 * n, 10, 1.0) for n in (2 * DRY_RECORDS, 10**9))
    bytes_each = [Growing().traffic(scenario).bytes_per_client for scenario in (small, large)]
    assert bytes_each[1] - bytes_each[0] == 16 * (10**9 - 2 * DRY_RECORDS)


class Changing(Growing):
    """A protocol that skips a round where there are few records."""

    def conversation(self, clients: int) -> tp.Conversation:
        reply = yield Query(count_all, self, view=tp.View.SUM)
        if np.asarray(reply["records"]) > 3 * DRY_RECORDS * clients / 2:
            yield Query(send_twice, self)
        unknown = np.asarray(np.nan)
        return tp.ServerResult(unknown, unknown, unknown, unknown, unknown)


def test_rounds_that_depend_on_records_are_those_of_the_larger_dry_run() -> None:
    large, small = (Scenario(8 * n, 4 * n, 8, 1.0) for n in (10_000, DRY_RECORDS))
    assert Changing().traffic(large).rounds == 2
    assert Changing().traffic(small).rounds == 1
