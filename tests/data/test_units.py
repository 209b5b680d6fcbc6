"""Units of scores: conversion keeps the order, and what cannot be of a unit is refused."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Clients, DataError
from tacit.data import units
from tacit.data.scales import in_unit, rescale

CONVERTIBLE = ("probability", "percent", "log-odds")
probabilities = st.floats(0, 1)


def told(values: Any, unit: str) -> Any:
    """Values of a unit, made from probabilities by the definition."""
    p = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore"):
        made = {"probability": p, "percent": 100 * p, "log-odds": np.log(p / (1 - p))}
    return np.clip(made[unit], -units.MAX_LOG_ODDS, units.MAX_LOG_ODDS)


@pytest.mark.parametrize("own", CONVERTIBLE)
@pytest.mark.parametrize("wanted", CONVERTIBLE)
def test_what_one_unit_says_another_says_too(own: Any, wanted: Any) -> None:
    p = np.array([0.0, 1e-3, 0.25, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(
        units.converted(told(p, own), own, wanted), told(p, wanted), rtol=1e-12, atol=1e-12
    )


def test_units_that_say_different_things_are_not_converted() -> None:
    for own, wanted in (("real", "percent"), ("log-odds", "real")):
        with pytest.raises(ValueError, match=f"scores in {own} cannot be converted to {wanted}"):
            units.converted([0.5], own, wanted)


@pytest.mark.parametrize(
    ("own", "wanted"),
    [pair for pair in product(units.UNITS, units.UNITS) if units.are_convertible(*pair)],
)
@given(st.lists(st.floats(-800, 800), min_size=2, max_size=20))
def test_conversion_never_turns_an_order_round(own: Any, wanted: Any, values: Any) -> None:
    made = units.converted(np.sort(values), own, wanted)
    assert np.all(np.diff(made) >= 0)
    assert np.all(np.isfinite(made))
    low, high = units.RANGES[wanted]
    assert own == wanted or np.all((made >= low) & (made <= high))


@given(st.lists(probabilities, min_size=2, max_size=20, unique=True))
def test_log_odds_keep_both_ends_apart(values: Any) -> None:
    """0 and 1 stay below and above all other doubles."""
    converted_scores = units.converted([0.0, *values, 1.0], "probability", "log-odds")
    assert converted_scores[0] == -units.MAX_LOG_ODDS
    assert converted_scores[-1] == units.MAX_LOG_ODDS
    inner = converted_scores[1:-1][(np.array(values) > 0) & (np.array(values) < 1)]
    assert np.all(np.abs(inner) < units.MAX_LOG_ODDS)


def test_an_unknown_word_is_no_unit() -> None:
    assert not units.are_convertible("permille", "permille")


@pytest.mark.parametrize(
    ("unit", "wrong", "range_"),
    [("probability", 1.5, "0 to 1"), ("percent", -0.1, "0 to 100"), ("percent", 101, "0 to 100")],
)
def test_a_score_that_cannot_be_of_its_unit_is_refused(unit: str, wrong: Any, range_: Any) -> None:
    with pytest.raises(DataError, match=f"{unit} must be from {range_}, got {wrong}.* in b, row 1"):
        Clients.from_arrays([0.5, wrong], [0, 1], ["a", "b"], unit=unit)


def test_clients_keep_their_unit_and_do_not_mix_it() -> None:
    percent = Clients.from_arrays([20.0, 90.0], [0, 1], ["a", "b"], unit="percent")
    assert percent.part(0, 1).unit == "percent"
    assert in_unit(percent, "probability").unit == "probability"
    assert rescale(percent, 0, 100).unit is None
    with pytest.raises(DataError, match=r"one unit .* got no named unit and percent"):
        Clients.concatenate([percent, Clients.from_arrays([0.1], [0], ["c"])])
    with pytest.raises(DataError, match="without a named unit"):
        in_unit(Clients.from_arrays([0.1], [0]), "percent")


@pytest.mark.parametrize("low", [-1e308, -1.7e308])
def test_bounds_whose_distance_is_infinite_are_refused(low: float) -> None:
    """Divided by infinity all scores would be 0, and tie."""
    clients = Clients.from_arrays([0.2, 0.9], [0, 1])
    with pytest.raises(DataError, match=r"less than 1\.8e308 apart"):
        rescale(clients, low, 1e308)
