"""Fingerprints: what keeps them, what changes them, what they are made of."""

from __future__ import annotations

import json

import pytest

from tacit.results.saved.integrity import canonical, federation_entry, fingerprint
from tests.reporting.examples import content, edited
from tests.reporting.hostile import places_in


def test_neither_layout_nor_the_type_of_a_whole_number_matters() -> None:
    made = {"b": [1, None, {"d": 2.5}], "a": -(2**52), "é": True}
    again = {"é": True, "a": -(2.0**52), "b": [1.0, None, {"d": 2.5}]}
    assert canonical(json.loads(json.dumps(again, indent=3))) == canonical(made)
    assert canonical({"b": [1]}) != canonical({"b": [True]})


def test_any_change_and_a_missing_or_additional_entry_are_noticed() -> None:
    whole = content("silent")
    entries = [[key] for key in whole]
    changes = [(way, "changed") for way in places_in(whole)] + [(way, ...) for way in entries]
    for way, value in changes:
        other = edited(whole, way, value)
        assert (fingerprint(other) == whole["fingerprint"]) == ([*way] == ["fingerprint"]), way
    assert fingerprint({**whole, "more": 1}) != whole["fingerprint"]


def test_a_number_that_is_not_finite_has_no_fingerprint() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        fingerprint({"value": float("inf")})


def test_a_federation_s_fingerprint_is_made_of_what_was_said() -> None:
    assert federation_entry("a", 5) == federation_entry("a", 5, ("north", "south"))
    others = [
        federation_entry("a", 5),
        federation_entry("b", 5),
        federation_entry("a", 6),
        federation_entry(None, 5),
        federation_entry(None, 5, ("north", "south")),
    ]
    assert len({entry["fingerprint"] for entry in others}) == len(others)
