"""Statistics of pairs against loops over all pairs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.metrics.pairwise import (
    collision_probability,
    gini_mean_difference,
    gini_table,
    kendall_table,
    kendall_tau,
    merged_table,
    pair_mean,
)

Floats = NDArray[np.float64]
ratings = st.lists(st.integers(0, 4), min_size=2, max_size=25).map(np.array)
pairs_of_ratings = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 2)), min_size=2, max_size=25
).map(np.array)


def mean_over_pairs(records: Floats, kernel: Callable[..., float]) -> float:
    """The U-statistic by its definition (Bell et al. 2020, Eq. 2)."""
    kernels = [kernel(one, other) for one, other in combinations(records.tolist(), 2)]
    return sum(kernels) / len(kernels)


def concordance(one: list[int], other: list[int]) -> float:
    return float(np.sign(one[0] - other[0]) * np.sign(one[1] - other[1]))


@given(pairs_of_ratings, st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=25).map(np.array))
def test_statistics_are_means_over_pairs_and_tau_counts_ties_as_nothing(
    records: Floats, values: Floats
) -> None:
    first, second = records.astype(float).T
    gini, collisions, tau = (
        mean_over_pairs(each, kernel)
        for each, kernel in (
            (values, lambda x, y: abs(x - y)),
            (first, lambda x, y: float(x == y)),
            (records, concordance),
        )
    )
    assert gini_mean_difference(values) == pytest.approx(gini, abs=1e-9)
    assert collision_probability(first) == pytest.approx(collisions, abs=1e-12)
    assert kendall_tau(first, second) == pytest.approx(tau, abs=1e-12)


def test_tau_of_many_records_is_the_exact_count_of_pairs() -> None:
    """Against counts on the grid, 40,000 records; the difference is below one pair in 8e8."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 6, 40_000)
    second = np.clip(first + rng.integers(-2, 3, first.size), 0, 5)
    counts = np.bincount(6 * first + second, minlength=36)
    exact = pair_mean(kendall_table(6, 6), counts)
    assert kendall_tau(first.astype(float), second.astype(float)) == pytest.approx(exact, abs=1e-12)


@given(ratings)
def test_counts_give_the_mean_of_any_kernel(values: NDArray[np.int64]) -> None:
    table = np.random.default_rng(3).normal(size=(5, 5))
    table = table + table.T
    naive = mean_over_pairs(values.astype(float), lambda a, b: float(table[int(a), int(b)]))
    assert pair_mean(table, np.bincount(values, minlength=5)) == pytest.approx(naive, abs=1e-9)


@pytest.mark.parametrize("bins", [1, 2, 5, 8])
def test_values_spread_evenly_have_the_tables_mean(bins: int) -> None:
    """A fine grid stands for an even spread: its own mean distance errs by a third of a cell."""
    fine = (np.arange(64 * bins) + 0.5) / (64 * bins)
    distances = np.abs(fine[:, np.newaxis] - fine).reshape(bins, 64, bins, 64).mean(axis=(1, 3))
    table = gini_table((np.arange(bins) + 0.5) / bins, 1 / bins)
    np.testing.assert_allclose(table, distances, atol=1 / (3 * 64**2 * bins) + 1e-12)


def test_merging_is_what_cells_of_twice_the_width_say() -> None:
    """Along each axis of a grid; an odd last cell stays alone."""
    fine, odd = gini_table((np.arange(6) + 0.5) / 6, 1 / 6), gini_table(np.array([1.0, 2.0, 4.0]))
    merged = np.kron(gini_table((np.arange(3) + 0.5) / 3, 1 / 3), np.ones((2, 2)))
    alone = np.array([[0.5, 0.5, 2.5], [0.5, 0.5, 2.5], [2.5, 2.5, 0.0]])
    both = np.kron(fine, odd)
    for axes, expected in (
        ((True, True), np.kron(merged, alone)),
        ((True, False), np.kron(merged, odd)),
        ((False, True), np.kron(fine, alone)),
        ((False, False), both),
    ):
        np.testing.assert_allclose(merged_table(both, (6, 3), axes), expected, atol=1e-12)


@pytest.mark.parametrize(
    "statistic",
    [
        lambda: gini_mean_difference(np.array([1.0])),
        lambda: collision_probability(np.array([1.0])),
        lambda: kendall_tau(np.array([1.0]), np.array([2.0])),
        lambda: pair_mean(np.eye(2), np.array([1, 0])),
    ],
)
def test_a_single_record_has_no_pairs(statistic: Callable[[], float]) -> None:
    with pytest.raises(ValueError, match="pairs need at least two records, got 1"):
        statistic()
