"""Bounds of summed numbers hold for all data and noise; clients count what they may count."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit import Clients, FedAUC, PublishedHistogram, ScoreHistogram
from tacit.privacy.distributions import shared_laplace_tail
from tacit.protocol import DataError, NoiseSource, NoNoise, SimulatedNoise, fields
from tacit.protocol.fields import runs_of
from tacit.protocol.steps import WRAP_BITS, ClientState, Query, View
from tacit.running.session.messages import Agreement
from tacit.testing.checks import conversation_of
from tacit.testing.rehearsal import Keys, rehearse
from tests.federations import binormal_clients

SUMMED: dict[str, Any] = {
    "exact": ScoreHistogram("exact-sum", height=4),
    "noisy": ScoreHistogram("secure-sum", 1.0, 4),
    "replace": ScoreHistogram("secure-sum(dropouts=0.3)", 1.0, 4, adjacency="replace"),
    "sampled": PublishedHistogram("secure-sum(budget=sample)", 1.0, 4),
    "two rounds": ScoreHistogram("secure-sum", 4.0, 4, aim="auc"),
    "ranks": FedAUC(4.0, trust="secure-sum"),
}


def summed_queries(
    protocol: Any, clients: Clients, noise: NoiseSource | None = None
) -> list[tuple[Query, Any]]:
    """Every query for a sum, with the sum over all clients; it is exact without noise."""
    asked = conversation_of(clients, protocol, noise or NoNoise(), ClientState())
    return [(query, reply) for query, reply in asked if query.view is View.SUM]


@pytest.mark.parametrize("scale", [0.3, 1.0, 40.0, 2.0**16])
def test_noise_passes_its_tail_as_rarely_as_stated(scale: float) -> None:
    """Of discrete Laplace noise, whose tail is ``2 b^z / (1+b)``; the bound is at most 1.2 times
    the least one where the noise is wider than an integer."""
    base = -1 / scale
    tail = shared_laplace_tail(scale, 1.0, WRAP_BITS)
    assert math.log(2 / (1 + math.exp(base))) + tail * base <= -WRAP_BITS * math.log(2)
    least = scale * (WRAP_BITS * math.log(2) + math.log(2 / (1 + math.exp(base))))
    assert tail <= 1.2 * least + 1


@pytest.mark.parametrize("shares", [0.3, 1.25, 2.0, 7.5])
def test_any_number_of_shares_passes_its_tail_as_rarely_as_stated(shares: float) -> None:
    """The distribution of the difference of two negative binomial draws, summed to 2**-20."""
    scale, bits, size = 5.0, 20, 4096
    draw = stats.nbinom(shares, -math.expm1(-1 / scale)).pmf(np.arange(size))
    difference = np.convolve(draw, draw[::-1])
    tail = shared_laplace_tail(scale, shares, bits)
    passes = 2 * difference[size - 1 + tail :].sum()
    assert passes <= 2.0**-bits
    assert passes >= 2.0 ** -(bits + 10)


def test_noise_of_scale_zero_has_no_tail() -> None:
    assert shared_laplace_tail(0.0, 1.0, WRAP_BITS) == 0


@pytest.mark.parametrize("name", SUMMED)
def test_no_data_passes_the_exact_part_of_a_bound(name: str) -> None:
    """All records on one point, or apart, or random: the exact sums stay in their widths, with room
    for just as many records of a client as there are."""
    rng = np.random.default_rng(0)
    halves = np.arange(300) % 2
    for scores, labels in (
        (np.zeros(300), halves),
        (np.ones(300), halves),
        (halves.astype(float), halves),
        (1.0 - halves, halves),
        (rng.random(300), rng.integers(0, 2, 300)),
    ):
        clients = Clients.split(scores, labels, clients=3)
        for query, reply in summed_queries(SUMMED[name], clients):
            asked = replace(query, most_records=100)
            assert query.step.bounds is not None
            bounds = query.step.bounds(asked)
            assert bounds.keys() == reply.keys()
            for field, numbers in reply.items():
                assert np.max(np.abs(numbers)) <= bounds[field]


@pytest.mark.parametrize("name", SUMMED)
def test_noise_of_all_clients_stays_in_its_width(name: str) -> None:
    """The widths that follow from the bounds hold the sums of 100 runs with all their noise."""
    clients = binormal_clients(150, 150, 3)
    for query, reply in summed_queries(SUMMED[name], clients, SimulatedNoise(0, replicates=100)):
        runs = runs_of(replace(query, most_records=300))
        for run, numbers in zip(runs, reply.values(), strict=True):
            assert np.max(np.abs(numbers)) < 2 ** (run.bits - 1)


@pytest.mark.parametrize("name", SUMMED)
def test_messages_of_fewer_records_are_shorter_and_give_the_same(name: str) -> None:
    clients, protocol = binormal_clients(150, 150, 3), SUMMED[name]
    runs = [
        rehearse(clients, protocol, noise=lambda _: NoNoise(), most_records=records)
        for records in (300, 2**32)
    ]
    assert runs[0].server_result.value == runs[1].server_result.value
    saved = runs[1].bytes_sent - runs[0].bytes_sent
    assert np.all(saved > 0) or name == "ranks"


def test_a_party_with_too_many_records_is_cut_and_not_refused() -> None:
    """With room for 60 records of each, about 75 of a class on one point count as 60."""
    scores, labels = np.zeros(450), np.repeat([1, 0], 225)
    clients = Clients.split(scores, labels, clients=3, seed=0)
    protocol = ScoreHistogram("exact-sum", height=2)
    whole = rehearse(clients, protocol)
    cut = rehearse(clients, protocol, most_records=60)
    assert not cut.refusals and cut.members == (0, 1, 2)
    assert whole.server_result.histogram is not None and cut.server_result.histogram is not None
    assert np.sum(whole.server_result.histogram.counts) == 450
    assert np.sum(cut.server_result.histogram.counts) == 6 * 60


def test_cutting_moves_no_number_by_more_than_a_neighbour_does() -> None:
    """One record more, with room for more, exactly as many, and fewer records."""
    protocol = ScoreHistogram("secure-sum", 1.0, 3)
    query = next(protocol.conversation(3))
    for records in (1, 49, 50, 51, 1000):
        asked = replace(query, most_records=records)
        replies = [
            asked.step.answer(
                Clients.split(np.full(size, 0.4), np.ones(size, dtype=int), clients=1),
                asked,
                NoNoise(),
                ClientState(),
            )
            for size in (49, 50, 51)
        ]
        for less, more in pairwise(replies):
            for name in less:
                assert np.sum(np.abs(np.asarray(more[name]) - np.asarray(less[name]))) <= 1


def test_agreements_differ_in_the_records_that_sums_have_room_for() -> None:
    keys = Keys.generate(3)
    protocol = ScoreHistogram("secure-sum", 1.0)
    usual, named = keys.agreement(protocol), keys.agreement(protocol, most_records=1000)
    assert usual.digest == keys.agreement(protocol, most_records=2**32).digest != named.digest
    for records in (0, 2**32 + 1):
        with pytest.raises(ValueError, match=f"most_records must be from 1 to .*, got {records}"):
            Agreement(protocol, named.parties, named.coordinator, most_records=records)


PROTOCOLS = {
    "one round": ScoreHistogram("secure-sum", 2.0, 4),
    "two rounds": ScoreHistogram("secure-sum", 4.0, 4, aim="auc"),
    "looks": ScoreHistogram("secure-sum", 4.0),
}


def stated(protocol: ScoreHistogram) -> tuple[float, ...]:
    clients = binormal_clients(1500, 1500, 3)
    result = rehearse(clients, protocol, noise=lambda _: NoNoise()).server_result
    fields = result.value, result.privacy_error, result.approximation_error, result.positives_error
    return tuple(float(np.asarray(field)) for field in fields)


@pytest.mark.parametrize(
    ("name", "added"),
    [("one round", -2), ("one round", 5), ("two rounds", -7), ("looks", -2), ("looks", 5)],
)
def test_a_party_that_counts_itself_otherwise_changes_nothing(
    name: str, added: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, answers = stated(PROTOCOLS[name]), []
    flattened = fields.flattened

    def lying(reply: Any, layout: Any) -> Any:
        answers.append(reply)
        claimed = reply["clients"] + added * (len(answers) % 3 == 1)
        return flattened({**reply, "clients": claimed}, layout)

    monkeypatch.setattr(fields, "flattened", lying)
    assert stated(PROTOCOLS[name]) == honest
    assert answers


@pytest.mark.parametrize("claimed", [-3, 0, 4, 2**40])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_sum_over_no_possible_number_of_clients_is_refused(name: str, claimed: int) -> None:
    """Where nobody counts the clients but they themselves."""
    clients, conversation = binormal_clients(150, 150, 3), PROTOCOLS[name].conversation(3)
    query = next(conversation)
    reply = query.step.answer(clients, query, NoNoise(), ClientState())
    with pytest.raises(DataError, match=f"a sum must be over 1 to 3 clients, got {claimed}"):
        conversation.send({**reply, "clients": np.asarray(claimed)})
