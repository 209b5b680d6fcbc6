"""DPAUC: cells, curves, what it refuses, and what it does not believe."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tacit import DPAUC, Clients, DataError, Protocol, ScoreHistogram, evaluate
from tacit.protocol import ClientState, NoNoise, SimulatedNoise
from tacit.protocols.shared.counting import cell_counts
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.running.simulation import simulate
from tests.federations import binormal_clients


def test_cells_count_every_record_once() -> None:
    clients = Clients.from_arrays([0.0, 0.25, 0.49, 0.5, 1.0], [1, 0, 1, 1, 0], [0, 0, 1, 1, 1])
    both = np.stack([clients.labels, 1 - clients.labels])
    positives, records = cell_counts(clients, np.array([0.0, 0.5]), both)
    np.testing.assert_array_equal(records, [[2, 1], [0, 2]])
    np.testing.assert_array_equal(positives, [[[1, 1], [0, 1]], [[1, 0], [0, 1]]])


def test_curve_bands_hold_their_points() -> None:
    """300 curves: rates are as far from the noiseless ones as stated, in the middle of the curve.

    In squares of the stated errors, whose mean errs by 4 % and is 0.92 to 0.93, as curves are made
    to fall: false alarm 1e-5. Errors 30 % off have squares of 0.55 and of 1.9. At its ends, where
    rates can only err to one side, a curve is nearer, so that 95 % bands hold more in all.
    """
    clients, protocol = binormal_clients(4000, 6000, 5), DPAUC(1.0, 20)
    truth = simulate(clients, protocol, NoNoise()).server_result.roc
    assert truth is not None and truth.true_positive_rate[0] == pytest.approx(1.0)
    squares, covered = [], []
    for seed in range(300):
        curve = simulate(clients, protocol, SimulatedNoise(seed)).server_result.roc
        assert curve is not None
        off = (curve.true_positive_rate - truth.true_positive_rate)[1:]
        squares.append((off / curve.true_positive_error[1:])[9:15] ** 2)
        covered.append(np.abs(off) <= 1.96 * curve.true_positive_error[1:])
    assert np.mean(squares) == pytest.approx(1.0, abs=0.25)
    assert np.mean(covered) >= 0.93


@pytest.mark.parametrize("power", [1, 3, 6])
@pytest.mark.parametrize("adjacency", ["record", "label"])
def test_crowded_scores_are_known_to_hide_much(power: int, adjacency: Any) -> None:
    """Scores near 0, as click rates are: the interval still covers, and the result says why."""
    plain = binormal_clients(8000, 12000, 20)
    clients = Clients(plain.scores**power, plain.labels, plain.offsets)
    protocol = DPAUC(6.0, 100, adjacency, "even")
    server_result = repeat_results(clients, protocol, 200, seed=1)
    assert server_result.covers(exact_auc(clients)).mean() > 0.85
    warned = any("what the cells hide" in w for w in evaluate(clients, protocol, seed=0).warnings)
    assert warned == (power > 1)


@pytest.mark.parametrize("adjacency", ["label", "record"])
def test_empty_cells_do_not_make_the_others_crowds(adjacency: Literal["label", "record"]) -> None:
    """Smooth scores fill a fifth of the scale's cells, and hide far less than noise."""
    clients = binormal_clients(20_000, 20_000, 3, seed=1)
    protocol = DPAUC(1.0, 100, adjacency)
    result = evaluate(clients, protocol, seed=1)
    assert abs(result.auc.value - exact_auc(clients)) < 4 * result.auc.standard_error
    assert result.auc.approximation_error < 1e-3
    one_score = clients.rescored(lambda scores: np.where(scores < 0.4, scores, 0.7))
    dense = evaluate(one_score, protocol, seed=1)
    assert dense.auc.approximation_error > 0.01


CLIENTS = binormal_clients(4000, 4000, 4)


def converse(
    protocol: Protocol, field: str, lie: int, client: int = 2, clients: Clients = CLIENTS
) -> Any:
    """The result where one client puts a number in place of its first one in a field."""
    conversation = protocol.conversation(clients.count)
    query = next(conversation)
    while True:
        query.step.cost(clients, query, ClientState())
        reply = dict(query.step.answer(clients, query, NoNoise(), ClientState()))
        if field in reply:
            changed = np.array(reply[field])
            changed.reshape(-1, clients.count)[0, client] = lie
            reply[field] = changed
        try:
            query = conversation.send(reply)
        except StopIteration as end:
            return end.value


FAR_OFF = [2**34, -(2**34), 2**62, np.iinfo(np.int64).max, np.iinfo(np.int64).min]


@pytest.mark.parametrize("lie", FAR_OFF)
@pytest.mark.parametrize("field", ["cells", "groups"])
def test_counts_beyond_all_records_are_refused(lie: int, field: str) -> None:
    with pytest.raises(DataError, match=f"{field} of client 2 must be from .* got"):
        converse(DPAUC(1.0), field, lie)


@pytest.mark.parametrize("lie", [2**50, -(2**50), 2**62, np.iinfo(np.int64).min])
@pytest.mark.parametrize("adjacency", ["record", "replace"])
def test_sums_beyond_all_records_are_refused(lie: int, adjacency: Any) -> None:
    protocol = ScoreHistogram("each", 1.0, adjacency=adjacency, aim="auc")
    with pytest.raises(DataError, match=r"sum of client 2 must be from .* got"):
        converse(protocol, "sum", lie)


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 50.0])
def test_whatever_records_give_is_believed(epsilon: float) -> None:
    """All records of one client have the largest influence that there is."""
    scores = np.where(np.arange(8000) < 2000, 1.0, CLIENTS.scores)
    clients = Clients(scores, (np.arange(8000) < 2000).astype(np.int8), CLIENTS.offsets)
    for protocol in (DPAUC(epsilon), ScoreHistogram("each", epsilon, adjacency="replace")):
        converse(protocol, "no field", 0, clients=clients)
        evaluate(clients, protocol, seed=3)
