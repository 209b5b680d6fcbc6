"""The laws of protocols as functions, which raise AssertionError where one is broken.

``tacit.testing.laws`` makes tests of them. Each takes a protocol and a federation, and says in its
docstring what it would catch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.data.persons import SEED_BYTES, as_persons
from tacit.data.splitting import binormal_scores
from tacit.privacy import composition
from tacit.privacy.cost import NOTHING, Adjacency, Cost
from tacit.privacy.noise import NoiseSource, NoNoise, SystemNoise
from tacit.protocol import audits, fields
from tacit.protocol.conversation import Protocol
from tacit.protocol.forecast import Metric
from tacit.protocol.scenario import Scenario, Shape
from tacit.protocol.steps import ClientState, Query, Reply, View, stack, total
from tacit.results.server_result import ServerResult
from tacit.running.evaluating import repeat_results
from tacit.running.simulation import simulate
from tacit.running.spending import exceeds, per_record
from tacit.testing import recording

MIN_TIGHTNESS = 0.6
"""Fraction of the declared epsilon that the worst neighbour must cost."""

MAX_DEVIATION = 0.1
"""By how much the observed standard deviation may differ from the predicted one."""

COVERED = (0.93, 0.97)
"""How often a 95 % interval may cover the exact figure."""

NOTICED_REPEATS = 500
"""Repetitions that notice a noise scale 30 % off."""


def binormal_clients(
    positives: int,
    negatives: int,
    clients: int,
    auc: float = 0.8,
    by: Literal["uniform", "score"] = "uniform",
    seed: int = 0,
) -> Clients:
    """Records of a binormal model with this AUC, dealt out to clients."""
    scores, labels = binormal_scores(positives, negatives, auc, seed=seed)
    return Clients.split(scores, labels, clients=clients, by=by, seed=seed)


def conversation_of(
    clients: Clients, protocol: Protocol, noise: NoiseSource, state: ClientState | None = None
) -> Iterator[tuple[Query, Reply]]:
    """Every query of a conversation, with the whole batch's reply.

    Parameters
    ----------
    clients : the batch that answers.
    protocol : whose conversation it is.
    noise : what the steps draw.
    state : what clients note; by default nothing is remembered between queries.
    """
    conversation = protocol.conversation(clients.count)
    query = next(conversation)
    while True:
        reply = query.step.answer(clients, query, noise, state or ClientState())
        yield query, reply
        try:
            query = conversation.send(reply)
        except (StopIteration, ValueError):
            return


def check_batches(protocol: Protocol, clients: Clients) -> None:
    """A batch answers as its clients one at a time.

    It catches a step that mixes clients, or computes from the batch what only a client knows.
    """
    state, single = ClientState(), [ClientState() for _ in range(clients.count)]
    for query, whole in conversation_of(clients, protocol, NoNoise(), state):
        if query.view is View.MPC:
            continue
        replies = [
            query.step.answer(clients.part(k, k + 1), query.part(k, k + 1), NoNoise(), single[k])
            for k in range(clients.count)
        ]
        assert_same(whole, total(replies) if query.view is View.SUM else stack(replies))


def check_bytes(protocol: Protocol, clients: Clients) -> None:
    """Replies travel as bytes of the stated size.

    It catches fields that cannot be sent, and wrong byte counts.
    """
    for query, reply in conversation_of(clients, protocol, NoNoise(), ClientState()):
        if query.view is View.EACH:
            sizes = fields.sizes_by_client(reply, clients.count)
            parts = [(fields.reply_of(reply, k), sizes[k]) for k in range(clients.count)]
        else:
            parts = [(dict(reply), fields.sum_size(reply))]
        for part, size in parts:
            message = fields.encode(part)
            assert len(message) == size
            assert_same(part, fields.decode(message))


def check_chunks(protocol: Protocol, clients: Clients) -> None:
    """Any chunking gives the same estimate.

    It catches offsets that drift, and a server that depends on how replies were stacked.
    """
    whole, spread = noiseless(protocol, clients), protocol.law_traits.spread
    for chunk in protocol.law_traits.batches:
        run = simulate(clients, protocol, NoNoise(), chunk=chunk)
        np.testing.assert_allclose(run.server_result.value, whole, rtol=0, atol=spread)


def check_replicates(protocol: Protocol, clients: Clients) -> None:
    """Replicates without noise are copies.

    It catches arithmetic that sums over the wrong axis.
    """
    single, spread = noiseless(protocol, clients), protocol.law_traits.spread
    several = simulate(clients, protocol, NoNoise(replicates=3)).server_result.value
    copies = np.broadcast_to(several, (3,))
    np.testing.assert_allclose(copies, np.full(3, single), rtol=1e-12, atol=spread)


def check_order(protocol: Protocol, clients: Clients) -> None:
    """The order of clients and records does not matter.

    It catches ties broken by position, and clients matched by position.
    """
    turned = Clients.from_arrays(
        clients.scores[::-1],
        clients.labels[::-1],
        clients.count - 1 - clients.client_of_record[::-1],
        second=None if clients.second is None else clients.second[::-1],
    )
    values = noiseless(protocol, turned), noiseless(protocol, clients)
    spread = max(1e-12, protocol.law_traits.spread)
    np.testing.assert_allclose(*values, rtol=1e-9, atol=spread)


def check_exactness(protocol: Protocol, clients: Clients) -> None:
    """Without noise the estimate is exact on what is measured.

    It catches errors in ranks, counts or estimators.
    """
    traits = protocol.law_traits
    copied = copies_of(clients, traits.copies)
    expected = protocol.noiseless_value(copied)
    assert abs(noiseless(protocol, copied) - expected) <= traits.tolerance


def copies_of(clients: Clients, times: int) -> Clients:
    """Clients that hold every record so often."""
    record = np.repeat(np.arange(clients.records), times)
    return clients.taken(record, times * clients.offsets)


def check_spending(protocol: Protocol, clients: Clients) -> None:
    """A run spends what the protocol declares.

    It catches a step that does not say what it spends, and parts that add up to more than epsilon.
    """
    spent, declared = simulate(clients, protocol, NoNoise()).spent, protocol.guarantee
    assert spent.adjacency in (declared.adjacency, None, Adjacency.SCORE)
    if math.isinf(declared.epsilon):
        assert math.isinf(spent.epsilon)
    else:
        assert abs(spent.epsilon - declared.epsilon) <= 1e-12 * declared.epsilon
        assert spent.delta <= declared.delta


PERSON_RECORDS = 4
"""Records of each of the first two persons in the law about persons."""

COUNTED_RECORDS = (1, 3)
"""Records of a person that count in that law."""


def one_client(seed: int) -> Clients:
    """One client of eleven records, with tied scores and both classes."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat([0, 1], [6, 5]))
    return Clients.from_arrays(rng.integers(0, 9, 11) / 8, labels)


