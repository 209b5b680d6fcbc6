"""Frames from somebody else are refused, whatever bytes they hold."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.running.mpc.frames import HEAD, Frame, FrameError, read_frame


def raw(frame: Frame) -> bytes:
    stream = io.BytesIO()
    frame.write(stream)
    return stream.getvalue()


def test_a_frame_arrives_as_it_was_sent() -> None:
    numbers = np.arange(5)
    frame = read_frame(io.BytesIO(raw(Frame.of("pairs", {"places": numbers}, chunk=7))))
    assert frame is not None
    assert (frame.kind, frame.header["chunk"]) == ("pairs", 7)
    np.testing.assert_array_equal(frame.array("places"), numbers)
    with pytest.raises(FrameError, match="no array 'leading'"):
        frame.array("leading")


def test_the_end_between_two_frames_is_no_error() -> None:
    assert read_frame(io.BytesIO()) is None


@given(st.integers(1, 200))
def test_a_frame_cut_short_is_refused(size: int) -> None:
    whole = raw(Frame.of("pairs", {"places": np.arange(20)}, chunk=7))
    with pytest.raises(FrameError, match="cut short"):
        read_frame(io.BytesIO(whole[: size % len(whole) or 1]))


@given(st.binary(min_size=1, max_size=200))
def test_other_bytes_are_no_frame(result: bytes) -> None:
    with pytest.raises(FrameError):
        read_frame(io.BytesIO(result))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"TJNT\x02" + bytes(12), "version must be 1, got 2"),
        (HEAD.pack(2**31, 0), "announces"),
        (HEAD.pack(2, 2**62), "announces"),
        (HEAD.pack(2, 0) + b"[]", "not an object"),
        (HEAD.pack(2, 0) + b"{{", "not JSON"),
    ],
)
def test_what_a_head_announces_is_checked(head: bytes, said: str) -> None:
    with pytest.raises(FrameError, match=said):
        read_frame(io.BytesIO(head))
