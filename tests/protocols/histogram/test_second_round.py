"""The second round of score histograms: its cost computed exactly, and servers that lie to it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit import Clients, ScoreHistogram
from tacit.counts.influence import NEGATIVES, POSITIVES, SIZES, influences_of, units_for
from tacit.counts.tree_budget import PARTS
from tacit.protocol import Adjacency, ClientState, Cost, NoNoise, Query, SimulatedNoise, View
from tacit.protocols.histogram.steps import LISTED, both_rounds, summed_influences
from tacit.protocols.shared.counting import number_field
from tacit.running.evaluating import exact_auc
from tacit.running.simulation import simulate
from tacit.testing.recording import neighbours
from tests.federations import binormal_clients
from tests.protocols.histogram.losses import CELLS, HEIGHT, answer, hospital, worst_loss

PROTOCOLS = {
    "record": ScoreHistogram("secure-sum", 1.0, HEIGHT, aim="auc"),
    "replace": ScoreHistogram("secure-sum", 2.0, HEIGHT, adjacency="replace", aim="auc"),
}
SPENT = {"record": (1, 12), "replace": (1, 24)}
"""The parts of a round and of the number: it gets 0.3 and 0.6 of epsilon."""
RISING = np.arange(1, CELLS) / CELLS
ADJACENCIES = pytest.mark.parametrize("name", list(PROTOCOLS))


def fields_of(
    positives: NDArray[np.float64] = RISING**2,
    negatives: NDArray[np.float64] = RISING**0.5,
    sizes: tuple[float, float] = (30.0, 50.0),
) -> dict[str, Any]:
    return {POSITIVES: positives, NEGATIVES: negatives, SIZES: np.array(sizes)}


def query_of(protocol: ScoreHistogram, fields: dict[str, Any], clients: int = 1) -> Query:
    parts = np.array(SPENT[str(protocol.adjacency)])
    shared = {"clients": clients, "height": HEIGHT, LISTED: parts, **fields}
    return Query(summed_influences, protocol, broadcast=shared, view=View.SUM)


def cost_of(protocol: ScoreHistogram) -> Cost:
    adjacency = str(protocol.adjacency)
    part = protocol.known_epsilon * SPENT[adjacency][-1] / PARTS
    return Cost(part, adjacency=Adjacency(adjacency))


def units_of(protocol: ScoreHistogram) -> int:
    return units_for(cost_of(protocol).epsilon)


def sum_of(query: Query, clients: Clients) -> int:
    return int(np.asarray(answer(query, clients, NoNoise())["sum"]))


class TestTheCost:
    """Exact: the noise of the sum against what any neighbour moves it."""

    @ADJACENCIES
    def test_the_worst_functions_spend_the_second_part_and_no_more(self, name: str) -> None:
        protocol = PROTOCOLS[name]
        query = protocol.hostile_query(query_of(protocol, fields_of()))
        cost = query.step.cost(hospital(), query, ClientState())
        assert cost == cost_of(protocol)
        assert worst_loss(query, hospital()) == pytest.approx(cost.epsilon, rel=1e-12)

    @ADJACENCIES
    @settings(max_examples=20, deadline=None)
    @given(data=st.data())
    def test_no_neighbour_moves_the_sum_by_more_than_its_units(
        self, name: str, data: st.DataObject
    ) -> None:
        """Any published functions and sizes, and every neighbour of any records."""
        unit = st.floats(0, 1)
        values = st.lists(unit, min_size=CELLS - 1, max_size=CELLS - 1)
        positives, negatives = (np.sort(data.draw(values)) for _ in range(2))
        size = st.floats(1e-6, 1e9)
        fields = fields_of(positives, negatives, (data.draw(size), data.draw(size)))
        labelled = st.tuples(unit, st.sampled_from([0, 1]))
        records = data.draw(st.lists(labelled, min_size=2, max_size=3))
        scores, labels = zip(*records, strict=True)
        clients = Clients.from_arrays(scores, labels)
        protocol = PROTOCOLS[name]
        query = query_of(protocol, fields)
        ours = sum_of(query, clients)
        for other in neighbours(clients, Adjacency(name)):
            assert abs(ours - sum_of(query, other)) <= units_of(protocol)


class TestTheSum:
    @ADJACENCIES
    def test_it_is_that_of_the_influences(self, name: str) -> None:
        """Each client rounds once, so clients apart send the same as together."""
        protocol, fields = PROTOCOLS[name], fields_of()
        clients = binormal_clients(300, 500, 6, seed=1)
        query, influences = query_of(protocol, fields, 6), influences_of(fields)
        reach = int(influences.sensitivity(Adjacency(name)))
        totals = influences.totals(protocol.on_scale(clients)).tolist()
        units = units_of(protocol)
        rounded = [math.floor(Fraction(each * units, reach) + Fraction(1, 2)) for each in totals]
        assert sum_of(query, clients) == sum(rounded)
        assert sum(sum_of(query, clients.part(k, k + 1)) for k in range(6)) == sum(rounded)

    @ADJACENCIES
    def test_it_turns_into_the_area_of_both_rounds(self, name: str) -> None:
        protocol, fields = PROTOCOLS[name], fields_of(sizes=(300.0, 500.0))
        clients = binormal_clients(300, 500, 1, seed=1)
        influences = influences_of(fields)
        scores, positive = protocol.on_scale(clients).scores, clients.labels == 1
        beaten = influences.negatives.at(scores[positive]).mean()
        beating = 1 - influences.positives.at(scores[~positive]).mean()
        field = number_field(cost_of(protocol).epsilon)
        sums = np.asarray(answer(query_of(protocol, fields), clients, NoNoise())["sum"])
        area, variance = both_rounds(fields, sums, field, Adjacency(name))
        unit = 1 / (units_of(protocol) * 300)
        assert float(area) == pytest.approx(
            beaten + beating - float(influences.area), abs=unit + 1e-8
        )
        _, doubled = both_rounds(fields, sums, field, Adjacency(name), noises=2.0)
        assert float(doubled) == pytest.approx(2 * float(variance))


LIES: list[tuple[dict[str, Any], str]] = [
    ({POSITIVES: np.flip(RISING)}, "values must be nondecreasing from 0 to 1"),
    ({NEGATIVES: RISING + 0.2}, "values must be nondecreasing from 0 to 1"),
    ({NEGATIVES: RISING - 0.2}, "values must be nondecreasing from 0 to 1"),
    ({POSITIVES: np.full(7, np.nan)}, "values must be nondecreasing from 0 to 1"),
    ({POSITIVES: RISING.astype(np.float32)}, "positives_below must be 64-bit floats"),
    ({POSITIVES: RISING.tolist()}, "positives_below must be 64-bit floats"),
    ({NEGATIVES: RISING[::2]}, r"negatives_below must be 64-bit floats of shape \(7,\)"),
    ({POSITIVES: np.stack([RISING] * 2)}, r"positives_below must be 64-bit floats of shape \(7,\)"),
    ({POSITIVES: np.array(0.5)}, r"number of inner edges in \[1, 3, 7\], got 0"),
    ({POSITIVES: np.zeros(0), NEGATIVES: np.zeros(0)}, r"edges in \[1, 3, 7\], got 0"),
    ({POSITIVES: np.linspace(0, 1, 15)}, r"edges in \[1, 3, 7\], got 15"),
    ({SIZES: np.array([0.0, 5.0])}, r"class sizes must be above 0 and finite, got \[0.0, 5.0\]"),
    ({SIZES: np.array([5.0, -1.0])}, "class sizes must be above 0 and finite"),
    ({SIZES: np.array([np.nan, 5.0])}, "class sizes must be above 0 and finite"),
    ({SIZES: np.array([np.inf, 5.0])}, "class sizes must be above 0 and finite"),
    ({SIZES: np.array([5e-324, 1e308])}, "weights must be above 0 and at most 1"),
    ({SIZES: np.array([5, 5])}, r"class_sizes must be 64-bit floats of shape \(2,\)"),
    ({SIZES: np.array([5.0])}, r"class_sizes must be 64-bit floats of shape \(2,\)"),
    ({"height": 5}, r"height must be one of \(3, 4\), got 5"),
]


@pytest.mark.parametrize(("lie", "said"), LIES)
def test_clients_refuse_what_no_first_round_gives(lie: dict[str, Any], said: str) -> None:
    query = query_of(PROTOCOLS["record"], fields_of())
    with pytest.raises(ValueError, match=said):
        answer(replace(query, broadcast={**query.broadcast, **lie}), hospital(), NoNoise())


@pytest.mark.parametrize("height", [1, 2])
def test_the_flattest_trees_have_a_second_round(height: int) -> None:
    clients = binormal_clients(3000, 5000, 4, seed=3)
    protocol = ScoreHistogram("secure-sum", 8.0, height, aim="auc", scale="even")
    result = simulate(clients, protocol, SimulatedNoise(1)).server_result
    assert abs(float(result.value) - exact_auc(clients)) < 4 * result.standard_error
