"""The published schema, and the check that reads it."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.reporting.page import report
from tacit.results.saved.reading import REQUIREMENTS, Result, check_result, result_schema
from tests.reporting.examples import PROTOCOLS, changed, content
from tests.results.saved.test_integrity import paths

REFERENCE = jsonschema.Draft202012Validator(result_schema())
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    0.5,
    2,
    "",
    "x",
    [],
    [None],
    {},
    {"value": 1},
    "sha256:00",
)


def fits(result: Any) -> bool:
    try:
        check_result(result)
    except ValueError:
        return False
    return True


def keywords(schema: Any) -> set[str]:
    """The keywords of a schema and of those inside it."""
    if isinstance(schema, list):
        return {word for entry in schema for word in keywords(entry)}
    if not isinstance(schema, dict):
        return set()
    inside: set[str] = set()
    for key, entry in schema.items():
        named = key in ("properties", "$defs")
        inside |= keywords(list(entry.values())) if named else keywords(entry)
    return inside | schema.keys()


@pytest.mark.parametrize("version", ["tacit-result/2"])
def test_the_schema_is_a_schema(version: str) -> None:
    jsonschema.Draft202012Validator.check_schema(result_schema(version))
    assert result_schema(version)["properties"]["schema"]["const"] == version


@pytest.mark.parametrize(
    ("name", "exact"), [(name, place % 2 == 0) for place, name in enumerate(PROTOCOLS)]
)
def test_every_result_follows_it(name: str, exact: bool) -> None:
    made = content(name, exact=exact)
    REFERENCE.validate(made)
    check_result(made)


def test_every_entry_of_a_result_is_described() -> None:
    known = result_schema()["properties"].keys()
    for name in PROTOCOLS:
        assert content(name, exact=True, federation="a").keys() <= known


@given(st.data())
def test_the_check_agrees_with_the_reference_on_results_that_were_changed(
    data: st.DataObject,
) -> None:
    """The check is our own; jsonschema is only installed for tests."""
    made = copy.deepcopy(content("silent", exact=True))
    *way, last = data.draw(st.sampled_from(paths(made)))
    cut = data.draw(st.integers(0, len(way)))
    way, last = (way[:cut], [*way, last][cut])
    node = made
    for key in way:
        node = node[key]
    node[last] = data.draw(st.sampled_from(ODD))
    assert fits(made) == REFERENCE.is_valid(made)


@pytest.mark.parametrize("key", sorted(result_schema()["required"]))
def test_what_is_required_must_be_there(key: str) -> None:
    made = content("fedauc")
    del made[key]
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
    node = made
    for key in way[:-1]:
        node = node[key]
    node[way[-1]] = value
    with pytest.raises(ValueError, match=sentence):
        check_result(made)


def test_a_sentence_exists_for_every_keyword_of_the_schema() -> None:
    nested = {"$defs", "$ref", "additionalProperties", "anyOf", "items", "properties", "required"}
    notes = {"$id", "$schema", "description", "title"}
    assert keywords(result_schema()) <= nested | notes | REQUIREMENTS.keys()


MEASURE: dict[str, Any] = {
    "value": 0.71,
    "privacy_error": 0.01,
    "cell_error": 0.0,
    "sampling_error": None,
    "threshold": 0.5,
    "interval": [0.69, 0.73],
}
PARTS = [{"name": "north", "records": 812.5, "measures": {"Brier score": MEASURE}}]
PLANNED: dict[str, Any] = {
    "measures": {"Brier score": MEASURE},
    "sites": PARTS,
    "classes": [{"name": "benign", "measures": {}}],
    "reveal": "parties",
}


@pytest.mark.parametrize("name", [*PLANNED, "all"])
def test_there_is_room_for_what_is_planned(name: str) -> None:
    entries = PLANNED if name == "all" else {name: PLANNED[name]}
    made = changed(content("fedauc"), **entries)
    page = report([Result.of(made, "planned")])
    assert "tacit-result/2" in page


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        (
            {"measures": {"F1": {**MEASURE, "cell_error": -1}}},
            r"measures\.F1\.cell_error must",
        ),
        ({"measures": {"F1": {"value": 1}}}, r"measures\.F1 must have privacy_error, cell_error"),
        ({"sites": [{"measures": {}}]}, r"sites\[0\] must have name"),
        ({"sites": PARTS * 201}, "sites must have at most so many items: 200"),
        ({"classes": [{"name": "a"}]}, r"classes\[0\] must have measures"),
        ({"reveal": "nobody"}, "reveal must be one of"),
    ],
)
def test_what_does_not_fit_that_room_is_refused(entries: dict[str, Any], sentence: str) -> None:
    made = changed(content("fedauc"), **entries)
    with pytest.raises(ValueError, match=sentence):
        Result.of(made, "odd")
