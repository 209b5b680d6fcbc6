"""Protocols whose cells follow from the unit of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.units import UNITS
from tacit.metrics.cells.score_scale import SCALES
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.protocol.conversation import Protocol
from tacit.protocol.scaled import UNIT_INTERVAL
from tests.brier import Brier
from tests.cells import CELLS, CountedCells

UNBOUNDED = ("log-odds", "real")
BOUNDED = ("probability", "even")
EDGES = np.arange(1, CELLS) / CELLS


def one_client(scores: list[float]) -> Clients:
    return Clients.from_arrays(scores, np.zeros(len(scores), dtype=int))


def positions(scale: str, scores: list[float]) -> list[float]:
    placed: list[float] = CountedCells(scale=scale).on_scale(one_client(scores)).scores.tolist()
    return placed


@pytest.mark.parametrize("scale", UNBOUNDED)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=9))
def test_any_finite_number_has_a_position_in_the_same_order(
    scale: str, scores: list[float]
) -> None:
    placed = positions(scale, sorted(scores))
    assert placed == sorted(placed)
    assert 0 <= placed[0] <= placed[-1] <= 1


@pytest.mark.parametrize("scale", BOUNDED)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_any_probability_has_a_position_in_the_same_order(scale: str, scores: list[float]) -> None:
    placed = positions(scale, sorted(scores))
    assert placed == sorted(placed)
    assert 0 <= placed[0] <= placed[-1] <= 1


@pytest.mark.parametrize("scale", BOUNDED)
@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda s: not 0 <= s <= 1))
def test_what_is_no_probability_is_refused_with_the_words_that_help(
    scale: str, score: float
) -> None:
    with pytest.raises(DataError, match=r"client 0, row 2; name their unit .*--unit real"):
        positions(scale, [0.5, score])


@pytest.mark.parametrize("scale", SCALES)
@given(part=st.floats(0, 1))
def test_cells_are_bounded_by_the_scores_of_their_edges(scale: str, part: float) -> None:
    """``position >= e`` exactly where ``score >= score of e``: a threshold in a result is exact."""
    protocol = CountedCells(scale=scale)
    thresholds = protocol.score_scale.scores(EDGES)
    score = float(protocol.score_scale.scores(min(max(part, 1e-9), 1 - 1e-9)))
    (placed,) = positions(scale, [score])
    np.testing.assert_array_equal(placed >= EDGES, score >= thresholds)
    assert positions(scale, thresholds.tolist()) == EDGES.tolist()


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=30))
def test_log_odds_and_their_probabilities_meet_in_the_same_cells(log_odds: list[float]) -> None:
    """Up to a part in a thousand of a cell, in which conversion may round."""
    values = np.array(log_odds)
    probabilities = np.where(
        values < 0, np.exp(values) / (1 + np.exp(values)), 1 / (1 + np.exp(-values))
    )
    apart = np.abs(
        np.array(positions("log-odds", log_odds))
        - np.array(positions("probability", probabilities.tolist()))
    )
    # from log-odds of 30 on one step of a double near 1 is 1e-3 of the log-odds
    assert apart.max() < 1e-3


def test_log_odds_are_ranked_where_their_probabilities_are_all_1() -> None:
    log_odds = [37.0, 40.0, 100.0, 700.0]
    assert len(set(positions("log-odds", log_odds))) == 4
    assert len(set(1 / (1 + np.exp(-np.array(log_odds))))) == 1


@given(st.lists(st.floats(-20, 20), min_size=2, max_size=20))
def test_positions_keep_ranks(log_odds: list[float]) -> None:
    """Scores apart by more than a part in 1e12 stay apart."""
    rounded = [round(value, 6) for value in log_odds]
    placed = np.array(positions("log-odds", rounded))
    np.testing.assert_array_equal(doubled_mid_ranks(placed), doubled_mid_ranks(np.array(rounded)))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("unit", UNITS)
def test_a_protocol_for_a_unit_takes_that_unit_or_percent_as_probabilities(
    scale: str, unit: str
) -> None:
    protocol = CountedCells(3.0, scale=scale)
    adapted = protocol.for_unit(unit)
    assert adapted.epsilon == 3.0
    assert adapted.unit == (protocol.unit if unit == "percent" else unit)
    assert adapted.for_unit(unit) is adapted
    bounded = adapted.scale in BOUNDED
    assert adapted.score_range == (UNIT_INTERVAL if bounded else None)


def test_even_cells_stay_even_for_probabilities() -> None:
    even = CountedCells(scale="even")
    assert even.for_unit("probability") is even
    assert even.for_unit("log-odds").scale == "log-odds"


def test_a_word_that_is_no_unit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unit must be one of .*, got 'permille'"):
        CountedCells().for_unit("permille")


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scale must be one of .*'even'.*, got 'octaves'"):
        CountedCells(scale="octaves")


def test_steps_get_positions_and_the_clients_stay_as_they_are() -> None:
    clients = Clients.from_arrays([-3.0, 0.0, 3.0], [0, 1, 1], unit="log-odds")
    placed = CountedCells(scale="log-odds").on_scale(clients)
    assert placed.unit is None
    assert placed.scores[1] == 0.5
    assert placed.scores[0] + placed.scores[2] == 1.0
    assert clients.scores.tolist() == [-3.0, 0.0, 3.0]
    np.testing.assert_array_equal(placed.labels, clients.labels)


@pytest.mark.parametrize(
    ("protocol", "unit"),
    [(Brier(1.0), "probability"), (CountedCells(scale="real"), "real")],
)
def test_what_a_protocol_takes(protocol: Protocol, unit: str) -> None:
    assert protocol.unit == unit


def test_other_protocols_suit_a_unit_or_not_as_they_are() -> None:
    protocol = Brier(1.0)
    assert protocol.for_unit("log-odds") is protocol
