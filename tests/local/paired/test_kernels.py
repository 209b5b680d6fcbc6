"""Which records meet, what a pair's kernel is, and how much a mean over matched pairs varies."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.local.paired import estimate
from tacit.local.paired.kernels import BOUNDS, GRIDS, paired_values
from tacit.local.paired.mpc import drawn_seats, seated_pairs

UNITS = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))
BITS = st.sampled_from([0.0, 1.0])


def naive_value(kernel: str, first: Any, second: Any) -> int:
    """A kernel of two records, from its definition."""
    (x, a), (y, b) = first, second
    if kernel == "auc":
        if a == b:
            return 0
        return int((x >= y) if a > b else (y > x))
    if kernel == "collision":
        return int(x == y)
    if kernel == "kendall":
        return int(np.sign(np.sign(x - y) * np.sign(a - b)))
    return abs(round(x * GRIDS["gini"]) - round(y * GRIDS["gini"]))


@pytest.mark.parametrize("kernel", list(GRIDS))
@given(records=st.lists(st.tuples(UNITS, BITS, UNITS, BITS), min_size=1, max_size=8))
def test_values_of_pairs_are_those_of_the_definition(kernel: str, records: list[Any]) -> None:
    flat = np.array(records).T
    values = paired_values(kernel, flat[:2], flat[2:])
    assert values.dtype == np.int64
    assert values.tolist() == [naive_value(kernel, r[:2], r[2:]) for r in records]
    low, high = BOUNDS[kernel]
    assert values.min() >= low
    assert values.max() <= high


def test_every_two_records_meet_equally_often() -> None:
    """6,000 matchings of 6 and of 5 records, by chi-square; false alarm 2e-6 over the seeds."""
    for records in (6, 5):
        seats = drawn_seats(np.array([1, 2]), 6000, records)
        np.testing.assert_array_equal(np.sort(seats), np.tile(np.arange(records), (6000, 1)))
        first, second = seated_pairs(seats)
        places = first * records + second
        counts = Counter(places.ravel().tolist())
        assert len(counts) == records * (records - 1)
        assert stats.chisquare(list(counts.values())).pvalue > 1e-6


def test_one_number_that_others_do_not_know_makes_the_matching_random() -> None:
    drawn = [drawn_seats(np.array([5, own]), 1, 50).tolist() for own in range(20)]
    assert len({str(seats) for seats in drawn}) == 20
    several = drawn_seats(np.array([[5, 0], [5, 7]]), 1, 50)
    assert several.tolist() == [drawn[0], drawn[7]]


def kernel_table(records: int, seed: int) -> Any:
    """A symmetric kernel of all records, with values that share a record alike."""
    rng = np.random.default_rng(seed)
    own = rng.normal(size=records)
    table = rng.normal(size=(records, records)) + own
    return table + table.T


def moments_of(table: Any) -> tuple[float, float, float]:
    """Mean and variance over pairs, and the covariance of pairs that share a record, by loops."""
    n = len(table)
    pairs = list(itertools.combinations(range(n), 2))
    mean = np.mean([table[pair] for pair in pairs])
    variance = np.mean([(table[pair] - mean) ** 2 for pair in pairs])
    shared = [
        (table[i, j] - mean) * (table[i, k] - mean)
        for i, j, k in itertools.permutations(range(n), 3)
    ]
    return float(mean), float(variance), float(np.mean(shared)) if shared else 0.0


@pytest.mark.parametrize("records", [2, 3, 4, 5, 6, 7])
def test_the_variance_of_a_matching_is_that_of_all_matchings(records: int) -> None:
    table = kernel_table(records, seed=records)
    half = records // 2
    means = [
        np.mean([table[order[2 * p], order[2 * p + 1]] for p in range(half)])
        for order in itertools.permutations(range(records))
    ]
    mean, variance, shared = moments_of(table)
    assert np.mean(means) == pytest.approx(mean)
    predicted = float(estimate.matching_variance(variance, shared, records, 1))
    assert predicted == pytest.approx(np.var(means), abs=1e-12)
    assert float(estimate.matching_variance(variance, shared, records, 3)) == pytest.approx(
        predicted / 3
    )


@pytest.mark.parametrize("matchings", [1, 2, 5])
def test_both_variances_together_are_theorem_5(matchings: int) -> None:
    """Theorem 5 of Bell et al. 2020 without noise, up to terms of the order of 1 / n."""
    n, one, two = 100_000, 0.07, 0.3
    theorem = (
        2
        / (matchings * n)
        * (2 * (matchings - 1) * (1 - 1 / (n - 1)) * one + (1 + (matchings - 1) / (n - 1)) * two)
    )
    total = estimate.matching_variance(two, one, n, matchings) + estimate.all_pairs_variance(
        two, one, n
    )
    assert float(total) == pytest.approx(theorem, rel=1e-4)
