"""The published schema, and the check that reads it."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.reporting.schema import check_result, find_problem, result_schema
from tests.reporting.examples import PROTOCOLS, content
from tests.reporting.test_integrity import paths

REFERENCE = jsonschema.Draft202012Validator(result_schema())
ODD = (None, True, -1, 0, 0.5, 2, "", "x", [], [None], {}, {"value": 1}, "sha256:00")


def fits(found: Any) -> bool:
    return find_problem(found, result_schema(), result_schema()) is None


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(result_schema())


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("exact", [False, True])
def test_every_result_follows_it(name: str, exact: bool) -> None:
    made = content(name, exact=exact)
    REFERENCE.validate(made)
    check_result(made)


def test_every_entry_of_a_result_is_described() -> None:
    known = result_schema()["properties"].keys()
    for name in PROTOCOLS:
        assert content(name, exact=True, federation="a").keys() <= known


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_it_agrees_with_the_reference_on_results_that_were_changed(data: st.DataObject) -> None:
    made = copy.deepcopy(content("silent", exact=True))
    *way, last = data.draw(st.sampled_from(paths(made)))
    cut = data.draw(st.integers(0, len(way)))
    way, last = (way[:cut], [*way, last][cut])
    place = made
    for key in way:
        place = place[key]
    place[last] = data.draw(st.sampled_from(ODD))
    assert fits(made) == REFERENCE.is_valid(made)


@pytest.mark.parametrize("key", sorted(result_schema()["required"]))
def test_what_is_required_must_be_there(key: str) -> None:
    made = content("fedauc")
    del made[key]
    assert not fits(made)
    with pytest.raises(ValueError, match=f"must have {key}"):
        check_result(made)


@pytest.mark.parametrize(
    ("way", "value", "sentence"),
    [
        (("clients",), 0, "clients must be at least 1, got 0"),
        (("traffic", "rounds"), "x", r"traffic\.rounds must be of type integer, got 'x'"),
        (("warnings",), ["a", 1], r"warnings\[1\] must be of type string, got 1"),
        (("noise",), "some", "noise must be one of"),
        (("spent", "delta"), 2, r"spent\.delta must be at most 1, got 2"),
        (("auc", "privacy_error"), -1, r"auc\.privacy_error must be at least 0, got -1"),
    ],
)
def test_a_refusal_names_place_and_value(way: tuple[str, ...], value: Any, sentence: str) -> None:
    made = copy.deepcopy(content("fedauc"))
    place = made
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    with pytest.raises(ValueError, match=sentence):
        check_result(made)


def test_an_unknown_keyword_is_no_silent_consent() -> None:
    with pytest.raises(NotImplementedError, match="uniqueItems"):
        find_problem([], {"uniqueItems": True}, {})
