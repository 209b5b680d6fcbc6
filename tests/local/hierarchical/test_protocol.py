"""HierarchicalAUC: its exact guarantee, its reports, its errors, and what it refuses."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import tacit.protocol as tp
from tacit import Clients, ClientState, HierarchicalAUC, PublishedHierarchicalAUC, evaluate
from tacit.local.hierarchical.estimate import table_of
from tacit.local.hierarchical.protocol import EveryLevel, OneLevel, hadamard_reports
from tacit.metrics.cells.score_scale import SCALES
from tacit.running.evaluating import repeat_results
from tests.federations import binormal_clients
from tests.privacy.reference import Scripted

Outcomes = dict[tuple[int, ...], float]


def reports_of(clients: Clients, protocol: HierarchicalAUC, height: int, noise: Any) -> Any:
    query = tp.Query(hadamard_reports, protocol, broadcast={"height": height})
    return hadamard_reports.answer(clients, query, noise, ClientState())["reports"]


def outcomes(protocol: HierarchicalAUC, height: int, score: float) -> Outcomes:
    """The exact distribution of what one record sends, by running the step for every draw."""
    clients = Clients.from_arrays([score], [1])
    answers = protocol.answers(height)
    rows = (
        [range(2**height - 1)] if answers == 1 else [range(2**k - 1) for k in range(1, 1 + height)]
    )
    levels = [[k] for k in range(height)] if answers == 1 else [None]
    probabilities: Outcomes = defaultdict(float)
    for level, row, flips in itertools.product(
        levels, itertools.product(*rows), itertools.product((False, True), repeat=answers)
    ):
        script = [list(row)] if level is None else [level, list(row)]
        noise = Scripted(script, list(flips))
        sent = reports_of(clients, protocol, height, noise)
        if noise.chance > 0:
            probabilities[tuple(sent.values.tolist())] += noise.chance
    return probabilities


def score_at(protocol: HierarchicalAUC, position: float) -> float:
    """The score at a position of the protocol's scale."""
    return float(protocol.score_scale.scores([position])[0])


def worst_ratio(protocol: HierarchicalAUC, height: int) -> float:
    middles = [score_at(protocol, (k + 0.5) / 2**height) for k in range(2**height)]
    cells = [outcomes(protocol, height, middle) for middle in middles]
    return max(
        first_cell[sent] / second_cell[sent]
        for first_cell, second_cell in itertools.permutations(cells, 2)
        for sent in first_cell
    )


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("height", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_report_is_epsilon_private_and_no_more(epsilon: float, height: int, scale: str) -> None:
    """Every outcome of every pair of cells; the bound is attained, so 30 % off would be noticed."""
    ratio = worst_ratio(HierarchicalAUC(epsilon, scale=scale), height)
    assert ratio == pytest.approx(math.exp(epsilon), rel=1e-12)


def test_answers_on_every_level_cost_no_more_than_epsilon_and_delta() -> None:
    """The hockey-stick divergence over all outcomes of all pairs of cells.

    Where the drawn rows tell two cells apart on every level it is delta itself; on average over the
    rows it is less.
    """
    protocol, height = HierarchicalAUC(1.0, levels=EveryLevel(0.05)), 3
    cells = [outcomes(protocol, height, score_at(protocol, (k + 0.5) / 8)) for k in range(8)]
    worst = 0.0
    for first_cell, second_cell in itertools.permutations(cells, 2):
        by_rows: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for sent, chance in first_cell.items():
            loss = max(0.0, chance - math.exp(1.0) * second_cell[sent])
            rows = by_rows[tuple(report // 4 for report in sent)]
            rows[0], rows[1] = rows[0] + loss, rows[1] + chance
        assert sum(loss for loss, _ in by_rows.values()) <= 0.05
        worst = max(worst, *(loss / chance for loss, chance in by_rows.values()))
    assert worst == pytest.approx(0.05, rel=1e-6)


def test_the_order_of_reports_tells_nothing_of_the_order_of_records() -> None:
    plain = binormal_clients(40, 60, 4)
    places = np.lexsort((plain.scores, plain.client_of_record))
    ordered = Clients(plain.scores[places], plain.labels[places], plain.offsets)
    protocol = HierarchicalAUC(1.0, levels=EveryLevel(0.01))
    plain_reports, ordered_reports = (
        reports_of(c, protocol, 4, tp.NoNoise()) for c in (plain, ordered)
    )
    np.testing.assert_array_equal(plain_reports.values, ordered_reports.values)
    drawn = reports_of(plain, HierarchicalAUC(1.0), 4, tp.SimulatedNoise(0, replicates=3))
    for k in range(4):
        assert (np.diff(drawn.part(k, k + 1).values.astype(np.int64), axis=-1) >= 0).all()


def test_delta_pays_for_large_epsilon_only() -> None:
    clients = binormal_clients(1600, 2400, 4000, seed=5)
    errors = {
        (epsilon, delta): evaluate(clients, HierarchicalAUC(epsilon, 6, levels), seed=0)
        for epsilon in (1.0, 12.0)
        for delta, levels in ((0.0, OneLevel()), (1e-6, EveryLevel(1e-6)))
    }
    small, large = ([errors[e, d].auc.privacy_error for d in (0.0, 1e-6)] for e in (1.0, 12.0))
    assert small[0] < small[1]
    assert large[1] < large[0]
    wasted = {key: "with delta 0" in " ".join(r.warnings) for key, r in errors.items()}
    assert wasted == {(1.0, 0.0): False, (1.0, 1e-6): True, (12.0, 0.0): False, (12.0, 1e-6): False}


@pytest.mark.parametrize("kind", [HierarchicalAUC, PublishedHierarchicalAUC])
def test_crowded_scores_are_known_to_hide_much(kind: type[HierarchicalAUC]) -> None:
    labels = np.resize([0, 1], 20000)
    scores = 0.3 + 1e-6 * labels
    clients = Clients.split(scores, labels, clients=20000, seed=0)
    protocol = kind(5.0, 6)
    results = repeat_results(clients, protocol, times=1, seed=0)
    assert float(results.value[0]) == pytest.approx(0.5, abs=0.1)
    assert 1.96 * float(results.standard_error[0]) > 0.45
    result = evaluate(clients, protocol, seed=0)
    assert not result.has_signal
    assert "what the cells hide" in result.warnings[-2]
    assert "holds every value in [0, 1]" in result.warnings[-1]


@pytest.mark.parametrize("report", [7, 32])
def test_reports_that_no_record_can_send_are_refused(report: int) -> None:
    sent = tp.Ragged(np.array([12, report], dtype=np.uint32), np.array([0, 2]))
    with pytest.raises(ValueError, match=f"reports must be from 8 to 31, got {report}"):
        table_of({"reports": sent}, 2)
