"""The sum is exact for whoever sent a masked vector, or there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.crypto.identities import (
    Identity,
    RefusedError,
    Roster,
    RoundError,
    SumError,
    TooFewError,
    UnknownClientError,
)
from tacit.crypto.secure_sum.client import SumClient
from tacit.crypto.secure_sum.graph import Neighbourhood, certificate_size
from tacit.crypto.secure_sum.masking import Packing, Run
from tacit.crypto.secure_sum.terms import SumTerms, new_session
from tests.crypto.secure_sum.transporting import ROUNDS, Federation

IDENTITIES = [Identity.generate() for _ in range(4)]


def vectors(clients: int, length: int, largest: int = 1000) -> NDArray[np.int64]:
    rng = np.random.default_rng(clients)
    drawn = rng.integers(-largest, largest, (clients, length), dtype=np.int64, endpoint=True)
    return np.asarray(drawn)


def every_pattern(clients: int) -> Iterable[tuple[int, ...]]:
    """How many rounds each client answers; of four clients each pattern in one order."""
    rounds = range(ROUNDS + 1)
    if clients < 4:
        return product(rounds, repeat=clients)
    return combinations_with_replacement(rounds, clients)


@pytest.mark.parametrize(
    ("clients", "colluders", "sums"), [(2, 0, 1), (3, 0, 1 + 3 * 5), (4, 1, 1 + 5)]
)
def test_every_pattern_of_dropouts(clients: int, colluders: int, sums: int) -> None:
    """Each client answers 0 to 5 rounds: where tau answer all, the sum is exact, else there is none
    and no share of it was revealed to fewer than tau."""
    sent = vectors(clients, 3)
    around = Neighbourhood.complete(clients, colluders)
    tau = certificate_size(clients, colluders)
    observed = 0
    for staying in every_pattern(clients):
        federation = Federation(clients, around=around, identities=IDENTITIES[:clients])
        stayed = [index for index in range(clients) if staying[index] >= 3]
        if sum(rounds == ROUNDS for rounds in staying) < tau:
            with pytest.raises(TooFewError, match=rf"{tau} clients .*, got "):
                federation.sum(sent, staying)
        else:
            result = federation.sum(sent, staying)
            assert result.clients == tuple(stayed)
            assert result.total.dtype == np.int64
            assert result.total.tolist() == sent[stayed].sum(axis=0).tolist()
            observed += 1
    assert observed == sums


def test_any_thirty_of_a_hundred_clients_may_leave_in_any_round() -> None:
    clients, rng = 100, np.random.default_rng(0)
    sent = vectors(clients, 256)
    staying = np.full(clients, ROUNDS)
    staying[rng.permutation(clients)[:30]] = rng.integers(0, ROUNDS, 30)
    federation = Federation(clients, 256, around=Neighbourhood.of(clients))
    result = federation.sum(sent, staying.tolist())
    assert np.array_equal(result.clients, np.flatnonzero(staying >= 3))
    assert np.array_equal(result.total, sent[staying >= 3].sum(axis=0))


def test_a_sparse_graph_bears_dropouts() -> None:
    clients, rng = 100, np.random.default_rng(2)
    around = Neighbourhood.of(clients, colluders=10, min_clients=90)
    assert around.degree < clients / 4
    sent = vectors(clients, 64)
    staying = np.full(clients, ROUNDS)
    staying[rng.permutation(clients)[:10]] = rng.integers(0, ROUNDS, 10)
    result = Federation(clients, 64, around=around).sum(sent, staying.tolist())
    assert np.array_equal(result.total, sent[staying >= 3].sum(axis=0))


def test_more_dropouts_than_a_sparse_graph_is_for_give_no_sum() -> None:
    clients = 66
    around = Neighbourhood.of(clients, colluders=4, min_clients=63)
    federation = Federation(clients, 1, around=around)
    federation.carry(vectors(clients, 1), rounds=2)
    with pytest.raises(TooFewError, match="masked of at least 63 clients must come, got 62"):
        federation.round(vectors(clients, 1), [2] * 4 + [ROUNDS] * 62)


@pytest.mark.parametrize("last", [0, 1, 2, 3, 4])
def test_exactly_the_threshold_is_enough_in_every_round_and_one_less_is_not(last: int) -> None:
    clients, threshold = 7, 5
    around = Neighbourhood.complete(clients, colluders=1)
    assert around.threshold == threshold
    sent = vectors(clients, 2)
    for remaining in (threshold, threshold - 1):
        staying = [ROUNDS] * remaining + [last] * (clients - remaining)
        federation = Federation(clients, 2, around=around)
        if remaining < threshold:
            with pytest.raises(TooFewError, match=r"5 clients .*, got 4"):
                federation.sum(sent, staying)
        else:
            summed = clients if last >= 3 else threshold
            total = federation.sum(sent, staying).total
            assert total.tolist() == sent[:summed].sum(axis=0).tolist()


def test_dropouts_that_cut_the_ring_give_no_sum() -> None:
    """Eight of 40 clients leave, enough stay: where the eight are two runs of four, a server that
    follows the protocol sees that clients would refuse, before any of them has revealed a share."""
    clients, around = 40, Neighbourhood(8, 5, 32, 0)
    for cuts in (True, False):
        federation, sent = Federation(clients, around=around), vectors(clients, 3)
        federation.carry(sent, rounds=2)
        ring = federation.server._arranged.tolist()
        gone = {*ring[:4], *ring[20:24]} if cuts else set(ring[::5])
        staying = [2 if index in gone else ROUNDS for index in range(clients)]
        if cuts:
            with pytest.raises(RefusedError, match="two windows of 4 neighbours must hold more"):
                federation.round(sent, staying)
        else:
            federation.carry(sent, staying, rounds=3)
            stayed = [index for index in range(clients) if index not in gone]
            assert federation.server.conclude().clients == tuple(stayed)


def test_too_few_holders_of_one_client_give_no_sum_before_anything_is_revealed() -> None:
    """Four of six neighbours of a client that left are lost in the round that certifies."""
    clients, around = 40, Neighbourhood(6, 4, 32, 0)
    federation, sent = Federation(clients, around=around), vectors(clients, 3)
    federation.carry(sent, rounds=3)
    ring = federation.server._arranged.tolist()
    staying = [3 if index in ring[:4] else ROUNDS for index in range(clients)]
    with pytest.raises(TooFewError, match=r"4 clients that hold shares of client .* got [123]"):
        federation.round(sent, staying)
    assert not federation.server.is_revealing


@pytest.mark.parametrize(
    ("largest", "bits"),
    [(2, 4), ((2**31 - 1) // 3, 32), ((2**31 - 1) // 3 + 1, 33), (2**63 // 3, 64)],
)
def test_the_outermost_sums_do_not_wrap_around(largest: int, bits: int) -> None:
    federation = Federation(3, 2, largest)
    assert federation.terms.packing == Packing((Run(2, bits),))
    total = federation.sum(np.full((3, 2), [largest, -largest])).total
    assert total.tolist() == [3 * largest, -3 * largest]
    header, count, signature = 26, 2, 64
    assert len(federation.sent[0][2]) == header + -(-count * bits // 8) + signature


def test_vectors_are_left_as_they_were() -> None:
    sent = vectors(3, 3)
    before = sent.copy()
    Federation(3).sum(sent)
    assert np.array_equal(sent, before)


@pytest.mark.parametrize(
    ("vector", "error", "sentence"),
    [
        (np.array([1, 2, 1001]), ValueError, "beyond the agreed largest, 1000$"),
        (np.array([1, 2, -(2**63)]), ValueError, "beyond the agreed largest, 1000$"),
        (np.array([1, 2]), ValueError, r"shape \(3,\), got \(2,\)"),
        (np.array([[1, 2, 3]]), ValueError, r"shape \(3,\), got \(1, 3\)"),
        (np.array([1.0, 2.0, 3.0]), TypeError, "64-bit integers, got float64"),
    ],
)
def test_a_vector_that_was_not_agreed_is_refused_and_may_be_mended(
    vector: NDArray[np.int64], error: type[Exception], sentence: str
) -> None:
    federation, sent = Federation(3), vectors(3, 3)
    federation.carry(sent, rounds=2)
    with pytest.raises(error, match=sentence):
        federation.clients[0].mask(federation.given[-1][0], vector)
    federation.carry(sent, rounds=3)
    assert federation.server.conclude().total.tolist() == sent.sum(axis=0).tolist()


def test_steps_are_taken_in_order_and_once() -> None:
    federation, sent = Federation(2), vectors(2, 3)
    client = federation.clients[0]
    steps: dict[str, Callable[[], object]] = {
        "advertise": client.advertise,
        "share": lambda: client.share(federation.given[1][0]),
        "mask": lambda: client.mask(federation.given[2][0], sent[0]),
        "certify": lambda: client.certify(federation.given[3][0]),
        "reveal": lambda: client.reveal(federation.given[4][0]),
    }
    for number in range(ROUNDS + 1):
        federation.given += [{0: b""}] * (ROUNDS - len(federation.given))
        due = [*steps, None][number]
        for name in steps.keys() - {due}:
            with pytest.raises(RoundError, match=f"cannot {name} now: {due or 'it is done'}"):
                steps[name]()
        federation.given = federation.given[: number + 1]
        if number < ROUNDS:
            federation.round(sent)


def test_a_server_is_done_once() -> None:
    federation, sent = Federation(2), vectors(2, 3)
    with pytest.raises(RoundError, match="the sum waits for advert"):
        federation.server.conclude()
    federation.carry(sent)
    with pytest.raises(RoundError, match="ended by conclude"):
        federation.server.close_round()
    federation.server.conclude()
    for again in (federation.server.conclude, federation.server.close_round):
        with pytest.raises(RoundError, match="this sum is concluded"):
            again()
    with pytest.raises(RoundError, match="this sum is concluded"):
        federation.server.receive(0, federation.sent[0][4])


ROSTER = Roster(tuple(identity.public for identity in IDENTITIES))
AROUND = Neighbourhood.complete(4)


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"session": b"short"}, "16 bytes, got 5"),
        ({"length": 0}, "length must be from 1 to 67108864, got 0"),
        ({"largest": 2**61}, "must stay below"),
        ({"largest": 0}, "largest must be at least 1, got 0"),
        ({"neighbourhood": Neighbourhood.complete(5)}, "is for more than 4 clients"),
        ({"neighbourhood": Neighbourhood(2, 2, 5, 0)}, "is for more than 4 clients"),
        (
            {"neighbourhood": Neighbourhood(2, 2, 2, 1)},
            "min_clients must be at least 3 of 4 clients of which 1 may collude, got 2",
        ),
        (
            {"neighbourhood": Neighbourhood(3, 3, 4, 2)},
            "threshold must be 4 where 4 clients all share with each other and 2 may collude, got",
        ),
        ({"attempt": 2**16}, "attempt must be from 0 to 65535, got 65536"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused(terms: dict[str, Any], sentence: str) -> None:
    usual: dict[str, Any] = {
        "session": new_session(),
        "roster": ROSTER,
        "length": 1,
        "largest": 1,
        "neighbourhood": AROUND,
    }
    with pytest.raises(ValueError, match=sentence):
        SumTerms(**usual | terms)


def test_every_term_is_in_the_digest() -> None:
    session = new_session()
    variants = [
        SumTerms(session, ROSTER, 1, 1, AROUND),
        SumTerms(new_session(), ROSTER, 1, 1, AROUND),
        SumTerms(session, Roster(ROSTER.keys[::-1]), 1, 1, AROUND),
        SumTerms(session, ROSTER, 2, 1, AROUND),
        SumTerms(session, ROSTER, 1, 2, AROUND),
        SumTerms(session, ROSTER, 1, 1, Neighbourhood(3, 3, 4, 1)),
        SumTerms(session, ROSTER, 1, 1, Neighbourhood(3, 3, 4, 0)),
        SumTerms(session, ROSTER, 1, 1, Neighbourhood(3, 4, 4, 2)),
        SumTerms(session, ROSTER, 1, 1, Neighbourhood(2, 3, 4, 1)),
    ]
    assert len({terms.digest for terms in variants}) == len(variants)


def test_an_attempt_is_in_all_that_is_signed_but_not_in_the_digest() -> None:
    first = SumTerms(new_session(), ROSTER, 1, 1, AROUND)
    second = replace(first, attempt=1)
    assert first.digest == second.digest
    assert first.signed_part(0, b"") != second.signed_part(0, b"")
    assert first.transcript(b"") != second.transcript(b"")
    assert first.commitment(0, b"") != second.commitment(0, b"")


def test_a_stranger_cannot_take_part() -> None:
    with pytest.raises(UnknownClientError, match="not in the roster"):
        SumClient(Identity.generate(), SumTerms(new_session(), ROSTER, 1, 1, AROUND))
    assert issubclass(UnknownClientError, SumError)
