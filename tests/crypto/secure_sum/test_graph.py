"""The random ring, and bounds on what may go wrong with it against exact enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import stats

from tacit.crypto.secure_sum import graph as bounds
from tacit.crypto.secure_sum.graph import Neighbourhood
from tests.privacy.reference import SEEDED_LEVEL


def ring(clients: int, degree: int) -> dict[int, set[int]]:
    return {
        k: set(bounds.neighbours(np.arange(clients), k, degree).tolist()) for k in range(clients)
    }


def connected(graph: dict[int, set[int]], remaining: set[int]) -> bool:
    reached, todo = set(), {min(remaining)}
    while todo:
        reached |= todo
        todo = {other for one in todo for other in graph[one] & remaining} - reached
    return reached == remaining


@pytest.mark.parametrize(("clients", "degree"), [(11, 4), (12, 4), (13, 6)])
def test_a_ring_falls_apart_only_where_two_windows_are_empty(clients: int, degree: int) -> None:
    """Every set of removed clients that leaves two or more."""
    graph, everybody = ring(clients, degree), set(range(clients))
    apart = 0
    for removed in range(clients - 1):
        for gone in combinations(range(clients), removed):
            present = [k not in gone for k in range(clients)]
            if not connected(graph, everybody - set(gone)):
                assert bounds.min_in_windows(present, degree // 2) == 0
                apart += 1
    assert apart > 0


def chance(clients: int, some: int, event: Callable[[set[int]], bool]) -> float:
    """Of an event, where every set of so many clients is equally likely."""
    sets = map(set, combinations(range(clients), some))
    return sum(map(event, sets)) / comb(clients, some)


@pytest.mark.parametrize(("clients", "dropped", "degree", "excess"), [(12, 5, 4, 1), (13, 6, 6, 1)])
def test_lists_are_refused_no_more_often_than_bounded(
    clients: int, dropped: int, degree: int, excess: int
) -> None:
    def refused(gone: set[int]) -> bool:
        present = [k not in gone for k in range(clients)]
        return bounds.min_in_windows(present, degree // 2) <= excess

    exact = chance(clients, dropped, refused)
    assert 0 < exact <= bounds.refusal_chance(clients, dropped, degree, excess)


@pytest.mark.parametrize(("degree", "threshold"), [(4, 3), (6, 5)])
def test_neighbours_collude_no_more_often_than_bounded(degree: int, threshold: int) -> None:
    """Early dropouts leave them no more: the graph is drawn among those who advertised."""
    graph = ring(13, degree)
    exact = chance(
        13, 4, lambda bad: any(len(graph[k] & bad) >= threshold for k in set(graph) - bad)
    )
    bound = float(bounds.leak_chance(13, 0, 4, degree, threshold))
    assert exact <= bound < 4 * exact + 1e-12
    for gone in range(3):
        left = bounds.leak_chance(13 - gone, 0, 4, degree, threshold)
        assert left <= bounds.leak_chance(13, 2, 4, degree, threshold)


@pytest.mark.parametrize(("degree", "threshold"), [(4, 3), (6, 4)])
def test_shares_are_lost_no_more_often_than_bounded(degree: int, threshold: int) -> None:
    graph = ring(13, degree)
    exact = chance(
        13, 4, lambda gone: min(len(graph[k] - gone) + (k not in gone) for k in graph) < threshold
    )
    assert exact <= float(bounds.loss_chance(13, 4, degree, threshold)) < 6 * exact


@pytest.mark.parametrize(
    ("clients", "dropouts", "corrupted"),
    [(65, 0.3, 0.2), (200, 0.1, 0.1), (300, 0.05, 0.2), (66, 0.4, 0.05)],
)
def test_the_smallest_degree_and_threshold_within_the_bounds(
    clients: int, dropouts: float, corrupted: float
) -> None:
    """Against a search through all degrees and thresholds in order."""
    gone, bad = int(dropouts * clients), int(np.ceil(corrupted * clients))

    def good(degree: int, threshold: int) -> bool:
        excess = bounds.window_excess(clients, clients - gone, bad, degree)
        return bool(
            bounds.refusal_chance(clients, gone, degree, excess) <= bounds.MAX_LOSS_CHANCE
            and bounds.leak_chance(clients, gone, bad, degree, threshold) <= bounds.MAX_LEAK_CHANCE
            and bounds.loss_chance(clients, gone, degree, threshold) <= bounds.MAX_LOSS_CHANCE
        )

    degrees = range(2, clients - gone - 1, 2)
    pairs = ((k, t) for k in degrees for t in range(k // 2 + 1, k + 2) if 2 * t > k + 1)
    complete = (clients - 1, bounds.certificate_size(clients, bad))
    degree, threshold = next((pair for pair in pairs if good(*pair)), complete)
    expected = Neighbourhood(degree, threshold, clients - gone, bad)
    assert Neighbourhood.of(clients, bad, clients - gone) == expected


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        ((9, 5, 5, 0), "above half of 10 receivers and at most all of them, got 5"),
        ((9, 11, 11, 0), "above half of 10 receivers and at most all of them, got 11"),
        ((9, 6, 5, 0), "at least the threshold 6, got 5"),
        ((9, 6, 6, -1), "colluders must be at least 0, got -1"),
        ((100, 10, 55), "at least 56 of 100 clients of which 10 may collude, got 55"),
        ((100, 95, 90), "at least 98 of 100 clients of which 95 may collude, got 90"),
    ],
)
def test_what_protects_nobody_or_no_graph_bears_is_refused(
    make: tuple[int, ...], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Neighbourhood(*make) if len(make) == 4 else Neighbourhood.of(*make)


def test_few_clients_all_mask_with_each_other_and_of_many_three_in_ten_may_drop_out() -> None:
    assert Neighbourhood.of(64) == Neighbourhood.complete(64)
    assert Neighbourhood.of(64, 3, 50) == Neighbourhood(63, 34, 50, 3)
    assert Neighbourhood.of(65) == Neighbourhood.of(65, colluders=13, min_clients=46)
    assert [Neighbourhood.of(clients).min_clients for clients in (65, 100, 200)] == [46, 70, 140]
    assert ring(5, 4) == {k: set(range(5)) - {k} for k in range(5)}
    assert ring(5, 8) == ring(5, 4)


@pytest.mark.parametrize(("clients", "degree"), [(9, 2), (10, 4), (30, 12)])
def test_neighbours_are_mutual_and_as_many_as_asked(clients: int, degree: int) -> None:
    members = np.sort(np.random.default_rng(0).permutation(100)[:clients])
    order = bounds.arrange(members, b"a seed of 32 bytes for the order")
    graph = {k: set(bounds.neighbours(order, k, degree).tolist()) for k in members.tolist()}
    assert sorted(order.tolist()) == members.tolist()
    assert all(len(around) == degree and k not in around for k, around in graph.items())
    assert all(one in graph[other] for one, around in graph.items() for other in around)


def test_every_order_is_equally_likely() -> None:
    """The 24 orders of four members under 4,800 seeds, chi-square.

    The seeds are fixed: over the choice of other seeds, false alarm 1e-4.
    """
    orders = [
        tuple(bounds.arrange(np.arange(4), seed.to_bytes(32)).tolist()) for seed in range(4800)
    ]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > SEEDED_LEVEL
