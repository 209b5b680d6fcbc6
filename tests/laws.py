"""Laws that every protocol obeys. A protocol added to ``PROTOCOLS`` inherits them all."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from tacit import (
    DPAUC,
    Clients,
    EncryptedAUC,
    ExactAUC,
    FedAUC,
    HierarchicalAUC,
    Memory,
    NoisyScores,
    PairedUStatistic,
    Protocol,
    ScoreHistogram,
    TwoRoundAUC,
    UStatistic,
    evaluate,
)
from tacit.metrics.curves import cell_area, density_correction
from tacit.metrics.tree_noise import TreeNoise
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.privacy.noise import NoiseSource, NoNoise, SystemNoise
from tacit.protocols.conversation import Ask, Reply, View, stack, total
from tacit.protocols.dpauc import cell_counts
from tacit.protocols.messages import decode, encode, reply_of, sizes_by_client, sum_size
from tacit.protocols.tree_findings import best_depth
from tacit.protocols.tree_steps import places_of
from tacit.running.evaluating import exact_auc, repeat_findings
from tacit.running.simulation import simulate
from tests.federations import binormal_clients, federations
from tests.recording import Loss, Recorder, Rescaled, loss_between, neighbours, values_of

PROTOCOLS: dict[str, Protocol] = {
    "fedauc": FedAUC(1.0),
    "fedauc-large-epsilon": FedAUC(6.0),
    "fedauc-laplace": FedAUC(1.0, "laplace"),
    "fedauc-discrete-laplace": FedAUC(1.0, "discrete-laplace"),
    "fedauc-gaussian": FedAUC(1.0, "gaussian", delta=1e-6),
    "fedauc-adaptive": FedAUC(1.0, "laplace", "adaptive"),
    "fedauc-adaptive-staircase": FedAUC(1.0, "staircase", "adaptive"),
    "fedauc-adaptive-gaussian": FedAUC(1.0, "gaussian", "adaptive", delta=1e-6),
    "fedauc-orthogonal": FedAUC(1.0, "laplace", "orthogonal", beta=0.3),
    "fedauc-local": FedAUC(1.0, "laplace", "fixed", alpha=0.6),
    "fedauc-global": FedAUC(1.0, "laplace", "fixed", sensitivity="global"),
    "fedauc-response": FedAUC(1.0, "randomised-response"),
    "fedauc-mpc": FedAUC(1.0, ranks="mpc"),
    "dpauc": DPAUC(1.0, 20),
    "dpauc-label": DPAUC(1.0, 20, adjacency="label"),
    "dpauc-replace": DPAUC(1.0, 20, adjacency="replace"),
    "dpauc-laplace": DPAUC(1.0, 20, "laplace"),
    "dpauc-laplace-label": DPAUC(1.0, 20, "laplace", adjacency="label"),
    "dpauc-laplace-replace": DPAUC(1.0, 20, "laplace", adjacency="replace"),
    "dpauc-laplace-paper": DPAUC(1.0, 20, "laplace", accounting="paper", adjacency="label"),
    "dpauc-laplace-unclamped": DPAUC(1.0, 20, "laplace", clamp=False),
    "dpauc-gaussian": DPAUC(1.0, 20, "gaussian", delta=1e-6),
    "dpauc-gaussian-label": DPAUC(1.0, 20, "gaussian", adjacency="label", delta=1e-6),
    "dpauc-response": DPAUC(1.0, 20, "randomised-response", adjacency="label"),
    "histogram-secure": ScoreHistogram("secure-aggregation", height=5),
    "histogram": ScoreHistogram("distributed-dp", 1.0, 5),
    "histogram-replace": ScoreHistogram("distributed-dp", 1.0, 5, adjacency="replace"),
    "histogram-even": ScoreHistogram("distributed-dp", 1.0, 5, aim="even"),
    "histogram-second": ScoreHistogram("distributed-dp", 1.0, 5, second_round=0.5),
    "histogram-second-replace": ScoreHistogram(
        "distributed-dp", 1.0, 5, adjacency="replace", second_round=0.5
    ),
    "histogram-sample": ScoreHistogram("distributed-dp", 1.0, 5, budget="sample"),
    "local-histogram": ScoreHistogram("local-dp", 1.0, 4),
    "local-hierarchical": HierarchicalAUC(6.0, 2),
    "local-hierarchical-delta": HierarchicalAUC(8.0, 2, delta=0.01),
    "local-hierarchical-traversal": HierarchicalAUC(6.0, 1, estimator="traversal"),
    "local-two-round": TwoRoundAUC(1.0),
    "local-two-round-private": TwoRoundAUC(1.0, labels="private"),
    "local-auc": UStatistic("auc", 1.0, bins=4),
    "local-gini": UStatistic("gini", 1.0, bins=4),
    "paired-auc": PairedUStatistic("auc", 1.0),
    "paired-auc-laplace": PairedUStatistic("auc", 1.0, matchings=2, noise="laplace"),
    "paired-auc-shared": PairedUStatistic("auc", 1.0, noise="shared"),
    "paired-collision": PairedUStatistic("collision", 1.0, matchings=3),
    "paired-gini": PairedUStatistic("gini", 1.0, matchings=2),
    "encrypted": EncryptedAUC(9, most_records=64),
    "exact": ExactAUC(),
    "noisy-scores": NoisyScores(1.0),
}
LOOSE = {"dpauc-laplace-paper"}
"""Protocols whose declared cost is known to be larger than what they spend."""

LOCAL = {name for name in PROTOCOLS if name.startswith("local-")}
"""Protocols whose records randomise their own reports. Without randomness these are not answers to
what the server expects; their own tests enumerate the answers' exact probabilities."""

