"""The sum is exact for whoever sent a masked vector, or there is none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.crypto import identities as ids
from tacit.crypto.identities import Identity, Roster
from tacit.crypto.secure_sum.client import STEPS
from tacit.crypto.secure_sum.graph import Neighbourhood, certificate_size
from tacit.crypto.secure_sum.masking import Packing, Run
from tacit.crypto.secure_sum.terms import SumTerms, new_session
from tests.crypto.secure_sum.transporting import ROUNDS, Federation

IDENTITIES = [Identity.generate() for _ in range(4)]
ROSTER = Roster(tuple(identity.public for identity in IDENTITIES))
TERMS = SumTerms(new_session(), ROSTER, 1, 1, Neighbourhood.complete(4))


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
            with pytest.raises(ids.TooFewError, match=rf"{tau} clients .*, got "):
                federation.sum(sent, staying)
        else:
            result = federation.sum(sent, staying)
            assert result.clients == tuple(stayed)
            assert result.total.dtype == np.int64
            assert result.total.tolist() == sent[stayed].sum(axis=0).tolist()
            observed += 1
    assert observed == sums
    assert np.array_equal(sent, vectors(clients, 3))


@pytest.mark.parametrize(
    ("around", "leaving"),
    [(Neighbourhood.of(100), 30), (Neighbourhood.of(100, colluders=10, min_clients=90), 10)],
)
def test_as_many_clients_as_agreed_may_leave_in_any_round(
    around: Neighbourhood, leaving: int
) -> None:
    """On a graph with nearly all pairs, and on one with few."""
    clients, rng = 100, np.random.default_rng(leaving)
    assert (around.degree < clients / 4) == (leaving == 10)
    sent = vectors(clients, 256)
    staying = np.full(clients, ROUNDS)
    staying[rng.permutation(clients)[:leaving]] = rng.integers(0, ROUNDS, leaving)
    result = Federation(clients, 256, around=around).sum(sent, staying.tolist())
    assert np.array_equal(result.clients, np.flatnonzero(staying >= 3))
    assert np.array_equal(result.total, sent[staying >= 3].sum(axis=0))


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ({*range(4), *range(20, 24)}, "two windows of 4 neighbours must hold more"),
        (set(range(0, 40, 5)), ""),
        ({1, *range(0, 40, 5)}, "masked of at least 32 clients must come, got 31"),
    ],
)
def test_dropouts_that_cut_the_ring_or_are_too_many_give_no_sum(gone: set[int], says: str) -> None:
    """Eight of 40 clients leave, enough stay: where the eight are two runs of four, a server that
    follows the protocol sees that clients would refuse, before any of them has revealed a share."""
    sent = vectors(40, 3)
    federation = Federation(40, around=Neighbourhood(8, 5, 32, 0)).carry(sent, rounds=2)
    ring = federation.ring
    left = {ring[place] for place in gone}
    staying = [2 if index in left else ROUNDS for index in range(40)]
    if says:
        with pytest.raises((ids.RefusedError, ids.TooFewError), match=says):
            federation.round(sent, staying)
    else:
        federation.carry(sent, staying, rounds=3)
        assert set(federation.server.conclude().clients) == set(ring) - left


def test_too_few_holders_of_one_client_give_no_sum_before_anything_is_revealed() -> None:
    """Four of six neighbours of a client that left are lost in the round that certifies."""
    federation = Federation(40, around=Neighbourhood(6, 4, 32, 0)).carry(rounds=3)
    staying = [3 if index in federation.ring[:4] else ROUNDS for index in range(40)]
    with pytest.raises(ids.TooFewError, match=r"4 clients that hold shares of client .* got [123]"):
        federation.carry(staying=staying, rounds=1)
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
        federation.answer(0, vector)
    federation.carry(sent, rounds=3)
    assert federation.server.conclude().total.tolist() == sent.sum(axis=0).tolist()


def test_steps_are_taken_in_order_and_once() -> None:
    federation, sent = Federation(2), vectors(2, 3)
    for number in range(ROUNDS + 1):
        due = [*STEPS, None][number]
        for step in set(STEPS) - {due}:
            arguments = {"advertise": (), "mask": (b"", sent[0])}.get(step, (b"",))
            with pytest.raises(ids.RoundError, match=f"cannot {step} now: {due or 'it is done'}"):
                getattr(federation.clients[0], step)(*arguments)
        if number < ROUNDS:
            federation.round(sent)


def test_a_server_is_done_once() -> None:
    federation = Federation(2)
    with pytest.raises(ids.RoundError, match="the sum waits for advert"):
        federation.server.conclude()
    federation.carry()
    with pytest.raises(ids.RoundError, match="ended by conclude"):
        federation.server.close_round()
    federation.server.conclude()
    for again in (federation.server.conclude, federation.server.close_round):
        with pytest.raises(ids.RoundError, match="this sum is concluded"):
            again()
    with pytest.raises(ids.RoundError, match="this sum is concluded"):
        federation.server.receive(0, federation.sent[0][4])


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"session": b"short"}, "16 bytes, got 5"),
        ({"length": 0}, "length must be from 1 to 67108864, got 0"),
        ({"length": 3, "runs": (Run(1, 4), Run(1, 9))}, "widths of 3 numbers must be named, got 2"),
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
    with pytest.raises(ValueError, match=sentence):
        replace(TERMS, **{"runs": (), **terms})


def test_every_term_is_in_the_digest_and_an_attempt_in_all_else_that_is_signed() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"session": new_session()},
        {"roster": Roster(ROSTER.keys[::-1])},
        {"length": 2},
        {"largest": 2},
        *({"neighbourhood": Neighbourhood(3, 3, 4, colluders)} for colluders in (0, 1)),
        {"neighbourhood": Neighbourhood(3, 4, 4, 2)},
        {"neighbourhood": Neighbourhood(2, 3, 4, 1)},
        *({"length": 3, "runs": (Run(3, bits),)} for bits in (13, 14)),
        {"length": 3, "runs": (Run(1, 13), Run(2, 13))},
    ]
    variants = [replace(TERMS, **{"runs": (), **change}) for change in changes]
    assert len({terms.digest for terms in variants}) == len(variants)
    named = replace(TERMS, length=3, largest=1000, runs=(Run(3, 13),))
    assert named.digest == replace(named, runs=()).digest
    second = replace(TERMS, attempt=1)
    assert TERMS.digest == second.digest
    assert TERMS.signed_part(0, b"") != second.signed_part(0, b"")
    assert TERMS.transcript(b"") != second.transcript(b"")
    assert TERMS.commitment(0, b"") != second.commitment(0, b"")
