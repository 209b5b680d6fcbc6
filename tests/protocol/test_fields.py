"""Messages: round trips, sizes, and bytes from a stranger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from tacit.protocol.fields import FIELDS_HEADER, MessageError, decode, encode

FIELDS = st.dictionaries(
    st.text("abcdefgh_", min_size=1, max_size=12),
    st.sampled_from(["<f8", "<i8", "|i1", "|b1"]).flatmap(
        lambda dtype: arrays(dtype, array_shapes(min_dims=0, max_dims=3, max_side=4))
    ),
    max_size=4,
)


@given(FIELDS)
def test_arrays_come_back_as_they_were(fields: dict[str, NDArray[Any]]) -> None:
    back: Mapping[str, Any] = decode(encode(fields))
    assert back.keys() == fields.keys()
    for name, array in fields.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


@settings(max_examples=300)
@given(FIELDS, st.data())
def test_mutated_messages_never_escape_with_another_error(
    fields: dict[str, NDArray[Any]], data: st.DataObject
) -> None:
    message = bytearray(encode(fields))
    index = data.draw(st.integers(0, len(message) - 1))
    message[index] ^= data.draw(st.integers(1, 255))
    try:
        decode(bytes(message))
    except MessageError:
        return


@given(FIELDS, st.data())
def test_a_message_cut_short_or_continued_is_refused(
    fields: dict[str, NDArray[Any]], data: st.DataObject
) -> None:
    message = encode(fields)
    cut = data.draw(st.integers(0, len(message) - 1))
    with pytest.raises(MessageError):
        decode(message[:cut])
    with pytest.raises(MessageError, match="after the message's end"):
        decode(message + b"\x00")


HUGE, LONG = (2**31).to_bytes(8, "little"), (2**21).to_bytes(8, "little")
LONG_BYTES = b"\x01\x04\x01b" + LONG + bytes(2**21)


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (b"\x09\x00", "version must be 1, got 9"),
        (b"\x01\x01\x01\x00\x01a" + HUGE, "announces an axis of 2147483648"),
        # an axis beside an empty one has no bytes, but whoever makes room for it would
        (b"\x01\x01\x01\x00\x02a" + HUGE + bytes(8), "announces an axis of 2147483648"),
        # each axis is as long as the message, and their product has more than 64 bits
        (b"\x01\x02\x01\x00\x04a" + bytes(8) + 3 * LONG + LONG_BYTES, "'a' announces axes"),
    ],
)
def test_what_is_announced_is_checked_before_anything_is_allocated(
    rest: bytes, reason: str
) -> None:
    with pytest.raises(MessageError, match=reason):
        decode(FIELDS_HEADER.magic + rest)


def test_arrays_of_other_types_are_not_sent() -> None:
    with pytest.raises(MessageError, match="complex128"):
        encode({"a": np.zeros(2, dtype=complex)})
