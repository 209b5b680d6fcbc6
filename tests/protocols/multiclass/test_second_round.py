"""The second round of several classes: sensitivity, exactness, errors, refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.protocol import Adjacency, Clients, ClientState, NoNoise, Query, View
from tacit.protocols.multiclass import second_round
from tacit.protocols.multiclass.protocol import MulticlassHistogram
from tacit.running.simulation import simulate
from tests.classified import CLASSES, class_clients


def fields_of(rng: np.random.Generator, classes: int, cells: int = 8) -> dict[str, Floats]:
    """Any functions and sizes that a server may publish, sizes of very different orders."""
    functions = [
        rising_fractions(rng.exponential(size=(classes, cells)) ** 3)[:, 1:-1] for _ in range(2)
    ]
    sizes = np.exp(rng.normal(5, 3, (classes, 2)))
    return {
        second_round.OWN_BELOW: functions[0],
        second_round.OTHER_BELOW: functions[1],
        second_round.SIZES: sizes,
    }


def moved(influences: second_round.ClassInfluences, scores: Floats, classes: Any) -> Any:
    """What each record alone adds to the sums, in fixed point, shape (C, M)."""
    each = Clients.from_arrays(np.zeros(len(classes)), np.zeros(len(classes)), range(len(classes)))
    return influences.totals(scores, np.asarray(classes), each)


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize("seed", range(5))
def test_no_record_moves_the_sums_by_more_than_the_sensitivity(count: int, seed: int) -> None:
    """By brute force over records with any scores, the ends among them, and nearly reached."""
    rng = np.random.default_rng(seed)
    influences = second_round.ClassInfluences.of(fields_of(rng, count))
    ends = np.concatenate([rng.random((60, count)), rng.integers(0, 2, (60, count))])
    sums = moved(influences, ends, rng.integers(0, count, 120))
    alone = np.abs(sums).sum(axis=0).max()
    pairs = np.abs(sums[:, :, np.newaxis] - sums[:, np.newaxis]).sum(axis=0).max()
    record, other = (influences.sensitivity(each) for each in (Adjacency.RECORD, Adjacency.REPLACE))
    assert 0.5 * record < alone <= record
    assert 0.3 * other < pairs <= other <= 2 * record + 2


def query_of(protocol: MulticlassHistogram, fields: Mapping[str, Any]) -> Query:
    """The second query of a run of one client."""
    asked = {**fields, "clients": 1}
    return Query(second_round.summed_class_influences, protocol, broadcast=asked, view=View.SUM)


@pytest.mark.parametrize(("epsilon", "most"), [(8.0, 2e-4), (30.0, 2e-5)])
def test_without_noise_both_rounds_give_the_exact_aucs(epsilon: float, most: float) -> None:
    """Scores enter exactly: cells, and the bias that noise would have, are left in second order."""
    clients = class_clients(3000)
    protocol = MulticlassHistogram(epsilon=epsilon, classes=CLASSES)
    both = simulate(clients, protocol, NoNoise()).server_result
    assert abs(float(both.value) - protocol.exact(clients)) < most < both.privacy_error


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (second_round.OWN_BELOW, np.zeros((4, 6)), "a number of inner edges"),
        (second_round.OWN_BELOW, np.zeros((3, 7)), "own_below must be 64-bit floats of shape"),
        (second_round.OTHER_BELOW, np.full((4, 7), 2.0), "values must be from 0 to 1"),
        (second_round.SIZES, np.zeros((4, 2)), "class sizes must be above 0 and finite"),
        (second_round.SIZES, np.full((4, 2), np.nan), "class sizes must be above 0 and finite"),
        (
            second_round.SIZES,
            np.ones((4, 2), dtype=np.float32),
            "class_sizes must be 64-bit floats",
        ),
    ],
)
def test_a_client_refuses_what_no_first_round_gives(name: str, value: Any, message: str) -> None:
    protocol = MulticlassHistogram(epsilon=1.0, classes=CLASSES, height=4)
    query = query_of(protocol, {**fields_of(np.random.default_rng(2), 4), name: value})
    with pytest.raises(ValueError, match=message):
        query.step.answer(class_clients(40, 1), query, NoNoise(), ClientState())


def test_a_budget_that_leaves_a_round_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="second round of 200 classes needs a larger epsilon"):
        second_round.number_units(0.005, 200)
