"""Servers that lie, replayed messages, and clients that do not follow the protocol."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tacit.crypto.identities import (
    ForgedError,
    MalformedError,
    RefusedError,
    ReplayError,
    RoundError,
    SessionError,
    TooFewError,
    UnknownClientError,
)
from tacit.crypto.secure_sum import client as secure_sum_client
from tacit.crypto.secure_sum import consistency, messages
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.messages import Kind
from tests.crypto.secure_sum.lying import LENGTH, LyingServer, balanced_lies, vectors_of
from tests.crypto.secure_sum.transporting import (
    HEADER,
    Federation,
    answered,
    before_lists,
    boxes_of,
    revealed,
    started,
)

LeftOut = Callable[[str], None]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> LeftOut:
    """Clients that skip one check."""

    def left_out(check: str) -> None:
        for module in (secure_sum_client, consistency):
            monkeypatch.setattr(module, check, lambda *_: None, raising=False)

    return left_out


@pytest.mark.parametrize("clients", [66, pytest.param(200, marks=pytest.mark.thorough)])
def test_no_story_about_who_left_opens_one_vector(clients: int, without: LeftOut) -> None:
    """No accomplice. Receivers of the victim's shares hear that it stayed; receivers of its
    neighbours' hear that these left. Nobody reveals both kinds of share of anybody."""
    around = Neighbourhood.of(clients)
    around = Neighbourhood(around.degree, around.threshold, around.min_clients, colluders=0)
    server = LyingServer.started(clients, around)
    victim = server.ring[0]
    partners = server.around(victim)
    stories = balanced_lies(server, partners, clients - around.min_clients, around.threshold)
    server.tell(stories)
    assert not server.shares
    assert {type(error) for error in server.refusals.values()} == {TooFewError}
    assert len(server.refusals) == clients
    server.refusals.clear()
    without("check_certificate")
    server.tell(stories)
    assert np.array_equal(
        server.unmasked([victim], {victim: partners}), vectors_of(clients)[victim]
    )


@pytest.mark.parametrize(
    ("clients", "min_clients", "part"),
    [(10, 6, 4), pytest.param(64, 45, 28, marks=pytest.mark.thorough)],
)
def test_no_story_about_who_left_opens_a_sum_over_fewer_than_agreed(
    clients: int, min_clients: int, part: int, without: LeftOut
) -> None:
    """No accomplice: everybody is told that others of the second part have left."""
    around = Neighbourhood.complete(clients, colluders=0, min_clients=min_clients)
    server = LyingServer.started(clients, around)
    group, rest = range(part), range(part, clients)
    stories = balanced_lies(server, rest, clients - min_clients, around.threshold)
    server.tell(stories)
    assert not server.shares
    assert len(server.refusals) == clients
    server.refusals.clear()
    without("check_certificate")
    server.tell(stories)
    vectors = server.unmasked(group, {member: range(clients) for member in group})
    assert np.array_equal(vectors, vectors_of(clients)[:part].sum(axis=0))


def test_no_shortened_delivery_opens_one_vector(without: LeftOut) -> None:
    """One accomplice. A neighbour of it is told that only four of eight neighbours shared: the
    accomplice, and three that leave. Everybody else sees one list, by which that client stayed; it
    is not asked again."""
    clients, accomplice = 40, 0
    around = Neighbourhood(degree=8, threshold=5, min_clients=32, colluders=1)

    def near(federation: Federation) -> list[int]:
        ring = federation.server._arranged.tolist()
        position = ring.index(accomplice)
        return [ring[(position + step) % clients] for step in (1, -2, 2, 4)]

    def announced(federation: Federation) -> dict[int, list[int]]:
        victim, *others = near(federation)
        return {victim: [accomplice, *others]}

    server = LyingServer.started(clients, around, announced, [accomplice])
    victim, *others = near(server.federation)
    left = frozenset(others)
    stayed = frozenset(range(clients)) - left
    stories = dict.fromkeys(stayed - {victim}, (stayed, left))
    server.tell(stories)
    assert not server.shares
    for index in stories:
        assert isinstance(server.refusals[index], RefusedError)
        assert f"client {victim} did not sign the keys and cl" in str(server.refusals[index])
    server.refusals.clear()
    without("_check_signers")
    server.tell(stories)
    vectors = server.unmasked([victim], {victim: [accomplice, *left]})
    assert np.array_equal(vectors, vectors_of(clients)[victim])


