"""Choices with parameters as texts and as objects, names in any spelling, words of trust."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tacit.local.ustatistic.kernels import Area, Gini, Kendall, Listed, Range, Scaled
from tacit.protocol import SecureSum, SettingError, Trust, kind_of, protocol_names
from tacit.protocol.settings import chosen, listed_name, suggestion
from tacit.protocols.published.calibration import LevelSum

KINDS = (Gini, Kendall, Area)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("gini", Gini()),
        ("gini(domain=range(high=5.0, bins=4))", Gini(Range(high=5, bins=4))),
        (
            "kendall(domain=range(high=5.0, bins=3), second=listed(values=0 1.5))",
            Kendall(Range(high=5, bins=3), Listed([0, 1.5])),
        ),
        ("auc(domain=scaled(bins=16))", Area(Scaled(bins=16))),
    ],
)
def test_a_choice_in_a_choice_is_written_and_read(text: str, choice: Any) -> None:
    assert str(choice) == text
    assert chosen("kernel", text, KINDS) == choice
    assert chosen("kernel", choice, KINDS) is choice


def test_a_parameter_may_be_given_as_its_text() -> None:
    given: Any = Gini("range(high=5)")  # type: ignore[arg-type]
    assert chosen("kernel", given, KINDS) == Gini(Range(high=5))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("gini(domain=scaled)", "kernel: domain must be one of range, listed, got 'scaled'"),
        (Gini(Scaled()), "kernel: domain must be one of range, listed"),  # type: ignore[arg-type]
        ("gini(domain=range(bins=x))", "kernel: domain: bins must be a whole number, got 'x'"),
        ("gini(domain=range(high=x))", "kernel: domain: high must be a number, got 'x'"),
        ("gini(domain=listed(values=x))", "values must be numbers with commas or spaces between"),
        ("gini(domain=listed(values=))", "values must be given, got none"),
        ("gini(domain=listed)", "kernel: domain: listed needs values"),
        ("gini(bins=4)", "kernel: gini has no parameter 'bins'; it has domain$"),
        ("gini(range)", "kernel: a parameter is written as name=value, got 'range'"),
        ("gini(domain=range, domain=range)", "kernel: gini has the parameter 'domain' once"),
        ("gini(domain=range", "kernel must end with the bracket that it opens"),
        ("gini)", "kernel must close every bracket that it opens"),
        ("gini(" + "," * 1000 + ")", "kernel must be a text of at most 1000 characters, got one"),
        ("x" * 900, "kernel must be one of gini, kendall, auc, got 'x{59}$"),
        (3, "kernel must be one of gini, kendall, auc, got 3"),
    ],
)
def test_what_a_parameter_does_not_take_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        chosen("kernel", value, KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "kendall(second=listed(values=0 1.5), domain=range)",
        "kendall(second=listed(values=0, 1.5))",
        "Kendall( second = Listed( values = [0, 1.5] ) )",
    ],
)
def test_a_list_is_written_with_spaces_commas_or_brackets(text: str) -> None:
    assert chosen("kernel", text, KINDS) == Kendall(second=Listed([0, 1.5]))


@pytest.mark.parametrize("unit", ["(", "((", "()", "a=(", ", ", " ", "a=,", "[", "=", ") "])
def test_hostile_texts_are_read_in_one_pass(unit: str) -> None:
    """The steps of the interpreter grow with the length of a text, not with its cube."""

    def steps(repeats: int) -> int:
        count = 0

        def trace(*_: Any) -> Any:
            nonlocal count
            count += 1
            return trace

        text = f"gini(domain=range({unit * repeats}"
        sys.settrace(trace)
        try:
            with pytest.raises(ValueError, match="kernel"):
                chosen("kernel", text, KINDS)
        finally:
            sys.settrace(None)
        return count

    assert steps(200) < 5 * steps(50)


def test_a_choice_of_another_setting_is_read_as_its_text() -> None:
    assert chosen("trust", SecureSum(dropouts=0.2), (LevelSum,)) == LevelSum(dropouts=0.2)
    assert type(chosen("trust", LevelSum(), (SecureSum,))) is SecureSum
    with pytest.raises(ValueError, match="secure-sum has no parameter 'budget'; it has dropouts"):
        chosen("trust", LevelSum(budget="sample"), (SecureSum,))


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_is_found_in_every_spelling(name: str) -> None:
    for word in (name, name.upper(), name.replace("-", "_"), name.replace("-", "").title()):
        assert listed_name(word, protocol_names()) == name
    assert kind_of(kind_of(name).__name__.upper() if name == "dpauc" else name.upper()).name == name


def test_an_exact_name_wins_over_another_spelling() -> None:
    assert listed_name("a-b", ("ab", "a-b")) == "a-b"
    assert listed_name("A-B", ("ab", "a-b")) is None


@pytest.mark.parametrize(
    ("word", "meant"),
    [("fedauk", "fedauc"), ("score-histogramm", "score-histogram"), ("dpAUK", "dpauc")],
)
def test_an_unknown_name_is_refused_with_the_nearest(word: str, meant: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean '{meant}'"):
        kind_of(word)


def test_what_is_near_to_nothing_gets_no_suggestion() -> None:
    assert suggestion("xyz", protocol_names()) == ""


@pytest.mark.parametrize("trust", Trust)
def test_a_word_in_any_spelling_means_its_trust(trust: Trust) -> None:
    for word in (trust.value, trust.name, f"{trust.value}(dropouts=0.2)"):
        assert Trust.of(word) is trust
    assert trust.description


def test_unknown_words_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"trust must be one of .*'exact-sum'.*, got 'everybody'"):
        Trust.of("everybody")
