"""Fingerprints: what keeps them, what changes them, what they are made of."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.results.saved.integrity import canonical, federation_entry, fingerprint
from tests.federations import binormal_clients
from tests.reporting.examples import content

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**52), 2**52)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
CONTENTS = st.dictionaries(
    st.text(max_size=4),
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=4,
)


@given(CONTENTS)
def test_layout_does_not_matter(made: dict[str, Any]) -> None:
    again = json.loads(json.dumps(dict(reversed(made.items())), indent=3))
    assert canonical(again) == canonical(made)


@given(CONTENTS)
def test_whole_numbers_are_the_same_as_integers_and_as_floats(made: dict[str, Any]) -> None:
    def respelled(value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, list):
            return [respelled(entry) for entry in value]
        return value

    spelled = {key: respelled(value) for key, value in made.items()}
    assert canonical(spelled) == canonical(made)


def paths(value: Any, position: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all plain values."""
    if isinstance(value, dict):
        return [p for key, entry in value.items() for p in paths(entry, (*position, key))]
    if isinstance(value, list):
        return [p for index, entry in enumerate(value) for p in paths(entry, (*position, index))]
    return [position]


def test_any_change_of_a_value_is_noticed() -> None:
    whole = content("silent")
    for *way, last in paths(whole):
        if [*way, last] == ["fingerprint"]:
            continue
        other = copy.deepcopy(whole)
        node = other
        for key in way:
            node = node[key]
        node[last] = "changed"
        assert fingerprint(other) != whole["fingerprint"], (way, last)


def test_a_missing_or_additional_entry_is_noticed() -> None:
    whole = content("fedauc")
    for key in whole.keys() - {"fingerprint"}:
        fewer = {name: value for name, value in whole.items() if name != key}
        assert fingerprint(fewer) != whole["fingerprint"], key
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


def test_no_record_enters_a_federation_s_fingerprint() -> None:
    protocol = tacit.FedAUC(1.0)
    one, other = (
        tacit.evaluate(binormal_clients(400, 600, 5, seed=seed), protocol, federation="a")
        for seed in (0, 1)
    )
    assert one.to_dict()["federation"] == other.to_dict()["federation"]
