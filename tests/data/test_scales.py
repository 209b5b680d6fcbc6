"""Evident differences of scale are told, and chance is not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.ragged import Ragged
from tacit.data.scales import MAX_FALSE_ALARM, ScaleDifference, clients_apart, files_apart


def ragged(*parts: Any) -> Any:
    ends = np.cumsum([0, *(len(part) for part in parts)])
    return Ragged(np.concatenate(parts).astype(np.float64), ends.astype(np.int64))


def hospitals(seed: int = 0, sizes: Any = (200, 300, 250), rare: Any = 0.0) -> Any:
    """Three hospitals' probabilities; ``rare`` moves their log-odds down."""
    rng = np.random.default_rng(seed)
    return [1 / (1 + np.exp(-rng.normal(-rare, 1.5, size))) for size in sizes]


def log_odds(p: Any) -> Any:
    return np.log(p / (1 - p))


def unusual(difference: ScaleDifference | None) -> tuple[int, ...]:
    assert difference is not None
    return difference.unusual


OTHER: dict[str, Callable[[Any], Any]] = {
    "percent": lambda p: 100 * p,
    "log-odds": log_odds,
    "per mille": lambda p: 1000 * p,
}


@pytest.mark.parametrize("scale", OTHER)
@pytest.mark.parametrize("rare", [0.0, 3.0, 5.0], ids=["balanced", "rare", "very rare"])
@pytest.mark.parametrize("odd", [(0,), (0, 1), (2,)])
def test_other_units_beside_probabilities_are_evident(scale: Any, rare: Any, odd: Any) -> None:
    parts = [OTHER[scale](p) if index in odd else p for index, p in enumerate(hospitals(rare=rare))]
    scores = ragged(*parts)
    difference, is_evident = files_apart(scores)
    assert is_evident
    assert unusual(difference) == unusual(clients_apart(scores)) == odd


def test_percent_beside_log_odds_is_told() -> None:
    p = hospitals()
    scores = ragged(100 * p[0], log_odds(p[1]), log_odds(p[2]))
    assert unusual(clients_apart(scores)) == (0,)
    difference, is_evident = files_apart(scores)
    assert unusual(difference) == (0,)
    assert not is_evident


unit = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(st.lists(unit, min_size=1, max_size=6))
def test_there_is_no_alarm_within_the_unit_interval(parts: Any) -> None:
    scores = ragged(*parts)
    assert files_apart(scores) == (None, False)
    assert clients_apart(scores) is None


def test_rounding_beyond_one_is_no_other_scale() -> None:
    assert files_apart(ragged([0.5, 1 + 1e-9], [0.2, 0.9])) == (None, False)


def test_a_single_wrong_record_is_a_doubt_and_no_scale() -> None:
    parts = hospitals()
    parts[0][7] = 1.7
    difference, is_evident = files_apart(ragged(*parts))
    assert unusual(difference) == (0,)
    assert not is_evident
    assert clients_apart(ragged(*parts)) is None


def test_small_files_of_another_unit_are_evident() -> None:
    _, is_evident = files_apart(ragged([12.0, 45.0, 80.0], [0.2, 0.9], [0.5]))
    assert is_evident


@pytest.mark.parametrize("size", [1, 3, 10, 40])
def test_one_distribution_gives_no_alarm(size: Any) -> None:
    """Log-odds of 300 clients, of whom some lie within [0, 1] by chance.

    At most one false alarm in ``1 / MAX_FALSE_ALARM`` trials is promised: three or more in 400
    would come with a probability below 1 in 100.
    """
    rng = np.random.default_rng(size)
    ends = np.arange(301, dtype=np.int64) * size
    alarms = sum(
        clients_apart(Ragged(rng.normal(0.4, 0.9, 300 * size), ends)) is not None
        for _ in range(400)
    )
    assert 400 * MAX_FALSE_ALARM < 1
    assert alarms <= 2


def test_one_small_hospital_in_percent_is_told_by_a_server() -> None:
    """The alarm has power: 25 records are enough."""
    parts = hospitals(sizes=(25, 40, 40))
    parts[0] = 100 * parts[0]
    assert unusual(clients_apart(ragged(*parts))) == (0,)


def test_the_sentence_names_clients_and_ranges() -> None:
    difference = clients_apart(ragged([1.0, 20, 99] * 10, *[[0.25, 0.75, 0.5] * 10] * 5))
    assert difference is not None
    assert difference.sentence(tuple("abcdef")) == (
        "scores seem to be of different scales: those of a are from 1 to 99, "
        "those of b, c, d and 2 others from 0.25 to 0.75"
    )
    assert "those of client 0 are" in difference.sentence(())
