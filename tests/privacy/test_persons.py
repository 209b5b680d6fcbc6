"""A record's guarantee as a person's, and as a ledger restates it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.ledger.accounts import amount
from tacit.privacy.composition import (
    CHANGES,
    MAX_RECORDS,
    OF_PERSON,
    bound,
    check_per_person,
    of_person,
    restated,
)
from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost

PERSON, PERSON_LABEL = Adjacency.PERSON, Adjacency.PERSON_LABEL
PERSON_REPLACE, PERSON_SCORE = Adjacency.PERSON_REPLACE, Adjacency.PERSON_SCORE
PERSONS = (PERSON, PERSON_LABEL, PERSON_REPLACE, PERSON_SCORE)
VALUES = [(score, label) for score in (0, 1) for label in (0, 1)]
COUNTED = [(), *product(VALUES), *product(VALUES, repeat=2)]
"""What a person's counted records may hold, where two count."""
Records = tuple[tuple[int, int], ...]


def changed(one: Records, other: Records) -> tuple[bool, bool, int]:
    """Whether scores and labels differ, and in how many records, of sequences of one length."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    return any(a[0] != b[0] for a, b in pairs), any(a[1] != b[1] for a, b in pairs), len(pairs)


def neighbours(one: Records, other: Records, adjacency: Adjacency) -> bool:
    """The definitions, on one person's counted records; all other persons' stay."""
    if adjacency is PERSON:
        return one != other and not (one and other)
    if adjacency is Adjacency.RECORD:
        return one != other and one_more_record(one, other)
    if one == other or len(one) != len(other):
        return False
    score, label, records = changed(one, other)
    hidden = (adjacency in PERSONS) or records == 1
    if adjacency in (PERSON_LABEL, Adjacency.LABEL):
        return hidden and not score
    return hidden and (adjacency in (PERSON_REPLACE, Adjacency.REPLACE) or not label)


def one_more_record(one: Records, other: Records) -> bool:
    """Counted records before and after one more of the person's: one more, or one in its place."""
    if abs(len(one) - len(other)) == 1:
        small, large = sorted((one, other), key=len)
        return any(large[:k] + large[k + 1 :] == small for k in range(len(large)))
    return len(one) == len(other) and changed(one, other)[2] == 1


def distances(adjacency: Adjacency) -> NDArray[Any]:
    """The least number of changes between any two states of a person's counted records."""
    count = len(COUNTED)
    far = np.full((count, count), np.inf)
    np.fill_diagonal(far, 0)
    for i, j in product(range(count), repeat=2):
        if neighbours(COUNTED[i], COUNTED[j], adjacency):
            far[i, j] = 1
    for k in range(count):
        far = np.minimum(far, far[:, k, None] + far[None, k, :])
    return far


class TestRestated:
    """Entries of records and of persons in one ledger."""

    @pytest.mark.parametrize("here", PERSONS)
    def test_changes_are_the_distances_between_a_persons_counted_records(
        self, here: Adjacency
    ) -> None:
        far = distances(here)
        for there in Adjacency:
            pairs = [
                (i, j)
                for i, j in product(range(len(COUNTED)), repeat=2)
                if neighbours(COUNTED[i], COUNTED[j], there)
            ]
            assert CHANGES.get((here, there), math.inf) == max(far[pair] for pair in pairs)

    @pytest.mark.parametrize("here", OF_PERSON)
    def test_a_records_cost_says_nothing_of_a_person(self, here: Adjacency) -> None:
        for there in PERSONS:
            assert restated(Cost(0.1, adjacency=here), there) == UNPROTECTED
            assert amount(Cost(0.1, adjacency=here), there).lost == 1


class TestOfPerson:
    """k records of a person."""

    @pytest.mark.parametrize("records", [1, 2, 5, 40])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (0.0, 1e-4)])
    def test_a_chain_of_k_records_reaches_the_bound_and_does_not_pass_it(
        self, epsilon: float, delta: float, records: int
    ) -> None:
        """Data sets in a row, each as far from the next as (epsilon, delta) lets it."""
        probability = start = 1e-30
        for _ in range(records):
            probability = math.exp(epsilon) * probability + delta
        needed = probability - math.exp(records * epsilon) * start
        cost = of_person(Cost(epsilon, delta, Adjacency.RECORD), records)
        if needed < 1:
            assert cost.epsilon == pytest.approx(records * epsilon)
            assert cost.delta == pytest.approx(needed, rel=1e-9)
            assert cost.adjacency is PERSON
        else:
            assert cost == UNPROTECTED

    def test_rho_grows_with_the_square_as_the_gaussian_does(self) -> None:
        sigma, records = 3.0, 4
        one, all_together = 1 / (2 * sigma**2), records**2 / (2 * sigma**2)
        cost = of_person(Cost(1.0, 1e-12, Adjacency.LABEL, one), records)
        assert cost.rho == pytest.approx(all_together)

    def test_what_protects_nothing_protects_no_person(self) -> None:
        assert of_person(UNPROTECTED, 3) == UNPROTECTED
        assert of_person(NOTHING, 3) == NOTHING
        assert of_person(Cost(900.0, 1e-9, Adjacency.RECORD), 10) == UNPROTECTED

    def test_zero_leaves_a_records_cost(self) -> None:
        cost = Cost(1.0, adjacency=Adjacency.RECORD)
        assert of_person(cost, 0) is cost

    @pytest.mark.parametrize("records", [0, -1, 1.5, True, MAX_RECORDS + 1])
    def test_numbers_that_cannot_be_are_refused(self, records: Any) -> None:
        with pytest.raises(ValueError, match="per_person must be from 1 to"):
            check_per_person(records)


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 200.0, 690.0])
def test_two_changes_have_the_delta_of_group_privacy(epsilon: float) -> None:
    """``(1 + exp(epsilon)) delta``, also where ``exp(2 epsilon)`` is no double."""
    delta = math.exp(-epsilon) / 1e6
    twice = restated(Cost(epsilon, delta, Adjacency.RECORD), Adjacency.REPLACE)
    assert twice.epsilon == 2 * epsilon
    assert twice.delta == pytest.approx((1 + math.exp(epsilon)) * delta, rel=1e-12)


@pytest.mark.parametrize("epsilon", [354.0, 355.0, 600.0])
def test_a_history_at_a_large_epsilon_has_the_sum_as_its_bound(epsilon: float) -> None:
    """Privacy-loss distributions would take ``exp(2 epsilon)`` of each restated cost."""
    cost = Cost(epsilon, 1e-300, Adjacency.RECORD)
    bounded = bound({cost: 2}, Adjacency.REPLACE)
    assert (bounded.way, bounded.tightest) == ("basic", bounded.summed)
    assert bounded.tightest.epsilon == 4 * epsilon
    assert 0 < bounded.tightest.delta < 1e-30