def two_records(seed: int) -> Clients:
    """One client of two records, of which either decides what is the largest or the only one."""
    high = 0.75 + np.random.default_rng(seed).integers(1, 2, endpoint=True) / 8
    return Clients.from_arrays(np.array([high, 0.75]), np.array([0, 1]))


def far_records(seed: int) -> Clients:
    """One client of three records, of which two have scores far from the others' range."""
    far = 10.0 ** np.random.default_rng(seed).integers(2, 4, endpoint=True)
    return Clients.from_arrays(np.array([-far, 0.25, far]), np.array([1, 0, 1]))


def check_neighbours(protocol: Protocol, seed: int) -> None:
    """No neighbour costs more than the step declares.

    And the worst one costs nearly that. Exact, not sampled: the noise that each step asks for
    against what any neighbour moves. Label-private steps are given the same ranks for both data
    sets, as scores are public there. It catches a wrong sensitivity, a private value without noise,
    be it the largest of a client or in a step that costs nothing, a cost or a size that depends on
    the records, a cost far too high, and a range of scores that is needed but not declared.
    """
    _check_losses(protocol, protocol.trial_records(two_records(seed)))
    if protocol.score_range is None:
        _check_losses(protocol, protocol.trial_records(far_records(seed)))
    loose = protocol.law_traits.loose
    worst = _check_losses(protocol, protocol.trial_records(one_client(seed)))
    for cost, losses_of_step in worst:
        nearly = max(loss.delta(MIN_TIGHTNESS * cost.epsilon) for loss in losses_of_step)
        assert loose or nearly > cost.delta, "the declared cost is far from tight"


