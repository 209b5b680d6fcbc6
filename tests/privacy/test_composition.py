"""Costs restated at other adjacencies and for persons, and bounds of whole histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.ledger.accounts import amount
from tacit.privacy import composition
from tacit.privacy.cost import NOTHING, UNPROTECTED, Adjacency, Cost
from tests.privacy.reference import composed_delta, gaussian_delta, pure

LABEL, RECORD = Adjacency.LABEL, Adjacency.RECORD
REPLACE, SCORE = Adjacency.REPLACE, Adjacency.SCORE
RECORDS = (LABEL, RECORD, REPLACE, SCORE)
PERSON, PERSON_LABEL = Adjacency.PERSON, Adjacency.PERSON_LABEL
PERSON_REPLACE, PERSON_SCORE = Adjacency.PERSON_REPLACE, Adjacency.PERSON_SCORE
PERSONS = (PERSON, PERSON_LABEL, PERSON_REPLACE, PERSON_SCORE)
VALUES = [(score, label) for score in (0, 1) for label in (0, 1)]
COUNTED = [(), *product(VALUES), *product(VALUES, repeat=2)]
"""What a person's counted records may hold, where two count."""
DATASETS = [*COUNTED, *product(VALUES, repeat=3)]
Records = tuple[tuple[int, int], ...]
Definition = Callable[[Records, Records, Adjacency], bool]


def changed(one: Records, other: Records) -> tuple[bool, bool, int]:
    """Whether scores and labels differ, and in how many records, of sequences of one length."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    return any(a[0] != b[0] for a, b in pairs), any(a[1] != b[1] for a, b in pairs), len(pairs)


def neighbours(one: Records, other: Records, adjacency: Adjacency) -> bool:
    """The adjacencies' definitions, on all records or on a person's; all other persons' stay."""
    if adjacency is PERSON:
        return one != other and not (one and other)
    if adjacency is RECORD:
        small, large = sorted((one, other), key=len)
        return len(large) == len(small) + 1 and any(
            large[:k] + large[k + 1 :] == small for k in range(len(large))
        )
    if one == other or len(one) != len(other):
        return False
    score, label, records = changed(one, other)
    hidden = adjacency in PERSONS or records == 1
    if adjacency in (PERSON_LABEL, LABEL):
        return hidden and not score
    return hidden and (adjacency in (PERSON_REPLACE, REPLACE) or not label)


def persons_neighbours(one: Records, other: Records, adjacency: Adjacency) -> bool:
    """Counted records before and after one more of the person's may be one in another's place."""
    one_more = adjacency is RECORD
    return neighbours(one, other, adjacency) or (one_more and neighbours(one, other, REPLACE))


def most_changes(
    states: Sequence[Records], definition: Definition, here: Adjacency
) -> dict[Adjacency, float]:
    """The largest distance of neighbours at each adjacency, in changes at another."""

    def table(adjacency: Adjacency) -> NDArray[np.bool_]:
        return np.array([[definition(one, other, adjacency) for other in states] for one in states])

    far = np.where(table(here), 1.0, np.inf)
    np.fill_diagonal(far, 0)
    for k in range(len(states)):
        far = np.minimum(far, far[:, k, None] + far[None, k, :])
    return {there: float(far[table(there)].max()) for there in Adjacency if table(there).any()}


# --- a guarantee at one adjacency, read at another


@pytest.mark.parametrize("here", Adjacency)
def test_changes_are_the_distances_between_small_data_sets(here: Adjacency) -> None:
    """Of all records; or of the counted ones of a person, all other persons' staying."""
    if here in PERSONS:
        expected = most_changes(COUNTED, persons_neighbours, here)
    else:
        expected = {
            there: most
            for there, most in most_changes(DATASETS, neighbours, here).items()
            if there in RECORDS
        }
    assert len(expected) == (8 if here in PERSONS else 4)
    for there, most in expected.items():
        assert composition.CHANGES.get((here, there), math.inf) == most


