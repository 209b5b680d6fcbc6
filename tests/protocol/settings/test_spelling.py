"""Names in any spelling, and suggestions for unknown ones."""

from __future__ import annotations

import pytest

from tacit.protocol.choices import spelled, suggestion
from tacit.protocol.registry import SettingError, kind_of, protocol_names
from tacit.protocol.trust import Trust


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_is_found_in_every_spelling(name: str) -> None:
    for word in (name, name.upper(), name.replace("-", "_"), name.replace("-", "").title()):
        assert spelled(word, protocol_names()) == name
    assert kind_of(kind_of(name).__name__.upper() if name == "dpauc" else name.upper()).name == name


def test_an_exact_name_wins_over_another_spelling() -> None:
    assert spelled("a-b", ("ab", "a-b")) == "a-b"
    assert spelled("A-B", ("ab", "a-b")) is None


@pytest.mark.parametrize(
    ("word", "meant"),
    [("fedauk", "fedauc"), ("score-histogramm", "score-histogram"), ("dpAUK", "dpauc")],
)
def test_an_unknown_name_is_refused_with_the_nearest(word: str, meant: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean '{meant}'"):
        kind_of(word)


def test_what_is_near_to_nothing_gets_no_suggestion() -> None:
    assert suggestion("xyz", protocol_names()) == ""


def test_trusts_are_understood_in_every_spelling() -> None:
    assert Trust.of("Secure_Sum") is Trust.SECURE_SUM
    assert Trust.of("LOCAL") is Trust.LOCAL
