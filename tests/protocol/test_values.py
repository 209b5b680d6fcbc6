"""Asks as bytes: they come back as they were, and strangers' bytes give our own error."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import DPAUC, FedAUC, PublishedFedAUC
from tacit.counts.rank_noise import RankNoise
from tacit.protocol import ClientState, NoNoise, Query, Ragged
from tacit.protocol import values as codec
from tacit.protocol.fields import MessageError, encode
from tests.federations import binormal_clients

RANK_KINDS = codec.query_kinds(FedAUC(1.0))

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMED = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)


def sample_query() -> Query:
    """The second query of FedAUC, whose values are of every kind."""
    clients, protocol = binormal_clients(20, 30, 3), PublishedFedAUC(1.0, "staircase", "fixed")
    conversation = protocol.conversation(3)
    first = next(conversation)
    return conversation.send(first.step.answer(clients, first, NoNoise(), ClientState())).part(1, 2)


@given(NAMED)
def test_values_come_back_as_they_were(values: dict[str, Any]) -> None:
    back = codec.decode_values(codec.encode_values(values))
    assert back == values
    assert repr(back) == repr(values)


def test_numbers_that_are_not_finite_arrays_and_dataclasses_come_back() -> None:
    ragged = Ragged(np.arange(3), np.array([0, 3]))
    values = {"inf": np.inf, "grid": np.eye(2), "own": ragged, "noise": RankNoise("staircase", 0.3)}
    back = codec.decode_values(codec.encode_values(values, RANK_KINDS), RANK_KINDS)
    assert (back["inf"], back["noise"]) == (np.inf, values["noise"])
    np.testing.assert_array_equal(back["grid"], np.eye(2))
    np.testing.assert_array_equal(back["own"].offsets, ragged.offsets)


def test_an_ask_comes_back_under_the_agreed_settings() -> None:
    query, agreed = sample_query(), PublishedFedAUC(1.0, "staircase", "fixed")
    back = codec.decode_query(codec.encode_query(query), agreed)
    assert (back.step, back.view, back.broadcast) == (query.step, query.view, dict(query.broadcast))
    assert back.protocol is agreed
    for name, value in query.per_client.items():
        part: Any = back.per_client[name]
        pair = (value.values, part.values) if isinstance(value, Ragged) else (value, part)
        np.testing.assert_array_equal(*pair)


MESSAGE = codec.encode_query(sample_query())


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_asks_never_escape_with_another_error(data: st.DataObject) -> None:
    message = bytearray(MESSAGE)
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(message) - 1))
        message[index] ^= data.draw(st.integers(1, 255))
    try:
        codec.decode_query(bytes(message), FedAUC(1.0))
    except MessageError:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["float", "bytes", "array", "tuple", "named", "RankNoise", "x"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_structures_of_a_stranger_are_refused_with_our_own_error(tree: Any) -> None:
    fields = {
        codec.STRUCTURE: np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8),
        codec.BLOB: np.zeros(3, dtype=np.uint8),
        "0": np.arange(2),
    }
    try:
        codec.decode_values(encode(fields), RANK_KINDS)
    except MessageError:
        return


def stranger(tree: Any, blob: int = 0, arrays: int = 0) -> bytes:
    """A message of values with any structure, so many bytes beside it, and arrays of 1,000 each."""
    fields = {
        codec.STRUCTURE: np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8),
        codec.BLOB: np.zeros(blob, dtype=np.uint8),
    }
    return encode(fields | {str(index): np.zeros(1000) for index in range(arrays)})


def peak_of(message: bytes) -> int:
    """The most memory that decoding takes, in bytes, whether or not it is refused."""
    tracemalloc.start()
    try:
        with contextlib.suppress(MessageError):
            codec.decode_values(message, RANK_KINDS)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_megabyte_does_not_become_a_gigabyte() -> None:
    """A thousand values of the same million bytes are refused at the second."""
    size = 1_000_000
    message = stranger({"named": {"x": [{"bytes": [0, size]}] * 1000}}, blob=size)
    assert peak_of(message) < 8 * size
    with pytest.raises(MessageError, match="not those that follow byte 1000000"):
        codec.decode_values(message)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([{"bytes": [0, 2]}, {"bytes": [1, 3]}], "bytes 1 to 3 of 3 are not those that follow"),
        ([{"bytes": [1, 3]}, {"bytes": [0, 1]}], "bytes 1 to 3 of 3 are not those that follow"),
        ([{"bytes": [0, 4]}], "bytes 0 to 4 of 3 are not"),
        ([{"bytes": [0, 2]}], "values take 2 of 3 bytes and 0 of 2 arrays"),
        ([{"bytes": [0, 3]}, {"array": 0}, {"array": 0}], "array 0 is not array 1, the next"),
        ([{"array": 1}], "array 1 is not array 0, the next"),
        ([{"array": 0}, {"bytes": [0, 3]}], "values take 3 of 3 bytes and 1 of 2 arrays"),
        ([{"tuple": "abc"}], "a tuple is written as a list, got 'abc'"),
    ],
)
def test_every_byte_and_array_belongs_to_one_value(values: list[Any], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        codec.decode_values(stranger({"named": {"x": values}}, blob=3, arrays=2))


def test_a_structure_too_long_is_refused_on_both_sides() -> None:
    values = {"x": [0] * codec.MAX_STRUCTURE}
    with pytest.raises(MessageError, match=f"at most {codec.MAX_STRUCTURE} bytes, got"):
        codec.encode_values(values)
    with pytest.raises(MessageError, match=f"at most {codec.MAX_STRUCTURE} bytes, got"):
        codec.decode_values(stranger({"named": values}))


def test_values_nested_too_deep_are_refused() -> None:
    deep: Any = 1
    for _ in range(codec.MAX_DEPTH):
        deep = [deep]
    with pytest.raises(MessageError, match="nested at most"):
        codec.decode_values(codec.encode_values({"deep": deep}))


def test_deeply_nested_json_is_refused() -> None:
    structure = np.frombuffer(b"[" * 100_000, dtype=np.uint8)
    with pytest.raises(MessageError, match="not JSON"):
        codec.decode_values(encode({codec.STRUCTURE: structure, codec.BLOB: structure[:0]}))


def test_unknown_steps_and_views_are_refused_by_name() -> None:
    content = {"step": "share_scores", "view": "each", "shared": {}, "each": {}}
    with pytest.raises(MessageError, match="dpauc has no step 'share_scores'"):
        codec.decode_query(codec.encode_values(content), DPAUC(1.0))
    with pytest.raises(MessageError, match="unknown view 'all'"):
        codec.decode_query(codec.encode_values(content | {"view": "all"}), FedAUC(1.0))
    with pytest.raises(MessageError, match="made of arrays"):
        codec.decode_query(codec.encode_values(content | {"each": {"ranks": 3}}), FedAUC(1.0))
    with pytest.raises(MessageError, match="has a step, a view and values"):
        codec.decode_query(codec.encode_values(content | {"epsilon": 3}), FedAUC(1.0))


def test_values_of_other_classes_are_neither_sent_nor_made() -> None:
    with pytest.raises(MessageError, match="DPAUC are not written"):
        codec.encode_values({"protocol": DPAUC(1.0)})
    with pytest.raises(MessageError, match="epsilon must be positive"):
        hostile = codec.encode_values({"noise": RankNoise("staircase", 1.0)}, RANK_KINDS)
        text = hostile.replace(b"0x1.0000000000000p+0", b"-0x1.000000000000p+0")
        codec.decode_values(text, RANK_KINDS)


def test_named_values_have_the_names_and_types_that_were_asked_for() -> None:
    message = codec.encode_values({"reason": "no"})
    with pytest.raises(MessageError, match=r"\['code'\] were expected, got \['reason'\]"):
        codec.named_values(message, code=int)
    with pytest.raises(MessageError, match="'reason' must be of type bytes"):
        codec.named_values(message, reason=bytes)
