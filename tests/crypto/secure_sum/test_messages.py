"""Messages as bytes: what was written is read, and nothing else gets past the readers.

The fuzzed readers are those of client and server: 11 kinds of message, 100 changes each. Headers
and records that must fail are in ``tests/vectors``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.crypto.identities import SumError
from tacit.crypto.secure_sum import messages, terms
from tacit.crypto.secure_sum.client import STEPS, SumClient
from tacit.crypto.secure_sum.messages import Kind
from tacit.crypto.secure_sum.server import SumServer
from tests.crypto.changing import Change, changed, changes
from tests.crypto.secure_sum.transporting import Federation

HEADER = messages.HEADER.size

Records = st.dictionaries(st.integers(0, 99), st.binary(min_size=5, max_size=5))


@given(st.sets(st.integers(0, 99)), Records, changes())
def test_lists_and_records_are_read_as_written_and_in_no_other_way(
    indices: set[int], records: dict[int, bytes], how: list[Change]
) -> None:
    body = messages.pack_indices(indices) + messages.pack_records(records)
    for read in (body, changed(body, how)):
        try:
            first, rest = messages.take_indices(read, 100)
            second, end = messages.take_records(rest, 5, 100)
        except SumError:
            assert read != body
            continue
        assert messages.pack_indices(first) + messages.pack_records(second) + end == read
        assert read != body or (set(first), second, end) == (indices, records, b"")


# --- fuzzing -----------------------------------------------------------------------------------

Reader = Callable[[bytes], object]


def asked(client: SumClient, step: str, message: bytes) -> object:
    """A copy of a client, so that each message finds it in the state it was in."""
    more = (np.zeros(3, dtype=np.int64),) if step == "mask" else ()
    return getattr(copy(client), step)(message, *more)


def received(server: SumServer | terms.SumRestart, message: bytes) -> object:
    return deepcopy(server).receive(0, message)


def readers() -> dict[Kind, tuple[bytes, Reader]]:
    """For each kind a true message, and what reads it."""
    result: dict[Kind, tuple[bytes, Reader]] = {}
    federation = Federation(3)
    for number, step in enumerate(STEPS):
        client, server = copy(federation.clients[0]), deepcopy(federation.server)
        if number:
            result[Kind(2 * number)] = (federation.given[-1][0], partial(asked, client, step))
        federation.carry(rounds=1)
        result[Kind(2 * number + 1)] = (federation.sent[0][-1], partial(received, server))
    federation = Federation(3).carry(rounds=3)
    restart = terms.SumRestart(federation.terms)
    ended = [client.give_up() for client in federation.clients]
    result[Kind.ENDED] = (ended[0], partial(received, deepcopy(restart)))
    for index, message in enumerate(ended):
        restart.receive(index, message)
    again = partial(SumClient, federation.identities[0], restart.terms)
    return result | {Kind.RESTART: (restart.message(), again)}


READERS = readers()
FREE = (Kind.SHARES, Kind.MASKED, Kind.LISTS, Kind.REVEALED)
"""Of the other kinds every byte is signed or encrypted: a changed one is always refused. Lists hold
a signature that their receiver made itself, and need not check."""


@pytest.mark.parametrize("kind", Kind)
@settings(max_examples=100, deadline=None)
@given(how=changes(), kept=st.integers(0, HEADER + 8), junk=st.none() | st.binary(max_size=300))
@example(how=[], kept=0, junk=None)
def test_changed_messages_are_refused_or_harmless(
    kind: Kind, how: list[Change], kept: int, junk: bytes | None
) -> None:
    """Changed, or random bytes behind the first few of a true message; all other errors than a
    SumError fail, and so does one about the true message."""
    message, read = READERS[kind]
    spoilt = changed(message, how) if junk is None else message[:kept] + junk
    try:
        read(spoilt)
    except SumError as error:
        assert str(error)
        assert spoilt != message
        return
    same_head = len(spoilt) == len(message) and spoilt[:HEADER] == message[:HEADER]
    assert spoilt == message or (kind in FREE and same_head)
