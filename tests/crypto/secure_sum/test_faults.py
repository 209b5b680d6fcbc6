"""Replayed messages, and clients that do not follow the protocol."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.crypto.identities import (
    ForgedError,
    MalformedError,
    ReplayError,
    RoundError,
    SessionError,
    UnknownClientError,
)
from tacit.crypto.secure_sum import messages
from tacit.crypto.secure_sum.messages import Kind
from tests.crypto.secure_sum.transporting import (
    HEADER,
    Federation,
    answered,
    before_lists,
    revealed,
    started,
)


def test_messages_of_another_session_are_refused() -> None:
    old = Federation(3)
    new = Federation(3, identities=old.identities)
    zeros = np.zeros((3, 3), dtype=np.int64)
    old.carry(zeros)
    for number in range(5):
        with pytest.raises(SessionError, match=f"of session {old.terms.session.hex()}, not of"):
            new.server.receive(0, old.sent[0][number])
        if number:
            with pytest.raises(SessionError, match="message is of session"):
                answered(new, 0, zeros[0], old.given[number][0])
        new.round(zeros)


def test_an_old_client_cannot_be_replayed_in_a_session_of_the_same_name() -> None:
    """Its old keys are truly signed; that it cannot encrypt shares for new keys betrays them."""
    old = Federation(3)
    zeros = np.zeros((3, 3), dtype=np.int64)
    old.carry(zeros)
    new = old.again()
    new.sent[2] = []
    for index in (0, 1):
        new.server.receive(index, new.clients[index].advertise())
    new.server.receive(2, old.sent[2][0])
    new.given.append(new.server.close_round())
    for index in (0, 1):
        new.server.receive(index, new.clients[index].share(new.given[1][index]))
    new.server.receive(2, old.sent[2][1])
    deliveries = new.server.close_round()
    for index in (0, 1):
        with pytest.raises(ForgedError, match="client 2 were not encrypted by it in this session"):
            new.clients[index].mask(deliveries[index], zeros[0])


def test_a_message_is_taken_once_and_in_its_round() -> None:
    federation, zeros = Federation(3), np.zeros((3, 3), dtype=np.int64)
    names = ("advert", "shares", "masked", "signed", "revealed")
    for number, name in enumerate(names):
        for earlier in range(number):
            with pytest.raises(RoundError, match=f"expected {name}, got {names[earlier]}"):
                federation.server.receive(0, federation.sent[0][earlier])
        for index in range(2):
            federation.sent[index].append(answered(federation, index, zeros[0]))
            federation.server.receive(index, federation.sent[index][-1])
        with pytest.raises(ReplayError, match=f"client 1 sends {name} a second time"):
            federation.server.receive(1, federation.sent[1][-1])
        with pytest.raises(UnknownClientError, match="has the index 0 instead of 2"):
            federation.server.receive(2, federation.sent[0][-1])
        federation.server.receive(2, answered(federation, 2, zeros[0]))
        if number < 4:
            federation.given.append(federation.server.close_round())
    assert federation.server.conclude().clients == (0, 1, 2)


def test_who_left_cannot_come_back_and_strangers_are_unknown() -> None:
    federation, zeros = Federation(4), np.zeros((4, 3), dtype=np.int64)
    federation.carry(zeros, [5, 5, 1, 5], rounds=2)
    late = federation.clients[2].share(federation.given[1][2])
    with pytest.raises(UnknownClientError, match="client 2 has left this sum"):
        federation.server.receive(2, late)
    for stranger in (-1, 4, 2**40):
        with pytest.raises(UnknownClientError, match=f"must be below 4, got {stranger}"):
            federation.server.receive(stranger, late)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_wrong_share_is_noticed(leaves: bool) -> None:
    """Client 0 reveals wrong bytes of what it holds of client 2."""
    federation = Federation(4)
    federation.carry(np.ones((4, 3), dtype=np.int64), [5, 5, 2 if leaves else 5, 5], rounds=4)
    for index in (0, 1, 3) if leaves else (0, 1, 2, 3):
        answer = federation.clients[index].reveal(federation.given[4][index])
        if index == 0:
            position = HEADER + 4 + 2 * (4 + messages.SHARE_BYTES) + 4 + 1
            answer = answer[:position] + bytes([answer[position] ^ 1]) + answer[position + 1 :]
        federation.server.receive(index, answer)
    secret = "key" if leaves else "seed"
    with pytest.raises(ForgedError, match=f"client 2 do not give the {secret} it advertised"):
        federation.server.conclude()


def test_shares_for_others_than_the_neighbours_are_refused() -> None:
    federation, zeros = started(4), np.zeros(3, dtype=np.int64)
    answer = answered(federation, 0, zeros)
    boxes = messages.unpack_records(answer[HEADER:], messages.BOX_BYTES, 4)
    for wrong in ({1: boxes[1], 2: boxes[2]}, boxes | {0: boxes[1]}, {}):
        message = messages.write(
            Kind.SHARES, federation.terms.session, 0, messages.pack_records(wrong)
        )
        with pytest.raises(MalformedError, match="must send shares for exactly its neighbours"):
            federation.server.receive(0, message)
    federation.server.receive(0, answer)


def test_other_reveals_than_asked_for_are_refused() -> None:
    federation = before_lists(4)
    federation.round(np.zeros((4, 3), dtype=np.int64))
    answer = answered(federation, 0, np.zeros(3, dtype=np.int64))
    shares = revealed(answer, 4)
    key_instead = shares | {3: b"\x01" + shares[3][1:]}
    for wrong in ({k: shares[k] for k in (0, 1, 2)}, key_instead, {}):
        message = messages.write(
            Kind.REVEALED, federation.terms.session, 0, messages.pack_records(wrong)
        )
        with pytest.raises(MalformedError, match="exactly the shares it was asked for"):
            federation.server.receive(0, message)
    federation.server.receive(0, answer)


def test_a_vector_of_another_length_is_refused() -> None:
    federation = Federation(3)
    federation.carry(np.zeros((3, 3), dtype=np.int64), rounds=2)
    answer = answered(federation, 0, np.zeros(3, dtype=np.int64))
    for wrong in (answer[:-1], answer + b"\x00"):
        with pytest.raises(MalformedError, match="vector must have 69 bytes, got "):
            federation.server.receive(0, wrong)
    federation.server.receive(0, answer)
