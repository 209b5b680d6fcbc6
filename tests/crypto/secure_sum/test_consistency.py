"""What a client requires of lists: every refusal, and the counts that the theorem needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from tacit.crypto.identities import RefusedError, TooFewError
from tacit.crypto.secure_sum import consistency as rules
from tacit.crypto.secure_sum import graph

TEN = rules.ListRule(clients=10, colluders=2, min_clients=7, degree=9, window_excess=0)
RING = rules.ListRule(clients=12, colluders=1, min_clients=7, degree=4, window_excess=1)
ALL = frozenset(range(10))


@pytest.mark.parametrize("clients", [*range(2, 40), 64, 100, 1000])
def test_two_certificates_would_need_an_honest_client_that_signs_twice(clients: int) -> None:
    for colluders in range(clients - 1):
        tau = graph.certificate_size(clients, colluders)
        assert 2 * (tau - colluders) > clients - colluders
        assert tau <= clients
        assert clients - tau + colluders < tau, (
            "after tau statements a secret is still reconstructed"
        )
        smaller = tau - 1
        assert 2 * (smaller - colluders) <= clients - colluders or smaller < colluders


@pytest.mark.parametrize(
    ("stayed", "left", "unsigned", "sentence"),
    [
        (ALL, {2}, {}, "client 2 is listed both as having sent a vector and"),
        (ALL - {0}, {0}, {}, "client 0 sent its vector, but is not listed"),
        (ALL - {4}, set(), {}, "client 4 is listed neither as having sent nor"),
        (ALL | {11}, set(), {}, "client 11 takes part, but was not announ"),
        (ALL, {12}, {}, "client 12 takes part, but was not announced"),
        (ALL - {6, 7, 8, 9}, {6, 7, 8, 9}, {}, "a sum must be over at least 7 clients, got 6"),
        (ALL, set(), {5}, "client 5 did not sign the keys and"),
        (ALL, set(), {3, 8}, "client 3 did not sign the keys and"),
    ],
)
def test_other_lists_are_refused(
    stayed: frozenset[int], left: set[int], unsigned: Iterable[int], sentence: str
) -> None:
    error = TooFewError if "at least" in sentence else RefusedError
    with pytest.raises(error, match=sentence):
        rules.check_lists(TEN, 0, np.arange(10), ALL, stayed, left, ALL.difference({0}, unsigned))


def test_leavers_that_cut_the_ring_are_refused() -> None:
    """Four clients left: only their positions differ."""
    everybody = frozenset(range(12))
    for left in ({2, 3, 8, 9}, {2, 3, 7, 8}):
        with pytest.raises(RefusedError, match="must hold more than 1 clients of the sum, got"):
            rules.check_windows(RING, np.arange(12), everybody - left)
    spread = {2, 5, 8, 11}
    stayed = everybody - spread
    rules.check_lists(RING, 0, np.arange(12), everybody, stayed, spread, stayed)


@pytest.mark.parametrize("half", [1, 2, 3])
def test_the_emptiest_pair_of_windows_is_found(half: int) -> None:
    rng = np.random.default_rng(0)
    for size in range(2 * half, 16):
        present = rng.random(size) < 0.6
        windows = [{(start + k) % size for k in range(half)} for start in range(size)]
        pairs = [a | b for a, b in combinations(windows, 2) if not a & b]
        expected = min(int(present[list(pair)].sum()) for pair in pairs)
        assert graph.min_in_windows(present, half) == expected


@pytest.mark.parametrize("numbers", [(100, 70, 20, 20), (1000, 900, 100, 52), (200, 140, 40, 60)])
def test_colluders_fill_windows_no_more_often_than_bounded(
    numbers: tuple[int, int, int, int],
) -> None:
    clients, min_clients, colluders, degree = numbers
    beta = graph.window_excess(*numbers)
    for size in range(min_clients, clients + 1, 10):
        chance = stats.hypergeom(size, colluders, degree).sf(beta) * comb(clients, 2)
        assert chance <= graph.MAX_LEAK_CHANCE
    below = stats.hypergeom(min_clients, colluders, degree).sf(beta - 1) * comb(clients, 2)
    assert below > graph.MAX_LEAK_CHANCE


@pytest.mark.parametrize(
    ("announced", "owners", "sentence"),
    [
        ({1, 2, 3, 10, 11}, {1, 2, 10, 11}, "client 0 sent its shares, but is not announced"),
        ({0, 1, 2, 99}, {1, 2}, "client 99 is announced, but advertised no keys"),
        ({0, 1, 2, 10, 11}, {1, 2, 10}, "client 11 is announced, but its shares never came"),
        ({0, 1, 2, 10}, {1, 2, 10, 11}, "client 11 sent shares, but is not announced"),
        ({0, 1, 2, 5, 10, 11}, {1, 2, 5, 10, 11}, "client 5 is no neighbour of client 0"),
    ],
)
def test_shares_of_others_than_the_announced_neighbours_are_refused(
    announced: set[int], owners: set[int], sentence: str
) -> None:
    with pytest.raises(RefusedError, match=sentence):
        rules.check_delivery(RING, 0, np.arange(12), announced, owners)


def test_on_a_ring_everybody_announced_gives_the_attempt_up() -> None:
    announced = frozenset(range(11))
    told = dict.fromkeys(announced, b"d")
    rules.check_restart(RING, announced, b"d", told | {4: rules.NO_DIGEST})
    with pytest.raises(TooFewError, match="client 5 has not given up the last attempt"):
        rules.check_restart(RING, announced, b"d", {k: told[k] for k in announced - {5}})
    with pytest.raises(RefusedError, match="client 4 gave up an attempt that was announced"):
        rules.check_restart(RING, announced, b"d", told | {4: b"e"})


def test_every_part_of_what_is_signed_changes_it() -> None:
    terms, adverts = bytes(32), bytes([1]) * 32
    digests = [
        rules.digest_of(*parts)
        for parts in (
            (terms, 0, adverts, [1, 2]),
            (adverts, 0, adverts, [1, 2]),
            (terms, 1, adverts, [1, 2]),
            (terms, 0, terms, [1, 2]),
            (terms, 0, adverts, [1, 3]),
            (terms, 0, adverts, [1, 2, 3]),
        )
    ]
    assert len(set(digests)) == len(digests)
    digest = rules.digest_of(terms, 0, adverts, {2, 1})
    assert digest == digests[0]
    signed = [
        rules.announced_statement(digest),
        rules.lists_statement(digest, [1, 2], [3]),
        rules.lists_statement(digest, [1], [2, 3]),
        rules.lists_statement(digest, [1, 2, 3], []),
        rules.lists_statement(terms, [1, 2], [3]),
        rules.ended_statement(terms, 0, digest),
        rules.ended_statement(terms, 1, digest),
        rules.ended_statement(terms, 0, rules.NO_DIGEST),
        rules.ended_statement(adverts, 0, digest),
    ]
    assert len(set(signed)) == len(signed)