PAIRED = {name for name in PROTOCOLS if name.startswith("paired-")}
"""Protocols that compute single pairs, drawn at random: without noise they measure these pairs."""

ENCRYPTED = {name for name in PROTOCOLS if name.startswith("encrypted")}
"""Protocols whose messages are random ciphertexts, which only their session opens: of a batch and
of its clients one at a time the estimates are compared. They release the AUC without noise, and
with so few records agreed exactly. A session takes two clients. Their own tests have the checked
variant, which takes twice as long."""

RANKED = {"fedauc-mpc"}
"""Protocols whose clients first compute something together and note their own part of it, which a
client alone cannot."""

every_protocol = pytest.mark.parametrize("name", list(PROTOCOLS))
few = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def enough(name: str, clients: Clients) -> None:
    """Draw again where there are fewer clients than a session takes."""
    assume(name not in ENCRYPTED or clients.count > 1)


def conversation_of(
    clients: Clients, protocol: Protocol, noise: NoiseSource, memory: Memory | None = None
) -> Iterator[tuple[Ask, Reply]]:
    """Every ask of a conversation with the whole batch's reply; by default nothing is remembered
    between them."""
    conversation = protocol.conversation(clients.count)
    ask = next(conversation)
    while True:
        reply = ask.step.answer(clients, ask, noise, memory or Memory())
        yield ask, reply
        try:
            ask = conversation.send(reply)
        except (StopIteration, ValueError):
            return


def assert_same(ours: Reply, theirs: Reply) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        left, right = values_of(ours[name]), values_of(theirs[name])
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", [n for n in PROTOCOLS if n not in ENCRYPTED | RANKED])
@few
@given(clients=federations())
def test_a_batch_answers_as_its_clients_one_at_a_time(name: str, clients: Clients) -> None:
    kept, own = Memory(), [Memory() for _ in range(clients.count)]
    for ask, whole in conversation_of(clients, PROTOCOLS[name], NoNoise(), kept):
        if ask.view is View.JOINT:
            continue
        singles = [
            ask.step.answer(clients.part(k, k + 1), ask.part(k, k + 1), NoNoise(), own[k])
            for k in range(clients.count)
        ]
        assert_same(whole, total(singles) if ask.view is View.SUM else stack(singles))


@every_protocol
@few
@given(clients=federations())
def test_replies_travel_as_bytes_of_the_stated_size(name: str, clients: Clients) -> None:
    enough(name, clients)
    for ask, reply in conversation_of(clients, PROTOCOLS[name], NoNoise(), Memory()):
        if ask.view is not View.EACH:
            message = encode(dict(reply))
            assert len(message) == sum_size(reply)
            assert_same(reply, decode(message))
            continue
        sizes = sizes_by_client(reply, clients.count)
        for k in range(clients.count):
            own = reply_of(reply, k)
            message = encode(own)
            assert len(message) == sizes[k]
            assert_same(own, decode(message))


