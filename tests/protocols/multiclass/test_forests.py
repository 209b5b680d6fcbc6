"""One private report a record of several classes: what it tells, and the errors that are stated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tacit
from tacit.metrics.ranking import auc
from tacit.protocol import ClientState, NoNoise, Query, SimulatedNoise
from tacit.protocols.multiclass.forests import (
    _sizes,
    forest_reports,
    forests_from_reports,
    slot_units,
)
from tacit.running.simulation import simulate
from tests.classified import CLASSES, breakdown_of, class_clients, known_classes

THREE = ("a", "b", "c")


def reports(epsilon: float, height: int, classes: tuple[str, ...]) -> tacit.MulticlassHistogram:
    return tacit.MulticlassHistogram("local", epsilon, height=height, classes=classes)


def odds_of(nodes: list[int], size: int, epsilon: float) -> list[float]:
    """The probability of every report of so many bits, where one of the nodes is drawn."""
    q = 1 / (1 + math.exp(epsilon))
    made = []
    for bits in itertools.product((0, 1), repeat=size):
        others = [q if bit else 1 - q for bit in bits]
        by_vote = [0.5 * math.prod(others) / others[node] for node in nodes]
        made.append(sum(by_vote) / len(by_vote))
    return made


def test_no_report_is_likelier_than_epsilon_allows_under_another_record() -> None:
    """All reports of all records in all slots, by their odds: the bound holds and is reached."""
    epsilon, protocol = 1.0, reports(1.0, 1, THREE)
    scores = np.array(list(itertools.product((0.2, 0.8), repeat=3)) * 3)
    labels = np.repeat([0, 1, 2], 8)
    votes = protocol.votes(tacit.Clients.from_classes(scores, labels, THREE))
    for block in protocol.blocks():
        leaves = votes[block.name]
        for level in block.levels:
            nodes, size = leaves >> (block.height - level), block.trees << level
            odds = np.array([odds_of(row, size, epsilon) for row in nodes.tolist()])
            assert odds.sum(axis=1) == pytest.approx(1.0)
            worst = np.log(odds.max(axis=0) / odds.min(axis=0)).max()
            assert worst <= epsilon + 1e-12
            if block.votes == 1:
                assert worst == pytest.approx(epsilon)


def test_reports_show_one_vote_a_record_in_slots_of_the_agreed_proportions() -> None:
    """With an epsilon at which bits hardly flip: every report's node is one of the record's.

    A fraction of 8,000 reports is known to 0.6 %: off by 3 % with a probability below 1e-6.
    """
    clients, protocol = class_clients(8000, 1, THREE), reports(30.0, 2, THREE)
    query, noise = Query(forest_reports, protocol), SimulatedNoise(0)
    reply = forest_reports.answer(clients, query, noise, ClientState())
    slots = np.asarray(reply["slots"].values)  # type: ignore[union-attr]  # ragged
    units = np.array(slot_units(protocol.blocks(), 30.0))
    shares = np.bincount(slots, minlength=units.size) / slots.size
    assert shares == pytest.approx(units / units.sum(), abs=0.03)
    forests = forests_from_reports(protocol.blocks(), 30.0, reply)
    exact = protocol.exact_forests(clients)
    for name, forest in forests.items():
        # own bits are set half of the time, and few records report on a level
        assert forest.leaves == pytest.approx(exact[name].leaves, abs=700)
        assert forest.leaves.sum() == pytest.approx(exact[name].leaves.sum(), rel=0.1)


def test_stated_errors_are_those_of_many_runs() -> None:
    """120 AUCs of four classes over their stated errors: their root mean square is known to 7 %.

    It leaves 0.78 to 1.22 with a probability below 1e-2 (the AUCs of a run depend little on each
    other); errors that are 30 % too small or too large would be found at 0.7 and 1.43.
    """
    clients, protocol = class_clients(6000, 6), reports(5.0, 4, CLASSES)
    scores, of_record = known_classes(clients)
    exact = [auc(scores[:, c], (of_record == c).astype(np.int8)) for c in range(4)]
    ratios = []
    for seed in range(30):
        result = simulate(clients, protocol, SimulatedNoise(seed)).server_result
        found = [part.figures["AUC"] for part in breakdown_of(result).parts]
        ratios += [
            (each.value - true) / each.standard_error
            for each, true in zip(found, exact, strict=True)
        ]
    assert 0.78 < float(np.sqrt(np.mean(np.square(ratios)))) < 1.22


def test_a_level_without_reports_is_even_and_as_uncertain_as_one_report() -> None:
    protocol = reports(1.0, 2, THREE)
    query, clients = Query(forest_reports, protocol), class_clients(9, 1, THREE)
    reply = forest_reports.answer(clients, query, NoNoise(), ClientState())
    forests = forests_from_reports(protocol.blocks(), 1.0, reply)
    assert forests["hits"].leaves == pytest.approx(np.full((6, 1), 9 / 6))
    assert _sizes(protocol.blocks()).tolist() == [6, 12, 6, 12, 6]
    assert math.sqrt(forests["hits"].noise.variances[-1]) > 9
