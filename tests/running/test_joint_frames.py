"""Frames and sealed boxes from somebody else are refused, whatever bytes they hold."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.crypto.sealed import seal
from tacit.data.clients import Clients
from tacit.protocols.messages import encode
from tacit.protocols.paired_ustatistic import PairedUStatistic
from tacit.running.joint_engine import JointError
from tacit.running.joint_frames import HEAD, Frame, FrameError, read_frame
from tacit.running.joint_processes import JointSettings, Parties
from tacit.running.joint_work import box_place

PLACE = ("session", 0, "pairs", 0)


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
def test_other_bytes_are_no_frame(found: bytes) -> None:
    with pytest.raises(FrameError):
        read_frame(io.BytesIO(found))


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (HEAD.pack(b"TJNT", 2, 2, 0), "version must be 1, got 2"),
        (HEAD.pack(b"TJNT", 1, 2**31, 0), "announces"),
        (HEAD.pack(b"TJNT", 1, 2, 2**62), "announces"),
        (HEAD.pack(b"TJNT", 1, 2, 0) + b"[]", "not an object"),
        (HEAD.pack(b"TJNT", 1, 2, 0) + b"{{", "not JSON"),
    ],
)
def test_what_a_head_announces_is_checked(head: bytes, said: str) -> None:
    with pytest.raises(FrameError, match=said):
        read_frame(io.BytesIO(head))


def receiving() -> Parties:
    """The receiving side alone; no process is started."""
    clients = Clients.from_arrays([0.5, 0.6], [0, 1], ["north", "south"])
    return Parties(clients, PairedUStatistic("gini", 1.0), JointSettings())


@pytest.fixture
def aggregator() -> Parties:
    return receiving()


def box(aggregator: Parties, content: bytes) -> Frame:
    return Frame({"kind": "box"}, seal(content, aggregator.receiver.public, box_place(*PLACE)))


def test_a_box_of_shares_is_opened(aggregator: Parties) -> None:
    shares = np.array([1, -(2**62)])
    found = aggregator.opened(box(aggregator, encode({"shares": shares})), PLACE, "shares")
    np.testing.assert_array_equal(found, shares)


@given(content=st.binary(max_size=100))
def test_hostile_bytes_in_a_box_are_refused(content: bytes) -> None:
    aggregator = receiving()
    with pytest.raises(JointError, match="north sent"):
        aggregator.opened(box(aggregator, content), PLACE, "shares")


@given(body=st.binary(max_size=200))
def test_hostile_boxes_are_refused(body: bytes) -> None:
    with pytest.raises(JointError, match="north sent what cannot be read"):
        receiving().opened(Frame({"kind": "box"}, body), PLACE, "shares")


@pytest.mark.parametrize(
    "arrays",
    [
        {"values": np.arange(3)},
        {"shares": np.arange(3.0)},
        {"shares": np.arange(4).reshape(2, 2)},
        {"shares": np.zeros(3, dtype=np.int8)},
    ],
)
def test_a_box_must_hold_a_row_of_integers(
    aggregator: Parties, arrays: dict[str, np.ndarray]
) -> None:
    with pytest.raises(JointError, match="no row of 64-bit integers called 'shares'"):
        aggregator.opened(box(aggregator, encode(arrays)), PLACE, "shares")


def test_a_box_of_another_part_is_refused(aggregator: Parties) -> None:
    later = (*PLACE[:3], 1)
    with pytest.raises(JointError, match="cannot be read"):
        aggregator.opened(box(aggregator, encode({"shares": np.arange(3)})), later, "shares")


def test_another_answer_is_no_box(aggregator: Parties) -> None:
    with pytest.raises(JointError, match="answered 'done' instead of a sealed box"):
        aggregator.opened(Frame.of("done"), PLACE, "shares")
