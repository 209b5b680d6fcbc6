"""Costs restated at other adjacencies, and bounds of whole histories."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from tacit.privacy.composition import CHANGES, bound, largest_rho, restated, stated_cost
from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost
from tests.privacy.test_cost import composed_delta

LABEL, RECORD = Adjacency.LABEL, Adjacency.RECORD
REPLACE, SCORE = Adjacency.REPLACE, Adjacency.SCORE
RECORDS = (LABEL, RECORD, REPLACE, SCORE)
"""Adjacencies of records; those of persons are in ``test_persons``."""
VALUES = [(score, label) for score in (0, 1) for label in (0, 1)]
DATASETS = [(), *product(VALUES), *product(VALUES, repeat=2), *product(VALUES, repeat=3)]
Records = tuple[tuple[int, int], ...]


def neighbours(one: Records, other: Records, adjacency: Adjacency) -> bool:
    """The adjacencies' definitions, on sequences of (score, label) records."""
    if adjacency is RECORD:
        small, large = sorted((one, other), key=len)
        return len(large) == len(small) + 1 and any(
            large[:k] + large[k + 1 :] == small for k in range(len(large))
        )
    if len(one) != len(other):
        return False
    changed = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    if len(changed) != 1:
        return False
    (score, label), (its_score, its_label) = changed[0]
    if adjacency is LABEL:
        return score == its_score
    return adjacency is REPLACE or label == its_label


def distances(adjacency: Adjacency) -> NDArray[Any]:
    """The least number of changes between any two small data sets; infinite where there is none."""
    count = len(DATASETS)
    far = np.full((count, count), np.inf)
    np.fill_diagonal(far, 0)
    for i, j in product(range(count), repeat=2):
        if neighbours(DATASETS[i], DATASETS[j], adjacency):
            far[i, j] = 1
    for k in range(count):
        far = np.minimum(far, far[:, k, None] + far[None, k, :])
    return far


class TestRestated:
    """A guarantee at one adjacency, read at another."""

    @pytest.mark.parametrize("here", RECORDS)
    def test_changes_are_the_distances_between_small_data_sets(self, here: Adjacency) -> None:
        far = distances(here)
        for there in RECORDS:
            pairs = [
                (i, j)
                for i, j in product(range(len(DATASETS)), repeat=2)
                if neighbours(DATASETS[i], DATASETS[j], there)
            ]
            most = max(far[pair] for pair in pairs)
            assert CHANGES.get((here, there), math.inf) == most

    def test_what_does_not_follow_is_unlimited(self) -> None:
        for here, there in product(Adjacency, repeat=2):
            cost = restated(Cost(0.5, 1e-9, here, 0.1), there)
            assert (cost == UNPROTECTED) == ((here, there) not in CHANGES)

    def test_what_is_shown_is_shown_everywhere(self) -> None:
        for there in Adjacency:
            assert restated(UNPROTECTED, there) == UNPROTECTED

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-3), (3.0, 1e-4)])
    def test_delta_of_two_changes_is_reached_and_not_passed(
        self, epsilon: float, delta: float
    ) -> None:
        """Of three data sets in a row, each as far from the next as (epsilon, delta) lets it."""
        last = 1e-4
        middle = math.exp(epsilon) * last + delta
        first = math.exp(epsilon) * middle + delta
        needed = first - math.exp(2 * epsilon) * last
        cost = restated(Cost(epsilon, delta, RECORD), REPLACE)
        assert cost.epsilon == 2 * epsilon
        assert cost.delta == pytest.approx(needed, rel=1e-9)

    def test_rho_grows_with_the_square_as_the_gaussian_does(self) -> None:
        sigma = 3.0
        one, two = 1 / (2 * sigma**2), 2**2 / (2 * sigma**2)
        cost = restated(Cost(1.0, 1e-6, RECORD, one), LABEL)
        assert cost.rho == pytest.approx(two)

    def test_delta_that_reaches_one_protects_nothing(self) -> None:
        assert restated(Cost(10.0, 1e-4, RECORD), REPLACE) == UNPROTECTED
        assert restated(Cost(1000.0, 1e-300, RECORD), REPLACE) == UNPROTECTED
        assert restated(Cost(1000.0, 0.0, RECORD), REPLACE).epsilon == 2000.0

    def test_a_cost_without_adjacency_is_refused(self) -> None:
        with pytest.raises(ValueError, match="a cost must name its adjacency"):
            restated(NOTHING, LABEL)


