"""The published schema: what it describes, and what a refusal says."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from tacit.reporting.page import report
from tacit.results.saved.reading import REQUIREMENTS, Result, check_result, result_schema
from tests.reporting.examples import PROTOCOLS, changed, content, edited


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


def test_the_schema_describes_every_entry_and_has_a_sentence_for_every_keyword() -> None:
    schema = result_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for place, name in enumerate(PROTOCOLS):
        made = content(name, exact=place % 2 == 0, federation="a")
        check_result(made)
        assert made.keys() <= schema["properties"].keys()
    nested = {"$defs", "$ref", "additionalProperties", "anyOf", "items", "properties", "required"}
    notes = {"$id", "$schema", "description", "title"}
    assert keywords(schema) <= nested | notes | REQUIREMENTS.keys()


MEASURE: dict[str, Any] = {"value": 0.71, "privacy_error": 0.01, "cell_error": 0.0}
MEASURE |= {"sampling_error": None, "threshold": 0.5, "interval": [0.69, 0.73]}
PARTS = [{"name": "north", "records": 812.5, "measures": {"Brier score": MEASURE}}]


def test_parts_and_measures_may_leave_out_what_is_optional() -> None:
    parts = {"sites": PARTS, "classes": [{"name": "benign", "measures": {}}]}
    entries = parts | {"measures": {"Brier score": MEASURE}, "reveal": "parties"}
    page = report([Result.of(changed(content("fedauc"), **entries), "planned")])
    assert "tacit-result/2" in page


@pytest.mark.parametrize(
    ("way", "value", "sentence"),
    [
        (("noise",), ..., "must have noise"),
        (("clients",), 0, "clients must be at least 1, got 0"),
        (("traffic", "rounds"), "x", r"traffic\.rounds must be of type integer, got 'x'"),
        (("warnings",), ["a", 1], r"warnings\[1\] must be of type string, got 1"),
        (("noise",), "some", "noise must be one of"),
        (("spent", "delta"), 2, r"spent\.delta must be at most 1, got 2"),
        (("auc", "privacy_error"), -1, r"auc\.privacy_error must be at least 0, got -1"),
        (("measures",), {"F1": MEASURE | {"cell_error": -1}}, r"measures\.F1\.cell_error must"),
        (("measures",), {"F1": {"value": 1}}, r"measures\.F1 must have privacy_error, cell_error"),
        (("sites",), [{"measures": {}}], r"sites\[0\] must have name"),
        (("sites",), PARTS * 201, "sites must have at most so many items: 200"),
        (("classes",), [{"name": "a"}], r"classes\[0\] must have measures"),
        (("reveal",), "nobody", "reveal must be one of"),
    ],
)
def test_a_refusal_names_place_and_value(way: tuple[str, ...], value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        check_result(edited(content("fedauc"), way, value))
