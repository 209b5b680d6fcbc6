"""Evident differences of scale are told, and chance is not; units of one owner's files."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import DPAUC, DataError, ExactAUC, FedAUC, ScaleWarning, evaluate, read
from tacit.data.scales import MAX_FALSE_ALARM, ScaleDifference, clients_apart, files_apart
from tacit.protocol import Clients, Ragged
from tacit.running.evaluating import exact_auc


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


NAMES = ("north", "south", "east")


def probabilities(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 400)
    return 1 / (1 + np.exp(-rng.normal(1.5 * labels - 1, 1.0))), labels


def write(name: str, scores: Any, labels: Any) -> Any:
    rows = "".join(f"{s!r},{y},w\n" for s, y in zip(scores.tolist(), labels, strict=True))
    Path(f"{name}.csv").write_text("score,label,ward\n" + rows, encoding="ascii")
    return f"{name}.csv"


@pytest.fixture
def percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """North in percent, the others from 0 to 1."""
    monkeypatch.chdir(tmp_path)
    made = [probabilities(seed) for seed in range(3)]
    return [
        write(name, scores * (100 if name == "north" else 1), labels)
        for name, (scores, labels) in zip(NAMES, made, strict=True)
    ]


def test_one_unit_for_all_files_stays(percent: Any) -> None:
    north = read(percent[0], unit="percent")
    assert north.unit == "percent"
    assert north.scores.max() > 90
    result = evaluate(north, DPAUC(1.0), seed=0)
    assert result.unit == "probability"
    assert abs(result.auc.value - exact_auc(north)) < 0.1
    assert evaluate(north, ExactAUC()).unit == "percent"


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("permille", "unit must be one of probability, percent, log-odds, real, got 'permille'"),
        ({"west.csv": "percent"}, "a unit was named for west.csv, which is none of the files"),
        ({"north.csv": "real"}, "scores in real cannot be converted to probability"),
        ("probability", "scores in probability must be from 0 to 1, got"),
        ({}, "scores in probability must be from 0 to 1, got"),
    ],
)
def test_wrong_units_are_refused(percent: Any, unit: str, said: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(said)}"):
        read(percent, unit=unit)


def test_a_single_wrong_record_is_a_doubt(percent: Any) -> None:
    scores, labels = probabilities(0)
    scores[3] = 1.7
    write("north", scores, labels)
    with pytest.warns(ScaleWarning, match=r"those of north\.csv are from .* to 1\.7, those of"):
        assert read(percent).records == 1200


def test_files_of_one_scale_give_no_warning(percent: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(percent[1:])
        read(percent[0])
        read(percent, label=None)


def test_a_server_that_sees_scores_names_the_client_of_another_scale(percent: Any) -> None:
    """Here clients stand in one table, which is read without a stop."""
    both = [read(file) for file in percent]
    clients = Clients.concatenate(both)
    for protocol in (FedAUC(1.0), FedAUC(1.0, trust="local"), ExactAUC()):
        result = evaluate(clients, protocol, seed=0)
        (reported,) = (text for text in result.warnings if "scales" in text)
        assert "those of north are from" in reported
        assert reported.endswith("then the figure is wrong: name each client's unit")
    fine = evaluate(read(percent[1:]), FedAUC(1.0), seed=0)
    assert not [text for text in fine.warnings if "scales" in text]
