"""TwoRoundAUC: its guarantee, the round in which a record reports, its errors, and its refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit import Clients, ClientState, DataError, evaluate
from tacit.local import turns
from tacit.local.turns import CELLS
from tacit.local.two_round.first_round import AssignedRounds, FirstRound, ScoreModel
from tacit.local.two_round.protocol import TwoRoundAUC, draw_turns, report_cells, report_influences
from tacit.local.two_round.second_round import Influence, _second_order, cell_bias
from tacit.privacy import bounded
from tacit.privacy.bounded import SlidingWindow
from tacit.protocol import NOTHING, Adjacency, NoNoise, Ragged, SimulatedNoise
from tacit.protocol.fields import ragged_of
from tacit.protocol.steps import Query, Reply, stack
from tacit.running.evaluating import repeat_results
from tacit.running.simulation import simulate
from tacit.testing.checks import conversation_of
from tests.federations import binormal_clients
from tests.local.test_errors import lone
from tests.privacy.test_bounded import Counting

BOTH = pytest.mark.parametrize("labels", ["private", "public"])


def smooth_model(seed: int = 0, positive_fraction: float = 0.4) -> ScoreModel:
    rng = np.random.default_rng(seed)
    masses = rng.dirichlet(np.full(CELLS, 5.0), 2)
    return ScoreModel(np.array(positive_fraction), masses[0], masses[1])


RECORDS = [(score, label) for score in (0.0, 0.013, 0.4, 0.41, 0.99, 1.0) for label in (0, 1)]


def query_of(step: Any, protocol: TwoRoundAUC, size: int, shared: dict[str, Any]) -> Query:
    """A query in which all records of one client report."""
    first = 256 if step is report_cells else 0
    client = Clients.from_arrays(np.full(size, 0.5), np.zeros(size))
    turns = client.ragged(np.full(size, 7, dtype=np.uint8))
    return Query(step, protocol, {"first": first} | shared, {"turns": turns})


def drawn(clients: Clients, query: Query) -> ClientState:
    """The notebook of clients that drew the turns of a query, whose round is the next one."""
    slots, state = query.per_client["turns"], ClientState()
    assert isinstance(slots, Ragged)
    rounds, first = int(query.step is report_influences), query.broadcast["first"]
    state.keep(turns.TURNS_NOTE, turns.Turns.of(clients, slots.values, rounds, first))
    return state


def worst_ratio(
    step: Any, protocol: TwoRoundAUC, window: SlidingWindow, shared: dict[str, Any]
) -> float:
    """The largest ratio of a report's probability under two records, by counting all draws.

    One client of so many equal records as there are draws answers once a number for rounding.
    """
    query = query_of(step, protocol, window.total, shared)
    table = np.zeros((len(RECORDS), window.outputs), dtype=np.int64)
    for row, (score, label) in enumerate(RECORDS):
        clients = Clients.from_arrays(np.full(window.total, score), np.full(window.total, label))
        for rounding in range(bounded.ROUNDING):
            sent = step.answer(clients, query, Counting(rounding), drawn(clients, query))["reports"]
            table[row] += np.bincount(sent.values, minlength=window.outputs)
    if protocol.labels == "public" and step is report_cells:
        assert (table[0::2] == table[1::2]).all(), "a report on the score reveals the label"
    return float((table.max(axis=0) / table.min(axis=0)).max())


HOSTILE = {
    "plain": (np.stack([np.linspace(1, 0, CELLS + 1), np.linspace(0, 1, CELLS + 1)]), None),
    "steps": (np.where(np.arange(2 * CELLS + 2).reshape(2, -1) % 3, 1.0, 0.0), None),
    "outside": (np.stack([np.full(CELLS + 1, -4.0), np.linspace(9, -9, CELLS + 1)]), None),
    "turned": (np.stack([np.linspace(1, 0, CELLS + 1)] * 2), np.array([1.0, 0.7, 0.2, 0.0])),
}
PLAN = {"knots": HOSTILE["plain"][0], "grid": np.linspace(0, 1, 9), "width": 3}


@BOTH
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_first_round_costs_epsilon_exactly(
    labels: Any, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any two records; tight, and an epsilon 30 % too large is noticed."""
    monkeypatch.setattr(bounded, "GRAIN", 20)
    monkeypatch.setattr(bounded, "ROUNDING", 1)
    for claimed, holds in ((epsilon, True), (1.3 * epsilon, False)):
        protocol = TwoRoundAUC(claimed, labels)
        worst = math.log(worst_ratio(report_cells, protocol, protocol.first_round.window, {}))
        assert (worst <= epsilon) is holds
        assert worst > 0.85 * claimed


