"""Costs, how they compose, and the calibration of Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import Adjacency, Cost, compose
from tacit.privacy import bounded, symbols, unary
from tacit.privacy.cost import NOTHING, UNPROTECTED, analytic_gaussian_sigma, check_epsilon
from tacit.privacy.mechanisms import response
from tests.privacy.reference import composed_delta, gaussian_delta, pure

LABEL = Adjacency.LABEL
Method = Literal["tightest", "basic", "zcdp", "pld"]
budgets = st.floats(0.001, 5.0)
deltas = st.floats(0.0, 0.1)
costs = st.builds(Cost, budgets, deltas, st.just(LABEL))


TAKING_EPSILON: tuple[Callable[[Any], object], ...] = (
    check_epsilon,
    response.flip_probability,
    response.response_variance,
    response.RandomisedResponse,
    unary.unary_variance,
    lambda epsilon: analytic_gaussian_sigma(epsilon, 1e-6),
    lambda epsilon: bounded.SlidingWindow(epsilon, 3, 1),
    lambda epsilon: symbols.SymbolResponse(3, epsilon),
    lambda epsilon: symbols.answer_epsilon(epsilon, 0.0, 2),
)


# --- a single guarantee, and basic sums


@pytest.mark.parametrize(
    ("given_cost", "said"),
    [
        *(((bad,), f"epsilon must be at least 0, got {bad}") for bad in (-0.1, math.nan)),
        *(((1.0, d), f"at least 0 and below 1, got {d}") for d in (-1e-9, 1.0, math.nan)),
        *(((1.0, 0.0, None, rho), "rho must be at least 0") for rho in (-1e-9, math.nan)),
    ],
)
def test_what_is_no_guarantee_is_refused(given_cost: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Cost(*given_cost)
    if len(given_cost) == 2:
        with pytest.raises(ValueError, match=said):
            compose([pure(1.0)], given_cost[1])


@settings(max_examples=50)
@given(first=costs, second=costs, third=costs)
def test_sums_add_both_parts_in_any_order(first: Cost, second: Cost, third: Cost) -> None:
    total = first + second
    assert (total.epsilon, total.delta) == (
        first.epsilon + second.epsilon,
        first.delta + second.delta,
    )
    assert total == second + first == total + NOTHING == NOTHING + total
    left, right = (first + second) + third, first + (second + third)
    assert left.epsilon == pytest.approx(right.epsilon)
    assert left.delta == pytest.approx(right.delta)
    basic = compose([first, second, third], method="basic")
    assert (basic.epsilon, basic.delta) == pytest.approx((left.epsilon, left.delta))
    assert basic.adjacency is LABEL


def test_deltas_that_reach_one_protect_nothing() -> None:
    halves = [Cost(1.0, 0.5, LABEL)] * 2
    assert halves[0] + halves[1] == compose(halves, method="basic") == UNPROTECTED


def test_rho_adds_only_where_both_have_one() -> None:
    gaussian = Cost(1.0, 1e-6, LABEL, 0.1)
    assert (gaussian + gaussian).rho == pytest.approx(0.2)
    assert (gaussian + pure(1.0)).rho is None


def test_mixed_adjacencies_are_refused() -> None:
    mixed = [pure(1.0), Cost(1.0, adjacency=Adjacency.RECORD)]
    with pytest.raises(ValueError, match="different adjacencies do not add up: label and rec"):
        mixed[0] + mixed[1]
    for method in ("tightest", "basic", "zcdp", "pld"):
        with pytest.raises(ValueError, match="different adjacencies do not add up"):
            compose(mixed, method=method)


def test_what_is_shown_stays_shown() -> None:
    assert (UNPROTECTED + pure(1.0)).epsilon == math.inf
    for method in ("tightest", "basic", "zcdp", "pld"):
        assert compose([UNPROTECTED, pure(1.0)], method=method).epsilon == math.inf


# --- composition against the exact results for pure and Gaussian releases


@pytest.mark.parametrize("method", ["pld", "zcdp", "tightest"])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize(
    ("times", "each"), [(1, 1.0), (10, 0.5), (30, 0.3333), (100, 0.1), (1000, 0.01), (20, 3.0)]
)
def test_never_below_the_exact_composition(
    times: int, each: float, delta: float, method: Method
) -> None:
    """The distribution of the privacy loss comes within one percent of it."""
    spent = compose([pure(each)] * times, delta, method)
    assert spent.delta <= delta
    assert composed_delta(times, each, spent.epsilon) <= spent.delta * (1 + 1e-9) + 1e-17
    if method == "pld" and delta > 1e-12 and 1 < times < 1000:
        assert composed_delta(times, each, spent.epsilon / 1.01) >= delta


@pytest.mark.parametrize("method", ["pld", "tightest"])
def test_a_delta_of_the_releases_counts(method: Method) -> None:
    """``1 - (1-delta)^2 (1-delta')``, with delta' that of the pure parts (the same paper)."""
    failing = [Cost(1.0, 4e-7, LABEL)] * 2
    spent = compose(failing, 1e-6, method)
    pure_part = composed_delta(2, 1.0, spent.epsilon)
    total = -math.expm1(2 * math.log1p(-4e-7) + math.log1p(-pure_part))
    assert 0.999e-6 < total <= 1e-6 * (1 + 1e-9)
    assert compose(failing, 7e-7, "pld").epsilon == math.inf


def test_zcdp_needs_every_rho() -> None:
    with pytest.raises(ValueError, match="pure or state their rho"):
        compose([Cost(1.0, 1e-6, LABEL), pure(1.0)], method="zcdp")
    assert compose([pure(0.3)] * 4, method="zcdp").rho == pytest.approx(4 * 0.3**2 / 2)


def test_a_pure_guarantee_needs_a_delta_to_become_smaller() -> None:
    assert compose((pure(1.0) for _ in range(3)), delta=0.0) == Cost(3.0, 0.0, LABEL)


def test_nothing_composes_to_nothing() -> None:
    assert compose([]) == compose([NOTHING, NOTHING]) == NOTHING
    assert compose([NOTHING, pure(1.0)], method="basic") == pure(1.0)


# --- the analytic calibration


@settings(max_examples=150)
@given(epsilon=st.floats(0.01, 20.0), log_delta=st.floats(-12.0, -0.5))
def test_sigma_is_private_and_tight(epsilon: float, log_delta: float) -> None:
    delta = 10.0**log_delta
    sigma = analytic_gaussian_sigma(epsilon, delta)
    assert gaussian_delta(epsilon, sigma) <= delta * (1 + 1e-11)
    assert gaussian_delta(epsilon, sigma * (1 - 1e-6)) > delta


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
def test_delta_is_strictly_between_zero_and_one(delta: float) -> None:
    with pytest.raises(ValueError, match=f"both excluded, got {delta}"):
        analytic_gaussian_sigma(1.0, delta)


@pytest.mark.parametrize(
    ("epsilon", "got"),
    [
        *((bad, str(bad)) for bad in (0.0, -1.0, math.nan, math.inf, True)),
        ("one", "'one'"),
        (10**400, "a larger integer"),
        (10**5000, "a larger"),
    ],
    ids=range(8),
)
def test_epsilon_is_a_positive_finite_number(epsilon: Any, got: str) -> None:
    for refuse in TAKING_EPSILON:
        with pytest.raises(ValueError, match=f"epsilon must be positive and finite, got {got}"):
            refuse(epsilon)
