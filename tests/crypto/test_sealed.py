"""Sealed messages open for their receiver, in their place, and for nobody else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.sealed import HEADER_BYTES, Receiver, SealError, seal

RECEIVER = Receiver.new()


@given(st.binary(max_size=300), st.binary(max_size=20))
def test_what_is_sealed_opens(message: bytes, place: bytes) -> None:
    assert RECEIVER.opened(seal(message, RECEIVER.public, place), place) == message


def test_two_boxes_of_one_message_have_nothing_in_common() -> None:
    boxes = [seal(b"same" * 8, RECEIVER.public, b"") for _ in range(2)]
    assert boxes[0][HEADER_BYTES:] != boxes[1][HEADER_BYTES:]


def test_a_box_does_not_open_elsewhere() -> None:
    box = seal(b"seven", RECEIVER.public, b"party 0, part 1")
    with pytest.raises(SealError, match="another place"):
        RECEIVER.opened(box, b"party 0, part 2")
    with pytest.raises(SealError, match="another receiver"):
        Receiver.new().opened(box, b"party 0, part 1")


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_box_does_not_open(where: int, change: int) -> None:
    box = bytearray(seal(b"seven", RECEIVER.public, b"here"))
    box[where % len(box)] ^= change
    with pytest.raises(SealError):
        RECEIVER.opened(bytes(box), b"here")


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(SealError):
        RECEIVER.opened(raw, b"here")


def test_a_key_of_low_order_is_refused() -> None:
    with pytest.raises(SealError, match="not valid"):
        seal(b"seven", bytes(32), b"here")
    with pytest.raises(SealError):
        RECEIVER.opened(b"TSEA\x01" + bytes(32) + bytes(40), b"here")