def _check_losses(protocol: Protocol, clients: Clients) -> list[tuple[Cost, list[recording.Loss]]]:
    """The cost of each step that has one, with what every neighbour costs, which is no more."""
    notes = ClientState() if protocol.law_traits.keeps_state else None
    measured = []
    for query, reply in conversation_of(clients, protocol, NoNoise(), notes):
        cost = query.step.cost(clients, query, ClientState())
        # a step that costs nothing must hide what the whole guarantee does
        hidden = protocol.guarantee if cost == NOTHING else cost
        if math.isinf(hidden.epsilon) or cost == hidden == NOTHING:
            continue
        assert hidden.adjacency is not None
        neighbours = list(recording.neighbours(clients, hidden.adjacency))
        again = [query.step.cost(other, query, ClientState()) for other in neighbours]
        assert all(each == cost for each in again), "the declared cost depends on the records"
        if cost == NOTHING:
            for other in neighbours:
                moved = query.step.answer(other, query, NoNoise(), ClientState())
                recording.loss_between(reply, moved, recording.Recorder())
            continue
        step_losses = list(losses(clients, neighbours, query, cost, notes))
        worst = max(loss.delta(cost.epsilon) for loss in step_losses)
        assert worst <= max(cost.delta, 0.0) * (1 + 1e-9), "a neighbour costs more than declared"
        measured.append((cost, step_losses))
    return measured