@every_protocol
@few
@given(clients=federations())
def test_any_chunking_gives_the_same_estimate(name: str, clients: Clients) -> None:
    enough(name, clients)
    whole = _value(clients, PROTOCOLS[name])
    for chunk in (2,) if name in ENCRYPTED else (1, 2, 3):
        run = simulate(clients, PROTOCOLS[name], NoNoise(), chunk=chunk)
        np.testing.assert_array_equal(run.findings.value, whole)


@every_protocol
@few
@given(clients=federations())
def test_replicates_without_noise_are_copies(name: str, clients: Clients) -> None:
    enough(name, clients)
    single = _value(clients, PROTOCOLS[name])
    several = simulate(clients, PROTOCOLS[name], NoNoise(replicates=3)).findings.value
    np.testing.assert_allclose(np.broadcast_to(several, (3,)), np.full(3, single), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in PROTOCOLS if n not in PAIRED])
@few
@given(clients=federations())
def test_the_order_of_clients_and_records_does_not_matter(name: str, clients: Clients) -> None:
    enough(name, clients)
    turned = Clients(
        clients.scores[::-1].copy(),
        clients.labels[::-1].copy(),
        np.concatenate(([0], np.cumsum(clients.sizes[::-1]))).astype(np.int64),
    )
    np.testing.assert_allclose(
        _value(turned, PROTOCOLS[name]), _value(clients, PROTOCOLS[name]), rtol=1e-9, atol=1e-12
    )


INEXACT = {
    *LOCAL,
    *PAIRED,
    *(name for name in PROTOCOLS if "response" in name),
    "histogram-second",
    "histogram-second-replace",
    "histogram-sample",
}
"""Protocols whose estimate is not exact without noise: flipped bits are debiased all the same, a
second round cancels errors to first order only, and sampled records or pairs are not all."""


@pytest.mark.parametrize("name", [n for n in PROTOCOLS if n not in INEXACT])
@few
@given(clients=federations())
def test_without_noise_the_estimate_is_exact_on_what_is_measured(
    name: str, clients: Clients
) -> None:
    enough(name, clients)
    protocol = PROTOCOLS[name]
    if isinstance(protocol, DPAUC):
        positives, records = cell_counts(clients, protocol.edges, clients.labels)
        pooled = positives.sum(-1), (records - positives).sum(-1)
        expected = float(cell_area(*pooled))
        if protocol.mechanism == "histogram":
            expected += float(density_correction(*pooled))
    elif isinstance(protocol, ScoreHistogram):
        expected = area_of_cells(clients, protocol)
    else:
        expected = exact_auc(clients)
    if isinstance(protocol, FedAUC) and protocol.allocation == "influence":
        clients = replace_small(clients)
        expected = exact_auc(clients)
    told = 1e-7 if name in ENCRYPTED else 1e-9
    assert _value(clients, protocol) == pytest.approx(expected, abs=told)


def area_of_cells(clients: Clients, protocol: ScoreHistogram) -> float:
    """The area of the exact tree at the depth that suits the protocol's noise."""
    height = protocol.tree_height(clients.count)
    leaves = np.bincount(places_of(clients, height), minlength=2 << height).astype(float)
    depth = height
    if protocol.epsilon is not None:
        variances = np.full(height + 2, np.inf)
        for level, scale in protocol.level_scales(height).items():
            variances[level] = discrete_laplace_variance(scale)
        depth = best_depth(leaves.reshape(2, -1), TreeNoise(variances))
    cells = leaves.reshape(2, 1 << depth, -1).sum(axis=-1)
    return float(cell_area(*cells) + density_correction(*cells))


def replace_small(clients: Clients) -> Clients:
    """Clients so large that the influence allocation uses additive noise, not flipped labels."""
    times = 400
    sizes = clients.sizes * times
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Clients(np.repeat(clients.scores, times), np.repeat(clients.labels, times), offsets)