class TestStatedCost:
    """Free steps are free at one adjacency only."""

    def test_a_free_step_is_free_at_its_protocols_adjacency(self) -> None:
        assert stated_cost(NOTHING, Cost(1.0, adjacency=LABEL)) == Cost(0.0, adjacency=LABEL)

    def test_other_costs_stay(self) -> None:
        cost = Cost(0.5, adjacency=SCORE)
        assert stated_cost(cost, Cost(1.0, adjacency=LABEL)) == cost
        assert stated_cost(UNPROTECTED, Cost(1.0, adjacency=LABEL)) == UNPROTECTED

    def test_nothing_is_free_where_nothing_is_guaranteed(self) -> None:
        assert stated_cost(NOTHING, UNPROTECTED) == UNPROTECTED

    def test_a_cost_without_adjacency_is_refused(self) -> None:
        with pytest.raises(ValueError, match="a cost must name its adjacency"):
            stated_cost(Cost(0.5), Cost(1.0, adjacency=LABEL))


class TestBound:
    """The tightest bound that holds, and how it was found."""

    @settings(max_examples=10, deadline=None)
    @given(times=st.integers(2, 100), each=st.floats(0.01, 1.0))
    def test_it_holds_and_is_close_to_exact(self, times: int, each: float) -> None:
        composed = bound({Cost(each, adjacency=LABEL): times}, LABEL, 1e-6)
        assert composed.tightest.epsilon <= composed.summed.epsilon == pytest.approx(times * each)
        if composed.way != "basic":
            assert composed.tightest.delta == 1e-6
            assert composed_delta(times, each, composed.tightest.epsilon) <= 1e-6
            assert composed_delta(times, each, 0.98 * composed.tightest.epsilon - 0.01) > 1e-6

    def test_other_adjacencies_are_composed_after_restating(self) -> None:
        history = {Cost(0.1, adjacency=RECORD): 30, Cost(0.2, adjacency=REPLACE): 20}
        composed = bound(history, REPLACE)
        doubled = bound({Cost(0.2, adjacency=REPLACE): 50}, REPLACE)
        assert (composed.summed.epsilon, composed.tightest) == (10.0, doubled.tightest)
        assert composed.releases == doubled.releases == 50
        assert bound(history, RECORD).tightest == UNPROTECTED

    def test_one_unlimited_debit_is_enough(self) -> None:
        composed = bound({Cost(0.1, adjacency=RECORD): 30, UNPROTECTED: 1}, RECORD)
        assert composed.summed == composed.tightest == UNPROTECTED

    def test_gaussian_releases_compose_by_their_rho(self) -> None:
        composed = bound({Cost(1.0, 1e-7, RECORD, 0.02): 10}, RECORD, 1e-6)
        assert composed.way == "zcdp"
        assert composed.tightest.epsilon < 4 < composed.summed.epsilon

    def test_free_debits_are_counted_and_cost_nothing(self) -> None:
        composed = bound({Cost(0.0, adjacency=LABEL): 3}, LABEL)
        assert (composed.releases, composed.summed.epsilon, composed.way) == (3, 0.0, "basic")
        assert bound({}, LABEL).tightest == NOTHING

    def test_many_different_costs_still_get_an_answer(self) -> None:
        history = {Cost(0.01 + k / 1e5, adjacency=LABEL): 1 for k in range(300)}
        assert bound(history, LABEL).way == "zcdp"
        assert bound({Cost(100.0, adjacency=LABEL): 200}, LABEL).way == "basic"


class TestLargestRho:
    """The limit of concentrated sums."""

    @pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (20.0, 1e-3)])
    def test_the_gaussian_of_that_rho_keeps_the_limit(self, epsilon: float, delta: float) -> None:
        """The Gaussian's own delta (Balle and Wang 2018, Thm. 8) is below; at twice rho above."""
        rho = largest_rho(epsilon, delta)
        assert gaussian_delta(epsilon, rho) <= delta
        assert gaussian_delta(epsilon, 2 * rho) > delta

    def test_it_is_no_less_than_the_closed_form(self) -> None:
        rho = largest_rho(3.0, 1e-6)
        assert rho + 2 * math.sqrt(rho * math.log(1e6)) >= 3.0 * (1 - 1e-9)


def gaussian_delta(epsilon: float, rho: float) -> float:
    sigma = 1 / math.sqrt(2 * rho)
    half = 1 / (2 * sigma)
    return float(
        special.ndtr(half - epsilon * sigma)
        - math.exp(epsilon) * special.ndtr(-half - epsilon * sigma)
    )
