"""Predicted bytes and rounds against what a simulated run sends."""

from __future__ import annotations

import pytest

from tacit.planning.ranked_scores import opening_share
from tacit.planning.scenario import Scenario, Shape
from tacit.planning.traffic import traffic_of
from tacit.privacy.noise import SimulatedNoise
from tacit.protocols.baselines import ExactAUC
from tacit.protocols.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.protocols.score_histogram import ScoreHistogram
from tacit.protocols.two_round_auc import TwoRoundAUC
from tacit.protocols.ustatistic import UStatistic
from tacit.running.simulation import simulate

EXACT = [
    FedAUC(1.0),
    FedAUC(1.0, "randomised-response"),
    DPAUC(1.0, 50),
    DPAUC(1.0, 100, adjacency="label"),
    DPAUC(1.0, 40, "randomised-response", adjacency="label"),
    ScoreHistogram("distributed-dp", 1.0, 6),
    ScoreHistogram("distributed-dp", 1.0, 6, second_round=0.5),
    ScoreHistogram("secure-aggregation", height=5),
    TwoRoundAUC(1.0),
    TwoRoundAUC(1.0, "public"),
    HierarchicalAUC(1.0, 4),
    UStatistic("auc", 1.0, bins=4),
    UStatistic("auc", 1.0, bins=200),
    PairedUStatistic("auc", 1.0),
    PairedUStatistic("auc", 1.0, matchings=2, noise="laplace"),
]


@pytest.mark.parametrize("protocol", EXACT, ids=lambda own: own.name)
@pytest.mark.parametrize("clients", [10, 1000])
def test_bytes_and_rounds_are_those_of_a_run(protocol: Protocol, clients: int) -> None:
    scenario = Scenario(2000, 600, clients, 1.0)
    run = simulate(scenario.drawn(Shape(0.8), 0), protocol, SimulatedNoise(1))
    found = traffic_of(protocol, scenario)
    assert abs(found.bytes_per_client - run.bytes_sent.mean()) < 1
    assert found.rounds == run.rounds


def test_a_first_round_is_counted() -> None:
    scenario, protocol = Scenario(20_000, 6_000, 5, 1.0), FedAUC(1.0)
    run = simulate(scenario.drawn(Shape(0.8), 0), protocol, SimulatedNoise(1))
    assert opening_share(protocol, scenario) > 0
    assert traffic_of(protocol, scenario).rounds == run.rounds == 3
    assert traffic_of(protocol, scenario).bytes_per_client == run.bytes_sent.mean()


def test_unary_reports_have_an_expected_size() -> None:
    """2,000 records draw their levels: within 5 standard errors, or 7 %."""
    scenario, protocol = Scenario(2000, 600, 10, 1.0), ScoreHistogram("local-dp", 1.0, 5)
    run = simulate(scenario.drawn(Shape(0.8), 0), protocol, SimulatedNoise(1))
    found = traffic_of(protocol, scenario).bytes_per_client
    assert abs(found / run.bytes_sent.mean() - 1) < 0.07


def test_cryptography_is_counted_apart() -> None:
    scenario = Scenario(1000, 300, 1000, 1.0)
    assert traffic_of(PairedUStatistic("auc", 1.0), scenario).beyond > 300
    plain = traffic_of(EncryptedAUC(most_records=1000), scenario)
    checked = traffic_of(EncryptedAUC(adversary="malicious", most_records=1000), scenario)
    assert checked.bytes_per_client == 2 * plain.bytes_per_client
    assert plain.rounds == 4


def test_baselines_have_no_plan() -> None:
    with pytest.raises(TypeError, match="no plan for ExactAUC"):
        traffic_of(ExactAUC(), Scenario(10, 3, 2, 1.0))
