"""Protocols whose cells follow from the unit of scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit.protocol as tp
from tacit.data.units import UNITS
from tacit.metrics.cells.score_scale import SCALES
from tests.brier import Brier
from tests.cells import CountedCells

BOUNDED = ("probability", "even")


@pytest.mark.parametrize("scale", BOUNDED)
@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda s: not 0 <= s <= 1))
def test_what_is_no_probability_is_refused_with_the_words_that_help(
    scale: str, score: float
) -> None:
    with pytest.raises(tp.DataError, match=r"client 0, row 2; name their unit .*--unit real"):
        CountedCells(scale=scale).on_scale(tp.Clients.from_arrays([0.5, score], [0, 0]))


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
    assert adapted.score_range == (tp.UNIT_INTERVAL if bounded else None)


def test_even_cells_stay_even_for_probabilities() -> None:
    even = CountedCells(scale="even")
    assert even.for_unit("probability") is even
    assert even.for_unit("log-odds").scale == "log-odds"


def test_a_word_that_is_no_unit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unit must be one of .*, got 'permille'"):
        CountedCells().for_unit("permille")


def test_steps_get_positions_and_the_clients_stay_as_they_are() -> None:
    clients = tp.Clients.from_arrays([-3.0, 0.0, 3.0], [0, 1, 1], unit="log-odds")
    placed = CountedCells(scale="log-odds").on_scale(clients)
    assert placed.unit is None
    assert placed.scores[1] == 0.5
    assert placed.scores[0] + placed.scores[2] == 1.0
    assert clients.scores.tolist() == [-3.0, 0.0, 3.0]
    np.testing.assert_array_equal(placed.labels, clients.labels)


@pytest.mark.parametrize(
    ("protocol", "unit"), [(Brier(1.0), "probability"), (CountedCells(scale="real"), "real")]
)
def test_what_a_protocol_takes(protocol: tp.Protocol, unit: str) -> None:
    assert protocol.unit == unit
    assert (protocol.for_unit("log-odds") is protocol) == isinstance(protocol, Brier)