@pytest.mark.parametrize("here", composition.OF_PERSON)
def test_a_records_cost_says_nothing_of_a_person(here: Adjacency) -> None:
    for there in PERSONS:
        assert composition.restated(Cost(0.1, adjacency=here), there) == UNPROTECTED
        assert amount(Cost(0.1, adjacency=here), there).lost == 1


def test_what_does_not_follow_is_unlimited() -> None:
    for here, there in product(Adjacency, repeat=2):
        cost = composition.restated(Cost(0.5, 1e-9, here, 0.1), there)
        assert (cost == UNPROTECTED) == ((here, there) not in composition.CHANGES)
        assert composition.restated(UNPROTECTED, there) == UNPROTECTED


@pytest.mark.parametrize("epsilon", [1e-9, 0.5, 3.0, 200.0, 690.0])
def test_two_changes_have_the_delta_of_group_privacy(epsilon: float) -> None:
    """``(1 + exp(epsilon)) delta``, also where ``exp(2 epsilon)`` is no double."""
    delta = math.exp(-epsilon) / 1e6
    twice = composition.restated(Cost(epsilon, delta, RECORD), REPLACE)
    assert twice.epsilon == 2 * epsilon
    assert twice.delta == pytest.approx((1 + math.exp(epsilon)) * delta, rel=1e-12)


@pytest.mark.parametrize("changes", [2, 4])
def test_rho_grows_with_the_square_as_the_gaussian_does(changes: int) -> None:
    sigma = 3.0
    cost = Cost(1.0, 1e-12, RECORD, 1 / (2 * sigma**2))
    more = (
        composition.restated(cost, LABEL) if changes == 2 else composition.of_person(cost, changes)
    )
    assert more.rho == pytest.approx(changes**2 / (2 * sigma**2))


def test_delta_that_reaches_one_protects_nothing() -> None:
    assert composition.restated(Cost(10.0, 1e-4, RECORD), REPLACE) == UNPROTECTED
    assert composition.restated(Cost(1000.0, 1e-300, RECORD), REPLACE) == UNPROTECTED
    assert composition.restated(Cost(1000.0, 0.0, RECORD), REPLACE).epsilon == 2000.0


def test_a_cost_without_adjacency_is_refused() -> None:
    with pytest.raises(ValueError, match="a cost must name its adjacency"):
        composition.restated(NOTHING, LABEL)


@pytest.mark.parametrize(
    ("cost", "guarantee", "stated"),
    [
        (NOTHING, pure(1.0), pure(0.0)),
        (Cost(0.5, adjacency=SCORE), pure(1.0), Cost(0.5, adjacency=SCORE)),
        (UNPROTECTED, pure(1.0), UNPROTECTED),
        (NOTHING, UNPROTECTED, UNPROTECTED),
    ],
)
def test_free_steps_are_free_at_their_protocols_adjacency(
    cost: Cost, guarantee: Cost, stated: Cost
) -> None:
    assert composition.stated_cost(cost, guarantee) == stated
    with pytest.raises(ValueError, match="a cost must name its adjacency"):
        composition.stated_cost(Cost(0.5), guarantee)


# --- the tightest bound that holds, and how it was found


@settings(max_examples=10)
@given(times=st.integers(2, 100), each=st.floats(0.01, 1.0))
def test_a_bound_holds_and_is_close_to_exact(times: int, each: float) -> None:
    composed = composition.bound({Cost(each, adjacency=LABEL): times}, LABEL, 1e-6)
    assert composed.tightest.epsilon <= composed.summed.epsilon == pytest.approx(times * each)
    if composed.way != "basic":
        assert composed.tightest.delta == 1e-6
        assert composed_delta(times, each, composed.tightest.epsilon) <= 1e-6
        assert composed_delta(times, each, 0.98 * composed.tightest.epsilon - 0.01) > 1e-6


def test_other_adjacencies_are_composed_after_restating() -> None:
    history = {pure(0.1, RECORD): 30, pure(0.2, REPLACE): 20}
    composed, doubled = (
        composition.bound(history, REPLACE),
        composition.bound({pure(0.2, REPLACE): 50}, REPLACE),
    )
    assert (composed.summed.epsilon, composed.tightest) == (10.0, doubled.tightest)
    assert composed.releases == doubled.releases == 50
    assert composition.bound(history, RECORD).tightest == UNPROTECTED
    shown = composition.bound({pure(0.1, RECORD): 30, UNPROTECTED: 1}, RECORD)
    assert shown.summed == shown.tightest == UNPROTECTED


