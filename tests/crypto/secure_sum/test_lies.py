"""Servers that lie, replayed messages, and clients that do not follow the protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np
import pytest

from tacit.crypto import identities as ids
from tacit.crypto.secure_sum import client as secure_sum_client
from tacit.crypto.secure_sum import consistency, messages
from tacit.crypto.secure_sum.graph import Neighbourhood
from tacit.crypto.secure_sum.messages import Kind
from tests.crypto.secure_sum.lying import LyingServer, Story, balanced_lies, vectors_of
from tests.crypto.secure_sum.transporting import HEADER, Federation, flipped

CheckNeeded = Callable[..., None]


@pytest.fixture
def check_needed(monkeypatch: pytest.MonkeyPatch) -> CheckNeeded:
    """Clients refuse stories, and without one check these open the sum of a group."""

    def tried(
        server: LyingServer,
        stories: Mapping[int, Story],
        check: str,
        says: str,
        group: Collection[int],
        masked_with: Mapping[int, Collection[int]] | None = None,
    ) -> None:
        server.tell(stories)
        assert not server.shares
        assert server.refusals.keys() == stories.keys()
        assert all(says in str(error) for error in server.refusals.values())
        for module in (secure_sum_client, consistency):
            monkeypatch.setattr(module, check, lambda *_: None, raising=False)
        server.tell(stories)
        summed = vectors_of(server.federation.terms.clients)[list(group)].sum(axis=0)
        assert np.array_equal(server.unmasked(group, masked_with), summed)

    return tried


@pytest.mark.parametrize(
    ("clients", "part", "around"),
    [
        (66, 1, replace(Neighbourhood.of(66), colluders=0)),
        pytest.param(
            200, 1, replace(Neighbourhood.of(200), colluders=0), marks=pytest.mark.thorough
        ),
        (10, 4, Neighbourhood.complete(10, 0, 6)),
        pytest.param(64, 28, Neighbourhood.complete(64, 0, 45), marks=pytest.mark.thorough),
    ],
)
def test_no_story_about_who_left_opens_a_part_of_the_sum(
    clients: int, part: int, around: Neighbourhood, check_needed: CheckNeeded
) -> None:
    """No accomplice. Receivers of a victim's shares hear that it stayed; receivers of the shares of
    its neighbours hear that these left. Nobody reveals both kinds of share of anybody."""
    server = LyingServer.started(clients, around)
    group = server.federation.ring[:part]
    partners = set().union(*map(server.around, group)) - set(group)
    stories = balanced_lies(server, partners)
    check_needed(server, stories, "check_certificate", "must have signed the same lists", group)


def test_no_shortened_delivery_opens_one_vector(check_needed: CheckNeeded) -> None:
    """One accomplice. A neighbour of it is told that only four of eight neighbours shared: the
    accomplice, and three that leave. Everybody else sees one list, by which that client stayed; it
    is not asked again."""
    clients, accomplice = 40, 0
    around = Neighbourhood(degree=8, threshold=5, min_clients=32, colluders=1)

    def near(federation: Federation) -> list[int]:
        ring = federation.ring
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
    says, partners = f"client {victim} did not sign the keys and cl", [accomplice, *left]
    check_needed(server, stories, "_check_signers", says, [victim], {victim: partners})


def test_accomplices_who_sign_a_shortened_delivery_are_no_help() -> None:
    """Five of twenty collude, thirteen suffice. One client is told that only twelve others shared:
    the five, and seven that leave."""
    clients, victim, colluders = 20, 0, [1, 2, 3, 4, 5]
    left = frozenset(range(6, 13))
    around = Neighbourhood.complete(clients, colluders=5)
    assert around.min_clients == 13
    server = LyingServer.started(
        clients, around, lambda _: {victim: {*colluders, *left}}, colluders
    )
    stayed = frozenset(range(clients)) - left
    server.tell(dict.fromkeys(stayed - {victim, *colluders}, (stayed, left)))
    assert not server.shares
    assert {type(error) for error in server.refusals.values()} == {ids.RefusedError}


def test_no_two_gaps_in_the_ring_open_a_sum_over_the_arc_between(check_needed: CheckNeeded) -> None:
    """No accomplice, one list for all: ten neighbours left on either side of eleven clients."""
    server = LyingServer.started(80, Neighbourhood(20, 11, 56, colluders=0))
    ring = server.federation.ring
    left = frozenset(ring[:10] + ring[21:31])
    stayed = frozenset(ring) - left
    says = (
        "two windows of 10 neighbours must hold more than 0 clients of the sum, got 0: "
        "a part of it could be unmasked"
    )
    stories = dict.fromkeys(stayed, (stayed, left))
    check_needed(server, stories, "check_windows", says, ring[10:21])


def test_one_list_for_all_is_signed_and_opens_the_sum_of_all_who_stayed() -> None:
    """The server that lies can do what an honest one does, and gets what it gets."""
    clients = 10
    server = LyingServer.started(clients, Neighbourhood.complete(clients))
    left = frozenset({8, 9})
    stayed = frozenset(range(8))
    server.tell(dict.fromkeys(stayed, (stayed, left)))
    assert not server.refusals
    assert np.array_equal(server.unmasked(stayed), vectors_of(clients)[:8].sum(axis=0))
    assert server.unmasked([0]) is None


def test_an_old_client_cannot_be_replayed_in_a_session_of_the_same_name() -> None:
    """Its old keys are truly signed; that it cannot encrypt shares for new keys betrays them."""
    federation = Federation(3).carry()
    old = federation.sent[2]
    federation.begin(federation.terms)
    for number in range(2):
        for index in (0, 1):
            federation.server.receive(index, federation.answer(index))
        federation.server.receive(2, old[number])
        federation.given.append(federation.server.close_round())
    for index in (0, 1):
        with pytest.raises(ids.ForgedError, match="client 2 were not encrypted by it in this sess"):
            federation.answer(index)


def test_a_message_is_taken_once_and_in_its_round() -> None:
    federation = Federation(3)
    names = ("advert", "shares", "masked", "signed", "revealed")
    for number, name in enumerate(names):
        for earlier in range(number):
            with pytest.raises(ids.RoundError, match=f"expected {name}, got {names[earlier]}"):
                federation.server.receive(0, federation.sent[0][earlier])
        for index in range(2):
            federation.sent[index].append(federation.answer(index))
            federation.server.receive(index, federation.sent[index][-1])
        with pytest.raises(ids.ReplayError, match=f"client 1 sends {name} a second time"):
            federation.server.receive(1, federation.sent[1][-1])
        with pytest.raises(ids.UnknownClientError, match="has the index 0 instead of 2"):
            federation.server.receive(2, federation.sent[0][-1])
        federation.server.receive(2, federation.answer(2))
        if number < 4:
            federation.given.append(federation.server.close_round())
    assert federation.server.conclude().clients == (0, 1, 2)


def test_who_left_cannot_come_back_and_strangers_are_unknown() -> None:
    federation = Federation(4).carry(staying=[5, 5, 1, 5], rounds=2)
    late = federation.clients[2].share(federation.given[1][2])
    with pytest.raises(ids.UnknownClientError, match="client 2 has left this sum"):
        federation.server.receive(2, late)
    for stranger in (-1, 4, 2**40):
        with pytest.raises(ids.UnknownClientError, match=f"must be below 4, got {stranger}"):
            federation.server.receive(stranger, late)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_wrong_share_is_noticed(leaves: bool) -> None:
    """Client 0 reveals wrong bytes of what it holds of client 2."""
    federation = Federation(4).carry(staying=[5, 5, 2 if leaves else 5, 5], rounds=4)
    for index in (0, 1, 3) if leaves else (0, 1, 2, 3):
        answer = federation.answer(index)
        if index == 0:
            answer = flipped(answer, HEADER + 4 + 2 * (4 + messages.SHARE_BYTES) + 4 + 1)
        federation.server.receive(index, answer)
    secret = "key" if leaves else "seed"
    with pytest.raises(ids.ForgedError, match=f"client 2 do not give the {secret} it advertised"):
        federation.server.conclude()


def other_shares(federation: Federation, answer: bytes, kind: Kind) -> list[bytes]:
    """Too few, none, of itself, or the key's instead of the seed's."""
    size = messages.BOX_BYTES if kind is Kind.SHARES else messages.SHARE_BYTES
    shares = messages.unpack_records(answer[HEADER:], size, 4)
    extra = {0: shares[1]} if kind is Kind.SHARES else {3: flipped(shares[3], 0)}
    fewer = [{k: shares[k] for k in some} for some in ((1, 2), ())]
    return [federation.written(kind, each, index=0) for each in (*fewer, shares | extra)]


@pytest.mark.parametrize(
    ("rounds", "kind", "says"),
    [
        (1, Kind.SHARES, "must send shares for exactly its neighbours"),
        (2, Kind.MASKED, "vector must have 69 bytes, got "),
        (4, Kind.REVEALED, "exactly the shares it was asked for"),
    ],
)
def test_other_answers_than_asked_for_are_refused(rounds: int, kind: Kind, says: str) -> None:
    federation = Federation(4).carry(rounds=rounds)
    answer = federation.answer(0)
    changed = [answer[:-1], answer + b"\0"]
    for wrong in changed if kind is Kind.MASKED else other_shares(federation, answer, kind):
        with pytest.raises(ids.MalformedError, match=says):
            federation.server.receive(0, wrong)
    federation.server.receive(0, answer)


def test_a_delivery_without_the_shares_of_an_announced_neighbour_is_refused() -> None:
    """All are announced, as to everybody else; the digest would be theirs."""
    federation = Federation(10).carry(rounds=2)
    boxes = {owner: box for owner, box in federation.boxes(0).items() if owner != 3}
    short = federation.written(Kind.DELIVERY, range(10), boxes, index=0)
    with pytest.raises(ids.RefusedError, match="client 3 is announced, but its shares never came"):
        federation.answer(0, message=short)