@every_protocol
@few
@given(clients=federations())
def test_a_run_spends_what_the_protocol_declares(name: str, clients: Clients) -> None:
    enough(name, clients)
    protocol = PROTOCOLS[name]
    spent = simulate(clients, protocol, NoNoise()).spent
    assert spent.adjacency in (protocol.guarantee.adjacency, None, Adjacency.SCORE)
    if math.isinf(protocol.guarantee.epsilon):
        assert math.isinf(spent.epsilon)
    else:
        assert spent.epsilon == pytest.approx(protocol.guarantee.epsilon, rel=1e-12)
        assert spent.epsilon <= protocol.guarantee.epsilon * (1 + 1e-12)
        assert spent.delta <= protocol.guarantee.delta


def one_client(seed: int) -> Clients:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([0, 1], [6, 5]))
    return Clients.from_arrays(rng.integers(0, 9, 11) / 8, labels)


@pytest.mark.parametrize("name", [n for n in PROTOCOLS if n not in LOCAL | ENCRYPTED])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_neighbour_costs_more_than_the_step_declares(name: str, seed: int) -> None:
    """Exact, not sampled: the noise that each step asks for against what any neighbour moves.

    Label-private steps are given the same ranks for both data sets, as scores are public there.
    """
    clients, ranks = one_client(seed), Memory() if name in RANKED else None
    for ask, _ in conversation_of(clients, PROTOCOLS[name], NoNoise(), ranks):
        cost = ask.step.spends(clients, ask, Memory())
        if cost == NOTHING or math.isinf(cost.epsilon):
            continue
        losses = _losses(clients, ask, cost, ranks)
        worst = max(losses, key=lambda loss: loss.delta(0.6 * cost.epsilon))
        assert worst.delta(cost.epsilon) <= max(cost.delta, 0.0) * (1 + 1e-9)
        if name not in LOOSE:
            assert worst.delta(0.6 * cost.epsilon) > cost.delta, (
                "the declared cost is far from tight"
            )


def _losses(clients: Clients, ask: Ask, cost: Cost, ranks: Memory | None = None) -> Iterator[Loss]:
    assert cost.adjacency is not None
    noise = Recorder()
    ours = ask.step.answer(clients, ask, noise, ranks or Memory())
    for other in neighbours(clients, cost.adjacency):
        if noise.flips and cost.adjacency is Adjacency.REPLACE:
            yield _bit_loss(ours, ask.step.answer(other, ask, NoNoise(), Memory()), noise)
        elif noise.flips:
            yield _response_loss(clients, other, ask, ours, noise)
        else:
            theirs = ask.step.answer(other, ask, NoNoise(), ranks or Memory())
            yield loss_between(ours, theirs, noise)


def _response_loss(
    clients: Clients, other: Clients, ask: Ask, ours: Reply, noise: Recorder
) -> Loss:
    """A flipped bit undoes a flipped label exactly, so the loss is that of one bit."""
    changed = np.flatnonzero(clients.labels != other.labels)
    assert changed.size == 1
    undone = ask.step.answer(other, ask, Recorder(flipped=int(changed[0])), Memory())
    assert_same(ours, undone)
    flip = noise.flips[0]
    return Loss(math.log((1 - flip) / flip))


def _bit_loss(ours: Reply, theirs: Reply, noise: Recorder) -> Loss:
    """Bits that are flipped independently: each that differs costs one answer's log ratio."""
    assert ours.keys() == theirs.keys()
    assert len(noise.flips) == len(ours) == 1
    moved = sum(np.count_nonzero(values_of(ours[n]) != values_of(theirs[n])) for n in ours)
    flip = noise.flips[0]
    return Loss(moved * math.log((1 - flip) / flip))


def test_the_privacy_law_has_power() -> None:
    """Noise 30 % too small for what is declared is caught, as is a value without noise."""
    clients = one_client(0)
    asks = list(conversation_of(clients, PROTOCOLS["fedauc-adaptive"], NoNoise()))
    ask = asks[-1][0]
    cost = Cost(ask.settings.epsilon / 1.3, adjacency=Adjacency.LABEL)
    assert max(loss.delta(cost.epsilon) for loss in _losses(clients, ask, cost)) == 1.0
    quiet = Recorder()
    replies = [asks[-1][1], {"positives": np.array([9]), "residuals": np.array([0])}]
    with pytest.raises(AssertionError, match="without noise"):
        loss_between(*replies, quiet)


