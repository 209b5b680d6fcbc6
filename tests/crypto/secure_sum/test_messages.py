"""Messages as bytes: what was written is read, and nothing else gets past the readers.

The fuzzed readers are those of client and server: 11 kinds of message, 3 ways to spoil each,
50 cases each.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.crypto.identities import (
    MalformedError,
    RoundError,
    SessionError,
    SumError,
    UnknownClientError,
)
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.messages import EVERYBODY, Advert, Kind
from tacit.crypto.secure_sum.terms import SumRestart
from tests.crypto.secure_sum.transporting import ROUNDS, Federation

SESSION = bytes(range(16))
HEADER = messages.HEADER.size
CASES = 50

Records = st.dictionaries(st.integers(0, 99), st.binary(min_size=5, max_size=5))
Indices = st.sets(st.integers(0, 99))


@given(st.sampled_from(Kind), st.binary(min_size=16, max_size=16), st.integers(0, 9), st.binary())
def test_a_message_is_read_as_written(kind: Kind, session: bytes, index: int, body: bytes) -> None:
    message = messages.write(kind, session, index, body)
    assert messages.read(message, kind, session, index) == body


@given(Records)
def test_records_are_read_as_written(records: dict[int, bytes]) -> None:
    assert messages.unpack_records(messages.pack_records(records), 5, 100) == records


@given(Indices, Records)
def test_lists_before_records_are_read_as_written(
    first: set[int], records: dict[int, bytes]
) -> None:
    body = messages.pack_indices(first) + messages.pack_records(records)
    result, rest = messages.take_indices(body, 100)
    assert result == first
    assert messages.take_records(rest + b"more", 5, 100) == (records, b"more")


def test_an_advert_is_read_as_written() -> None:
    advert = Advert(b"s" * 32, b"m" * 32, b"c" * 32, b"x" * 64)
    assert Advert.from_bytes(advert.to_bytes()) == advert
    with pytest.raises(MalformedError, match="an advert has 160 bytes, got 159"):
        Advert.from_bytes(advert.to_bytes()[:-1])


MESSAGE = messages.write(Kind.MASKED, SESSION, 3, b"body")


@pytest.mark.parametrize(
    ("message", "error", "sentence"),
    [
        (b"", MalformedError, "at least 26 bytes, got 0"),
        (MESSAGE[:25], MalformedError, "at least 26 bytes, got 25"),
        (b"TACT" + MESSAGE[4:], MalformedError, "are not a message of a secure sum"),
        (b"TSUM\x02" + MESSAGE[5:], MalformedError, "version must be 3, got 2"),
        (b"TSUM\x03\x00" + MESSAGE[6:], MalformedError, "unknown kind of message 0"),
        (b"TSUM\x03\x0c" + MESSAGE[6:], MalformedError, "unknown kind of message 12"),
        (b"TSUM\x03\x02" + MESSAGE[6:], RoundError, "expected masked, got adverts"),
        (MESSAGE[:6] + bytes(16) + MESSAGE[22:], SessionError, "of session 0000"),
        (MESSAGE[:22] + b"\x04" + MESSAGE[23:], UnknownClientError, "index 4 instead of 3"),
    ],
)
def test_a_wrong_header_is_refused(message: bytes, error: type[SumError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        messages.read(message, Kind.MASKED, SESSION, 3)


@pytest.mark.parametrize(
    ("body", "error", "sentence"),
    [
        (b"\x01\x00\x00", MalformedError, "cut short"),
        (b"\x01\x00\x00\x00", MalformedError, "must take 9 bytes, got 4"),
        (b"\xff\xff\xff\xff", MalformedError, "must take 21474836479 bytes, got 4"),
        (b"\x00\x00\x00\x00!", MalformedError, "must take 4 bytes, got 5"),
        (b"\x01\x00\x00\x00\x09\x00\x00\x00!", UnknownClientError, "below 9, got 9"),
        (b"\x02\0\0\0\x01\0\0\0!\x01\0\0\0!", MalformedError, "must ascend"),
        (b"\x02\0\0\0\x01\0\0\0!\x00\0\0\0!", MalformedError, "must ascend"),
    ],
)
def test_wrong_records_are_refused(body: bytes, error: type[SumError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        messages.unpack_records(body, 1, 9)


@pytest.mark.parametrize(
    "body", [b"", b"\0\0\0", b"\xff\xff\xff\xff\0\0\0\0", b"\2\0\0\0" + bytes(8)]
)
def test_wrong_lists_are_refused(body: bytes) -> None:
    with pytest.raises(MalformedError, match=r"cut short|must take|must ascend"):
        messages.take_indices(body, 9)


# --- fuzzing -----------------------------------------------------------------------------------

CLIENTS, LENGTH = 3, 3
ZEROS = np.zeros((CLIENTS, LENGTH), dtype=np.int64)
Reader = Callable[[bytes], object]


def readers() -> dict[Kind, tuple[bytes, Reader]]:
    """For each kind a true message, and what reads it: a copy each time, in the state it was in."""
    result: dict[Kind, tuple[bytes, Reader]] = {}
    federation = Federation(CLIENTS)
    for number in range(ROUNDS):
        client, server = copy(federation.clients[0]), deepcopy(federation.server)
        given_last = federation.given[-1][0]
        if number:
            steps = (
                lambda m, c=client: copy(c).share(m),
                lambda m, c=client: copy(c).mask(m, ZEROS[0]),
                lambda m, c=client: copy(c).certify(m),
                lambda m, c=client: copy(c).reveal(m),
            )
            result[Kind(2 * number)] = (given_last, steps[number - 1])
        federation.round(ZEROS)
        sent = federation.sent[0][-1]
        result[Kind(2 * number + 1)] = (
            sent,
            lambda m, s=server: deepcopy(s).receive(0, m),  # type: ignore[misc]
        )
    return result | restart_readers()


def restart_readers() -> dict[Kind, tuple[bytes, Reader]]:
    """Of the messages between two attempts."""
    federation = Federation(CLIENTS)
    federation.carry(ZEROS, rounds=3)
    restart = SumRestart(federation.terms)
    ended = [client.give_up() for client in federation.clients]
    result: dict[Kind, tuple[bytes, Reader]] = {}
    result[Kind.ENDED] = (ended[0], lambda m: SumRestart(federation.terms).receive(0, m))
    for index, message in enumerate(ended):
        restart.receive(index, message)
    again = (federation.identities[0], restart.terms)
    result[Kind.RESTART] = (restart.message(), lambda m: SumClient(*again, m))
    return result


READERS = readers()
FREE = (Kind.SHARES, Kind.MASKED, Kind.LISTS, Kind.REVEALED)
"""Of the other kinds every byte is signed or encrypted: a changed one is always refused. Lists hold
a signature that their receiver made itself, and need not check."""


def refuses(read: Reader, message: bytes) -> bool:
    """Whether a reader refuses a message; anything but a SumError fails the test."""
    try:
        read(message)
    except SumError as error:
        assert str(error)
        return True
    return False


@pytest.mark.parametrize("kind", Kind)
def test_true_messages_are_taken(kind: Kind) -> None:
    message, read = READERS[kind]
    assert not refuses(read, message)


@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=CASES, deadline=None)
@given(junk=st.binary(max_size=300), kept=st.integers(0, HEADER + 8))
def test_junk_is_refused(kind: Kind, junk: bytes, kept: int) -> None:
    """Random bytes behind the first few of a true message: none, or up to a count of records."""
    message, read = READERS[kind]
    spoilt = message[:kept] + junk
    assert refuses(read, spoilt) or spoilt == message


@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_changed_bytes_are_refused_or_harmless(kind: Kind, data: st.DataObject) -> None:
    message, read = READERS[kind]
    spoilt = bytearray(message)
    indices = data.draw(st.lists(st.integers(0, len(message) - 1), min_size=1, max_size=4))
    for index in indices:
        spoilt[index] ^= data.draw(st.integers(1, 255))
    refused = refuses(read, bytes(spoilt))
    changed = [index for index in range(len(message)) if spoilt[index] != message[index]]
    if changed and (kind not in FREE or min(changed) < HEADER):
        assert refused


@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=CASES, deadline=None)
@given(data=st.data())
def test_other_lengths_are_refused(kind: Kind, data: st.DataObject) -> None:
    """Cut short, drawn out, or with a piece doubled or left out."""
    message, read = READERS[kind]
    start = data.draw(st.integers(0, len(message)))
    stop = data.draw(st.integers(0, len(message)).filter(lambda index: index != start))
    spoilt = message[:start] + data.draw(st.sampled_from([b"", b"\0"])) + message[stop:]
    if len(spoilt) != len(message):
        assert refuses(read, spoilt)
    else:
        refuses(read, spoilt)


def test_a_broadcast_is_for_everybody() -> None:
    message, _ = READERS[Kind.ADVERTS]
    assert int.from_bytes(message[22:26], "little") == EVERYBODY