def test_accomplices_who_sign_a_shortened_delivery_are_no_help() -> None:
    """Five of twenty collude, thirteen suffice. One client is told that only twelve others shared:
    the five, and seven that leave."""
    clients, victim, colluders = 20, 0, [1, 2, 3, 4, 5]
    left = frozenset(range(6, 13))
    around = Neighbourhood.complete(clients, colluders=5)
    assert around.min_clients == 13
    reported = {victim: {*colluders, *left}}
    server = LyingServer.started(clients, around, lambda _: reported, colluders)
    stayed = frozenset(range(clients)) - left
    server.tell(dict.fromkeys(stayed - {victim, *colluders}, (stayed, left)))
    assert not server.shares
    assert {type(error) for error in server.refusals.values()} == {RefusedError}


def test_a_delivery_without_the_shares_of_an_announced_neighbour_is_refused() -> None:
    """All are announced, as to everybody else; the digest would be theirs."""
    federation = Federation(10, LENGTH)
    federation.carry(vectors_of(10), rounds=2)
    delivery = federation.given[-1][0]
    body = messages.pack_indices(range(10)) + messages.pack_records(
        {owner: box for owner, box in boxes_of(federation, 0).items() if owner != 3}
    )
    short = messages.write(Kind.DELIVERY, federation.terms.session, 0, body)
    with pytest.raises(RefusedError, match="client 3 is announced, but its shares never came"):
        federation.clients[0].mask(short, vectors_of(10)[0])
    federation.clients[0].mask(delivery, vectors_of(10)[0])


def test_the_terms_under_which_a_delivery_was_shortened_are_refused() -> None:
    """Twenty clients, four that collude, threshold 11."""
    with pytest.raises(ValueError, match="threshold must be 13 where 20 clients all share with ea"):
        LyingServer.started(20, Neighbourhood(19, 11, 14, colluders=4))


def test_no_two_gaps_in_the_ring_open_a_sum_over_the_arc_between(without: LeftOut) -> None:
    """No accomplice, one list for all: ten neighbours left on either side of eleven clients."""
    clients, degree = 80, 20
    server = LyingServer.started(clients, Neighbourhood(degree, 11, 56, colluders=0))
    ring = server.ring
    left, part = frozenset(ring[:10] + ring[21:31]), ring[10:21]
    stayed = frozenset(ring) - left
    stories = dict.fromkeys(stayed, (stayed, left))
    server.tell(stories)
    assert not server.shares
    assert {str(error) for error in server.refusals.values()} == {
        "two windows of 10 neighbours must hold more than 0 clients of the sum, got 0: "
        "a part of it could be unmasked"
    }
    server.refusals.clear()
    without("check_windows")
    server.tell(stories)
    vectors = server.unmasked(part, {member: server.around(member) for member in part})
    assert np.array_equal(vectors, vectors_of(clients)[part].sum(axis=0))


def test_one_list_for_all_is_signed_and_opens_the_sum_of_all_who_stayed() -> None:
    """The server that lies can do what an honest one does, and gets what it gets."""
    clients = 10
    server = LyingServer.started(clients, Neighbourhood.complete(clients))
    left = frozenset({8, 9})
    stayed = frozenset(range(8))
    server.tell(dict.fromkeys(stayed, (stayed, left)))
    assert not server.refusals
    vectors = server.unmasked(stayed, {member: range(clients) for member in stayed})
    assert np.array_equal(vectors, vectors_of(clients)[:8].sum(axis=0))
    assert server.unmasked([0], {0: range(clients)}) is None


@pytest.mark.parametrize("certified", [6, 7])
def test_colluders_that_sign_two_lists_certify_one_at_most(certified: int) -> None:
    """Two of ten sign both; of the eight others, ``certified - 2`` see the first list."""
    clients, colluders = 10, [0, 1]
    server = LyingServer.started(clients, Neighbourhood.complete(clients, 2), colluders=colluders)
    everybody = frozenset(range(clients))
    stories = {
        client: (everybody, frozenset())
        if client < certified
        else (everybody - {2}, frozenset({2}))
        for client in range(clients)
    }
    server.tell(stories)
    revealing = set(range(clients)) - server.refusals.keys()
    assert revealing == (set(range(7)) if certified == 7 else set())


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