REPEATS = 2500
STATISTICAL = {
    **{n: PROTOCOLS[n] for n in PROTOCOLS if n.startswith("fedauc")},
    "dpauc": DPAUC(1.0, 100),
    "dpauc-label": DPAUC(1.0, 100, adjacency="label"),
    "dpauc-replace": DPAUC(1.0, 100, adjacency="replace"),
    "dpauc-laplace": DPAUC(2.0, 20, "laplace"),
    "dpauc-laplace-unclamped": DPAUC(2.0, 20, "laplace", clamp=False),
    "dpauc-gaussian": DPAUC(2.0, 20, "gaussian", delta=1e-6),
    "dpauc-response": DPAUC(1.0, 100, "randomised-response", adjacency="label"),
    "histogram": ScoreHistogram("distributed-dp", 1.0),
    "histogram-replace": ScoreHistogram("distributed-dp", 2.0, adjacency="replace"),
    "histogram-cdf": ScoreHistogram("distributed-dp", 1.0, aim="cdf"),
    "histogram-second": ScoreHistogram("distributed-dp", 1.0, second_round=0.5),
}


def spread_and_coverage(findings: Any, exact: float) -> tuple[float, float]:
    """The observed spread over the predicted one, and how often the interval covers."""
    predicted = math.sqrt(float(np.mean(findings.privacy_error**2)))
    spread = float(findings.value.std(ddof=1)) / predicted
    return spread, float(findings.covers(exact).mean())


def _repeats(name: str) -> int:
    return 1200 if "laplace" in name and name.startswith("dpauc") else REPEATS


@pytest.mark.parametrize("name", list(STATISTICAL))
def test_predicted_errors_and_intervals_hold(name: str) -> None:
    """Spread within 10 % of the prediction, and 95 % intervals that cover 93 to 97 % of the time.

    False alarms, over the choice of the seed: with 2,500 repetitions the spread's own error is
    1.4 % (2.2 % for the heavier tails of staircase noise) and the coverage's 0.44 %, so a correct
    protocol misses a bound with probability below 1e-5; with the 1,200 of the imitated errors
    below 1e-2.
    """
    clients = binormal_clients(8000, 12000, 20, seed=5)
    protocol = STATISTICAL[name]
    findings = repeat_findings(clients, protocol, _repeats(name), seed=11)
    spread, coverage = spread_and_coverage(findings, protocol.exact(clients))
    assert spread == pytest.approx(1.0, abs=0.1)
    assert 0.93 <= coverage <= 0.97


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize(
    "name", ["fedauc", "fedauc-adaptive", "fedauc-gaussian", "dpauc", "histogram"]
)
def test_a_noise_scale_30_percent_off_is_noticed(name: str, factor: float) -> None:
    clients = binormal_clients(8000, 12000, 20, seed=5)
    noise = Rescaled(factor, 11, 1000)
    findings = simulate(clients, STATISTICAL[name], noise).findings
    spread, coverage = spread_and_coverage(findings, exact_auc(clients))
    assert abs(spread - 1.0) > 0.1
    assert not 0.93 <= coverage <= 0.97


@every_protocol
def test_exact_noise_from_the_system_runs_every_protocol(name: str) -> None:
    clients = binormal_clients(300, 500, 3)
    protocol = PROTOCOLS[name]
    if isinstance(protocol, EncryptedAUC):
        protocol = replace(protocol, most_records=clients.records)
    result = evaluate(clients, protocol, noise=SystemNoise())
    assert result.noise == ("none" if name == "exact" else "system")
    assert result.traffic.bytes_sent.min() > 0
    reason = result.warnings[-1] if result.warnings else ""
    silent = any(text in reason for text in ("not enough signal", "no figure: "))
    assert math.isfinite(result.estimate.value) or silent


def _value(clients: Clients, protocol: Protocol) -> float:
    return float(simulate(clients, protocol, NoNoise()).findings.value)