def check_persons(protocol: Protocol, seed: int) -> None:
    """A person costs no more than the named budget.

    That is: all that a person's records change together. The person has more records than count.
    Exact, as the privacy law: with the part of the budget that a record has, no step moves its
    statistics by more than the person's cost allows. It catches a draw that depends on other
    persons, and a budget that is divided by too little.
    """
    everybody = one_client(seed)
    persons = as_persons(np.arange(everybody.records) // PERSON_RECORDS)
    clients = protocol.trial_records(replace(everybody, persons=persons))
    for most in COUNTED_RECORDS:
        try:
            divided = per_record(protocol, most)
        except ValueError:
            protects_none = math.isinf(protocol.guarantee.epsilon) or protocol.counts_missing
            assert protects_none or "epsilon" not in protocol.settings
            return
        cost = composition.of_person(divided.guarantee, most)
        named = composition.of_person(protocol.guarantee, 1)
        assert not exceeds(cost, named), "the records of a person cost more than was named"
        draw = np.random.default_rng(seed).bytes(SEED_BYTES)
        counted = clients.counted(most, draw)[0]
        for other in recording.without_person(clients, divided.guarantee.adjacency):
            _check_person(divided, counted, other.counted(most, draw)[0], most)


def _check_person(protocol: Protocol, clients: Clients, other: Clients, most: int) -> None:
    """What two data sets that differ in one person cost, step by step, and in all."""
    notes = ClientState() if protocol.law_traits.keeps_state else None
    total = 0.0
    for query, _ in conversation_of(clients, protocol, NoNoise(), notes):
        cost = query.step.cost(clients, query, ClientState())
        if math.isinf(cost.epsilon):
            continue
        (loss,) = losses(clients, [other], query, cost, notes)
        whole = composition.of_person(cost, most)
        assert loss.delta(whole.epsilon) <= whole.delta * (1 + 1e-9), "a person costs too much"
        total += loss.epsilon
    assert total <= most * protocol.guarantee.epsilon * (1 + 1e-9), "a person costs too much"


def _one_flip(noise: recording.Recorder) -> float:
    """The privacy loss of one bit that is flipped."""
    flip = noise.flips[0]
    return math.log((1 - flip) / flip)


def losses(
    clients: Clients,
    others: Iterable[Clients],
    query: Query,
    cost: Cost,
    notes: ClientState | None = None,
) -> Iterator[recording.Loss]:
    """What each of several other data sets costs in the noise that the step asks for."""
    noise = recording.Recorder()
    reply = query.step.answer(clients, query, noise, notes or ClientState())
    for other in others:
        if noise.flips and cost.adjacency is Adjacency.LABEL:
            yield _response_loss(clients, other, query, reply, noise)
            continue
        moved = query.step.answer(other, query, NoNoise(), notes or ClientState())
        compared = _bit_loss if noise.flips else recording.loss_between
        yield compared(reply, moved, noise)


def _response_loss(
    clients: Clients, other: Clients, query: Query, reply: Reply, noise: recording.Recorder
) -> recording.Loss:
    """A flipped bit undoes a flipped label exactly, so the loss is that of a bit for each."""
    changed = np.flatnonzero(clients.labels != other.labels)
    undone = query.step.answer(other, query, recording.Recorder(flipped=changed), ClientState())
    recording.check_sizes(reply, undone)
    assert_same(reply, undone)
    return recording.Loss(changed.size * _one_flip(noise))


def _bit_loss(reply: Reply, other: Reply, noise: recording.Recorder) -> recording.Loss:
    """Bits that are flipped independently: each differing bit costs the log ratio of one answer."""
    recording.check_sizes(reply, other)
    assert len(noise.flips) == len(reply) == 1
    first, second = (recording.values_of(*each.values()) for each in (reply, other))
    return recording.Loss(np.count_nonzero(first != second) * _one_flip(noise))


def check_errors(case: audits.ErrorCase) -> None:
    """Predicted errors and intervals hold.

    The errors vary as predicted within 10 %, and 95 % intervals cover 93 to 97 % of the time. False
    alarms, over the choice of the seed: with 2,500 repetitions the error of the standard deviation
    is 1.4 % (2.2 % for the heavier tails of staircase noise) and that of the coverage 0.44 %, so
    that a correct protocol misses a bound with probability below 1e-5; with 800 repetitions (2.5 %
    and 0.77 %) below 1e-2. Where an error of approximation is more than a third of that by noise,
    intervals may cover more: of one data set it is the same in every run. It catches wrong variance
    formulas and unknown bias.
    """
    clients = case.protocol.trial_records(binormal_clients(3200, 4800, 8, seed=5))
    server_result = repeat_results(clients, case.protocol, case.repeats, seed=11)
    ratio, coverage = deviation_and_coverage(server_result, case.protocol.exact(clients))
    assert abs(ratio - 1.0) <= MAX_DEVIATION
    approximates = (
        np.mean(server_result.approximation_error) > np.mean(server_result.privacy_error) / 3
    )
    assert COVERED[0] <= coverage <= (1.0 if approximates else COVERED[1])


VANISHED = 1
"""Clients that are asked and do not answer, in the law about them."""


def check_vanishing(protocol: Protocol) -> None:
    """A client that vanishes weakens no guarantee.

    Unless the result says so. Where so few clients may answer that their shares are not the whole
    noise, the result has a ``protection``; and a step that draws shares says among how many
    clients. It catches noise that is divided among all without ``min_clients`` or ``protection``,
    and ``shares`` that are missing.
    """
    clients, notes = protocol.trial_records(binormal_clients(8, 12, 4)), ClientState()
    for query, _ in conversation_of(clients, protocol, NoNoise(), notes):
        noise = recording.Recorder()
        if query.view is View.SUM:
            query.step.answer(clients, query, noise, notes)
        said = query.step.shares and query.step.shares(query)
        assert not noise.shares or said == clients.count, "a step does not declare its shares"
    asked = clients.count + VANISHED
    if protocol.min_clients(asked) > clients.count:
        return
    noise = recording.Recorder()
    result = simulate(clients, protocol, noise, asked=asked).server_result
    whole = all(share >= 1 - 1e-9 for share in noise.shares)
    assert whole or result.protection is not None, "a client that vanishes weakens the guarantee"


SMALL = (300, 2000)
"""Records on which errors must hold too."""

SMALL_DRAWS, SMALL_REPEATS = 12, 13
"""Data sets of each size, and runs of each."""

SMALL_COVERED = 0.85
"""The least fraction of 95 % intervals that must cover on few records."""


def check_small(case: audits.ErrorCase) -> None:
    """Intervals hold on few records.

    On 300 and on 2,000 records they cover nearly as often as they say. Over 12 data sets and 13
    runs of each. False alarm: were all runs of a data set to cover or miss together, 2 of 12 would
    miss, which fails, with probability 0.12 over the seeds, which are fixed; where runs are
    independent, the coverage of 156 intervals falls below 0.85 with probability below 1e-5. Power:
    coverage of 0.77 is then rejected with probability above 0.99. It catches errors that hold for
    many records only, such as a choice from a noisy first round.
    """
    for records in SMALL:
        covered: list[float] = []
        for seed in range(SMALL_DRAWS):
            drawn = case.protocol.trial_records(drawn_records(records, seed))
            protocol = case.protocol.sized_for(drawn)
            result = repeat_results(drawn, protocol, SMALL_REPEATS, seed=seed)
            known = np.isfinite(result.value) & np.isfinite(result.standard_error)
            covered += result.covers(protocol.exact(drawn))[known].tolist()
        assert not covered or np.mean(covered) >= SMALL_COVERED, f"on {records} records"


def drawn_records(records: int, seed: int) -> Clients:
    """Records of a population in which two in five are positive, of four clients."""
    positives = int(np.random.default_rng(seed).binomial(records, 0.4))
    return binormal_clients(positives, records - positives, 4, seed=seed)


POPULATIONS = 80
"""Data sets of which the spread of exact figures is known to 8 %."""

SAMPLING_RATIO = (0.65, 1.55)
"""What the stated sampling error may be, as a multiple of that spread."""


def check_sampling(case: audits.ErrorCase) -> None:
    """The sampling error is that of the population.

    That is the spread of exact figures over data sets. Of 80 data sets of 2,000 records. False
    alarm: 1e-5 (the spread's own error is 8 %). It catches a sampling error that is doubled, or
    halved. It is the mean of runs with noise: an estimate from flipped bits is debiased, and says
    nothing where no bit was flipped.
    """
    populations = [
        case.protocol.trial_records(drawn_records(SMALL[-1], seed)) for seed in range(POPULATIONS)
    ]
    protocol = case.protocol.sized_for(populations[0])
    result = repeat_results(populations[0], protocol, SMALL_REPEATS, seed=0)
    known = result.sampling_error[np.isfinite(result.sampling_error)]
    if not known.any():
        return
    stated = float(np.mean(known))
    spread = float(np.std([protocol.exact(clients) for clients in populations], ddof=1))
    assert SAMPLING_RATIO[0] <= stated / spread <= SAMPLING_RATIO[1], "the sampling error is wrong"


FORECAST_RATIO = (0.5, 2.0)
"""What the predicted error may be, as a multiple of the observed one."""

FORECAST_REPEATS = 100


def check_forecast(protocol: Protocol) -> None:
    """The forecast is the error of runs.

    Up to a factor of two. Over 100 runs on 4,000 records, whose error is known to 7 %. A forecast
    that is right within a third is refused with probability below 1e-4, and one that is tripled
    accepted so seldom. It catches a forecast that is tripled, and one of another figure.
    """
    epsilon = protocol.guarantee.epsilon
    scenario = Scenario(4000, 1600, 4, epsilon if math.isfinite(epsilon) else 1.0)
    shape, metric = Shape(0.8), Metric.of_figure(protocol.figure)
    clients = protocol.trial_records(scenario.drawn(shape, seed=3))
    protocol = protocol.sized_for(clients)
    try:
        forecast = protocol.forecast(scenario, shape, metric)
    except ValueError:
        return
    if forecast is None or not 0 < forecast.error < math.inf:
        return
    result = repeat_results(clients, protocol, FORECAST_REPEATS, seed=7)
    observed = math.sqrt(np.nanmean((result.value - protocol.exact(clients)) ** 2))
    ratio = forecast.error / observed
    assert FORECAST_RATIO[0] <= ratio <= FORECAST_RATIO[1], "the forecast is wrong"


def check_limits(protocol: Protocol) -> None:
    """The limits hold the figure.

    It catches a range that withholds or clips what the protocol estimates.
    """
    clients = protocol.trial_records(binormal_clients(60, 140, 4))
    protocol = protocol.sized_for(clients)
    result = simulate(clients, protocol, NoNoise()).server_result
    low, high = result.limits
    assert low - 1e-9 <= protocol.exact(clients) <= high + 1e-9, "limits withhold the figure"


def check_wrong_noise(case: audits.ErrorCase, factor: float) -> None:
    """A noise scale 30 percent off is noticed.

    So the law on errors is not blind. With 500 repetitions the error of the standard deviation is
    3.2 %, that of a coverage of 87 % 1.5 %: noise that is off passes for right with probability
    below 1e-4.
    """
    clients = case.protocol.trial_records(binormal_clients(3200, 4800, 8, seed=5))
    noise = recording.Rescaled(factor, 11, NOTICED_REPEATS)
    server_result = simulate(clients, case.protocol, noise).server_result
    ratio, coverage = deviation_and_coverage(server_result, case.protocol.exact(clients))
    assert abs(ratio - 1.0) > MAX_DEVIATION
    assert not COVERED[0] <= coverage <= COVERED[1]


def deviation_and_coverage(server_result: ServerResult, exact: float) -> tuple[float, float]:
    """The observed standard deviation over the predicted one, and how often intervals cover."""
    predicted = math.sqrt(float(np.mean(server_result.privacy_error**2)))
    ratio = float(server_result.value.std(ddof=1)) / predicted
    return ratio, float(server_result.covers(exact).mean())


def check_system_noise(protocol: Protocol) -> None:
    """Exact noise from the system runs every protocol.

    It catches statistics that are not integers, and parameters that exact samplers refuse.
    """
    clients = protocol.trial_records(binormal_clients(300, 500, 3))
    result = evaluate(clients, protocol.sized_for(clients), noise=SystemNoise())
    assert result.noise == ("system" if protocol.draws_noise else "none")
    assert result.traffic.bytes_sent.min() > 0
    reason = result.warnings[-1] if result.warnings else ""
    silent = any(text in reason for text in ("not enough signal", "no figure: "))
    assert math.isfinite(result.estimate.value) or silent


def noiseless(protocol: Protocol, clients: Clients) -> float:
    """The figure of a run without noise."""
    return float(simulate(clients, protocol, NoNoise()).server_result.value)


def assert_same(reply: Reply, other: Reply) -> None:
    """Two replies hold the same numbers of the same types."""
    assert reply.keys() == other.keys()
    for name in reply:
        left, right = recording.values_of(reply[name]), recording.values_of(other[name])
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