@BOTH
@pytest.mark.parametrize("published", list(HOSTILE))
def test_the_second_round_costs_epsilon_whatever_was_published(
    labels: Any, published: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any two records, with numbers and grids that no honest server sends among them."""
    monkeypatch.setattr(bounded, "GRAIN", 20)
    monkeypatch.setattr(bounded, "ROUNDING", 4)
    borders, grid = HOSTILE[published]
    grid = np.linspace(0, 1, 9) if grid is None else grid
    shared = {"knots": borders, "grid": grid, "width": 3}
    for claimed, holds in ((1.0, True), (1.3, False)):
        window = SlidingWindow(claimed, grid.size, 3)
        worst = worst_ratio(report_influences, TwoRoundAUC(claimed, labels), window, shared)
        assert (math.log(worst) <= 1.0) is holds
        assert math.log(worst) <= claimed


@BOTH
def test_every_record_reports_once_and_spends_epsilon(labels: Any) -> None:
    clients, protocol = binormal_clients(300, 500, 40), TwoRoundAUC(2.0, labels)
    reports_sent = np.zeros(clients.records, dtype=np.int64)
    for query, reply in conversation_of(clients, protocol, SimulatedNoise(1), ClientState()):
        if query.step is not draw_turns:
            reporting = query.step.participates(clients, query)
            reports_sent += reporting
            client_reports = clients.ragged(reporting.astype(np.int64)).sum()
            np.testing.assert_array_equal(ragged_of(reply["reports"]).sizes, client_reports)
    assert (reports_sent == 1).all()
    run = simulate(clients, protocol, SimulatedNoise(1))
    assert run.spent == protocol.guarantee
    assert 0 < run.server_result.value < 1
    expected = Adjacency.REPLACE if labels == "private" else Adjacency.SCORE
    assert protocol.guarantee.adjacency is expected


def test_a_client_without_a_reporting_record_spends_nothing() -> None:
    clients = lone(3, 3)
    turns = clients.ragged(np.array([0, 200, 200, 200, 200, 200], dtype=np.uint8))
    query = Query(report_cells, TwoRoundAUC(1.0), {"first": 10}, {"turns": turns})
    costs = [
        report_cells.cost(clients.part(k, k + 1), query.part(k, k + 1), ClientState())
        for k in range(6)
    ]
    assert costs == [TwoRoundAUC(1.0).guarantee, *[NOTHING] * 5]


def with_turns(state: ClientState) -> tuple[Clients, Query]:
    """A client that drew its turns, and the query that names them."""
    clients, protocol = binormal_clients(20, 20, 1), TwoRoundAUC(1.0)
    reply = draw_turns.answer(clients, Query(draw_turns, protocol), SimulatedNoise(2), state)
    return clients, Query(report_cells, protocol, {"first": 100}, {"turns": reply["turns"]})


def test_no_server_makes_a_record_report_twice_or_out_of_turn() -> None:
    state = ClientState()
    clients, query = with_turns(state)
    late = Query(report_influences, query.protocol, dict(query.broadcast) | PLAN, query.per_client)
    moved = Query(report_influences, query.protocol, {"first": 50} | PLAN, query.per_client)
    others = {"turns": clients.ragged(np.zeros(40, dtype=np.uint8))}

    def refused(asked: Query) -> None:
        with pytest.raises(DataError, match="reports once"):
            asked.step.answer(clients, asked, SimulatedNoise(3), state)

    with pytest.raises(DataError, match="this client drew none"):
        report_cells.answer(clients, query, SimulatedNoise(3), ClientState())
    refused(late)
    refused(Query(report_cells, query.protocol, query.broadcast, others))
    report_cells.answer(clients, query, SimulatedNoise(3), state)
    refused(query)
    refused(moved)
    report_influences.answer(clients, late, SimulatedNoise(3), state)
    refused(late)


@pytest.mark.parametrize("change", ["order", "score", "label"])
def test_records_that_changed_positions_between_rounds_do_not_report_twice(change: str) -> None:
    """A turn belongs to a record by its position."""
    state = ClientState()
    clients, query = with_turns(state)
    report_cells.answer(clients, query, SimulatedNoise(3), state)
    scores, labels = clients.scores.copy(), clients.labels.copy()
    if change == "order":
        scores, labels = scores[::-1], labels[::-1]
    elif change == "score":
        scores[3] = 1 - scores[3]
    else:
        labels[3] = 1 - labels[3]
    moved = Clients(scores.copy(), labels.copy(), clients.offsets)
    late = Query(report_influences, query.protocol, dict(query.broadcast) | PLAN, query.per_client)
    with pytest.raises(DataError, match="order, changed since they drew their turns"):
        report_influences.answer(moved, late, SimulatedNoise(3), state)
    report_influences.answer(clients, late, SimulatedNoise(3), state)


def test_a_memory_serves_several_evaluations() -> None:
    state, clients = ClientState(), binormal_clients(300, 300, 10)
    for seed in (1, 2):
        assert math.isfinite(evaluate(clients, TwoRoundAUC(2.0), seed, state=state).auc.value)


@BOTH
def test_a_batch_answers_as_its_clients_one_at_a_time(labels: Any) -> None:
    """In the second round too, which no conversation reaches without noise."""
    clients, protocol = binormal_clients(20, 30, 7), TwoRoundAUC(1.0, labels)
    turns = clients.ragged(np.arange(50, dtype=np.uint8))
    for step in (report_cells, report_influences):
        query = Query(step, protocol, {"first": 25} | PLAN, {"turns": turns})
        whole = step.answer(clients, query, NoNoise(), drawn(clients, query))
        parts: list[Reply] = [
            step.answer(client, part, NoNoise(), drawn(client, part))
            for client, part in ((clients.part(k, k + 1), query.part(k, k + 1)) for k in range(7))
        ]
        joined, reports = (ragged_of(each["reports"]) for each in (stack(parts), whole))
        np.testing.assert_array_equal(joined.values, reports.values)
        np.testing.assert_array_equal(joined.offsets, reports.offsets)


def expected_counts(plan: Influence, truth: ScoreModel) -> Any:
    """How often reports of the second round come on average, shape (C, outputs)."""
    private = plan.private_labels
    parts, edges = 400, np.arange(CELLS + 1) / CELLS
    scores = (np.arange(CELLS * parts) + 0.5) / (CELLS * parts)
    counts = []
    for label, cells in enumerate((truth.negatives, truth.positives)):
        numbers = np.interp(scores, edges, plan.borders[label])
        masses = np.repeat(cells / parts, parts)
        rounded = plan.report._grid_masses(bounded.PointMasses(numbers, masses))
        counts.append(rounded @ plan.report.window.probabilities)
    if private:
        positive = float(truth.positive_fraction)
        counts = [(1 - positive) * counts[0] + positive * counts[1]]
    return np.stack(counts) * plan.sizes[1][:, np.newaxis]


@pytest.mark.parametrize("private", [False, True])
def test_the_variance_rests_on_the_reports_of_both_rounds(private: bool) -> None:
    """Reports that vary as the model says leave its variance; equal ones count as reports do."""
    model = smooth_model()
    whole, late = np.array([3000, 2000]), np.array([1000, 1500])
    sizes = np.stack([whole, late])
    sizes = sizes.sum(axis=-1, keepdims=True) if private else sizes
    plan = Influence(model, 1.0, private, False, sizes)
    scale = 1 / plan.rarer**2 if private else 1.0
    noise = np.array([plan.report.variance(numbers) for numbers in plan.distributions])
    among = np.array([numbers.variance for numbers in plan.distributions])
    records, reporting = sizes
    by_model = np.sum(noise / reporting + among * (1 / reporting - 1 / records)) * scale
    expected = plan.conclude(expected_counts(plan, model))[1]
    assert expected == pytest.approx(by_model, rel=2e-3)
    equal = np.zeros((reporting.size, plan.report.window.outputs))
    equal[:, 0] = reporting
    left = (records - reporting + 1) / records * (noise + among)
    by_turns = np.sum(left / reporting - np.maximum(left - noise, 0) / records) * scale
    assert plan.conclude(equal.astype(np.int64))[1] == pytest.approx(by_turns)
    assert by_turns < 0.8 * by_model


@pytest.mark.parametrize("private", [False, True])
def test_what_an_exact_second_round_leaves_is_the_second_order(private: bool) -> None:
    """The conclusion's error is the stated formula, and falls with the square of the model's."""
    truth, other = smooth_model(1), smooth_model(2, 0.47)
    sizes, errors = np.array([[1000]] * 2 if private else [[600, 400]] * 2), []
    for part in (0.0, 0.05, 0.1):
        model = ScoreModel(
            truth.positive_fraction
            + private * part * (other.positive_fraction - truth.positive_fraction),
            truth.negatives + part * (other.negatives - truth.negatives),
            truth.positives + part * (other.positives - truth.positives),
        )
        plan = Influence(model, 1.0, private, False, sizes)
        error = plan.conclude(expected_counts(plan, truth))[0] - float(truth.area)
        stated = float(_second_order(model, truth, FirstRound(1.0, private)))
        assert error == pytest.approx(stated, abs=1e-7)
        errors.append(error)
    assert errors[0] == pytest.approx(0.0, abs=1e-7)
    assert errors[2] / errors[1] == pytest.approx(4.0, rel=0.2)


def test_hidden_error_is_small_for_smooth_scores_and_large_for_crowded_ones() -> None:
    edges = np.linspace(0, 1, CELLS + 1)
    smooth = ScoreModel(np.array(0.5), np.diff(1 - (1 - edges) ** 2), np.diff(edges**2))
    dense = np.eye(CELLS)[3]
    assert cell_bias(smooth) < 1e-6
    assert cell_bias(ScoreModel(np.array(0.5), dense, dense)) == pytest.approx(math.sqrt(1 / 12))


@pytest.mark.parametrize("sent", [[1, 0, 1], [1, 0, 1, 0, 1], [1, 0, 1, 2]])
def test_public_labels_that_are_not_one_a_record_name_their_client(sent: list[int]) -> None:
    drawn = Ragged(np.zeros(6, dtype=np.uint8), np.array([0, 2, 6]))
    labels = Ragged(np.array([0, 1, *sent], dtype=np.int8), np.array([0, 2, 2 + len(sent)]))
    with pytest.raises(DataError, match="client 1 must send a label of 0 or 1 for each of 4"):
        AssignedRounds.of({"turns": drawn, "labels": labels}, 8, private_labels=False)


@BOTH
def test_a_window_beats_a_bit_and_says_so(labels: Any) -> None:
    window, bit = (
        repeat_results(lone(3000, 3000), protocol, 8, seed=3)
        for protocol in (TwoRoundAUC(4.0, labels), TwoRoundAUC(4.0, labels, "bit"))
    )
    assert window.privacy_error.mean() < 0.6 * bit.privacy_error.mean()
    assert window.value.std() < bit.value.std()


@BOTH
def test_equal_scores_give_one_half(labels: Any) -> None:
    scores, truth = np.full(4000, 0.3), np.repeat([0, 1], 2000)
    result = evaluate(Clients.from_arrays(scores, truth), TwoRoundAUC(4.0, labels), seed=1)
    low, high = result.auc.interval(0.95)
    assert low < 0.5 < high
    assert "concentrated" in result.warnings[-1]


def test_class_sizes_are_exact_or_estimated() -> None:
    clients = lone(2000, 6000)
    known = evaluate(clients, TwoRoundAUC(2.0, "public"), seed=1)
    assert known.positives == 2000
    results = repeat_results(clients, TwoRoundAUC(2.0), 20, seed=1)
    error = float(np.sqrt(np.mean(np.asarray(results.positives_error) ** 2)))
    assert abs(np.mean(results.positives) - 2000) < 2 * error
    assert 0.4 < np.std(results.positives) / error < 1.6


def test_reports_that_cannot_have_come_are_refused() -> None:
    clients = lone(20, 20)
    conversation = TwoRoundAUC(1.0).conversation(40)
    query = next(conversation)
    query = conversation.send(query.step.answer(clients, query, SimulatedNoise(1), ClientState()))
    early = int(query.step.participates(clients, query).sum())
    with pytest.raises(ValueError, match=f"{early} records report, got 40 reports"):
        conversation.send({"reports": clients.ragged(np.zeros(40, dtype=np.uint8))})