def test_gaussian_releases_compose_by_their_rho() -> None:
    composed = composition.bound({Cost(1.0, 1e-7, RECORD, 0.02): 10}, RECORD, 1e-6)
    assert composed.way == "zcdp"
    assert composed.tightest.epsilon < 4 < composed.summed.epsilon


def test_free_debits_are_counted_and_cost_nothing() -> None:
    composed = composition.bound({pure(0.0): 3}, LABEL)
    assert (composed.releases, composed.summed.epsilon, composed.way) == (3, 0.0, "basic")
    assert composition.bound({}, LABEL).tightest == NOTHING


def test_many_different_costs_still_get_an_answer() -> None:
    assert composition.bound({pure(0.01 + k / 1e5): 1 for k in range(300)}, LABEL).way == "zcdp"
    assert composition.bound({pure(100.0): 200}, LABEL).way == "basic"


@pytest.mark.parametrize("epsilon", [354.0, 355.0, 600.0])
def test_a_history_at_a_large_epsilon_has_the_sum_as_its_bound(epsilon: float) -> None:
    """Privacy-loss distributions would take ``exp(2 epsilon)`` of each restated cost."""
    bounded = composition.bound({Cost(epsilon, 1e-300, RECORD): 2}, REPLACE)
    assert (bounded.way, bounded.tightest) == ("basic", bounded.summed)
    assert bounded.tightest.epsilon == 4 * epsilon
    assert 0 < bounded.tightest.delta < 1e-30


# --- the limit of concentrated sums


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (20.0, 1e-3)])
def test_the_gaussian_of_the_largest_rho_keeps_the_limit(epsilon: float, delta: float) -> None:
    """The Gaussian's own delta (Balle and Wang 2018, Thm. 8) is below; at twice rho above."""
    rho = composition.largest_rho(epsilon, delta)
    assert gaussian_delta(epsilon, (2 * rho) ** -0.5) <= delta
    assert gaussian_delta(epsilon, (4 * rho) ** -0.5) > delta


def test_the_largest_rho_is_no_less_than_that_of_the_closed_form() -> None:
    rho = composition.largest_rho(3.0, 1e-6)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) >= 3.0 * (1 - 1e-9)


# --- k records of a person


@pytest.mark.parametrize("records", [1, 2, 5, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (0.0, 1e-4)])
def test_a_chain_of_k_records_reaches_the_bound_and_does_not_pass_it(
    epsilon: float, delta: float, records: int
) -> None:
    """Data sets in a row, each as far from the next as (epsilon, delta) lets it."""
    probability = start = 1e-30
    for _ in range(records):
        probability = math.exp(epsilon) * probability + delta
    needed = probability - math.exp(records * epsilon) * start
    cost = composition.of_person(Cost(epsilon, delta, Adjacency.RECORD), records)
    if needed < 1:
        assert cost.epsilon == pytest.approx(records * epsilon)
        assert cost.delta == pytest.approx(needed, rel=1e-9)
        assert cost.adjacency is PERSON
    else:
        assert cost == UNPROTECTED


def test_what_protects_nothing_protects_no_person() -> None:
    assert composition.of_person(UNPROTECTED, 3) == UNPROTECTED
    assert composition.of_person(NOTHING, 3) == NOTHING
    assert composition.of_person(Cost(900.0, 1e-9, RECORD), 10) == UNPROTECTED
    assert composition.of_person(pure(1.0, RECORD), 0) == pure(1.0, RECORD)


@pytest.mark.parametrize("records", [0, -1, 1.5, True, composition.MAX_RECORDS + 1])
def test_numbers_that_cannot_be_are_refused(records: Any) -> None:
    with pytest.raises(ValueError, match="per_person must be from 1 to"):
        composition.check_per_person(records)
