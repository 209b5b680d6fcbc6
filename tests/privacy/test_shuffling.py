"""Shuffled batches against sums over all outcomes, and against mechanisms they must cover."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy

from tacit.privacy.shuffling import MOST, shuffled_delta, shuffled_epsilon


def enumerated_delta(odds: Fraction, reports: int, ratio: Fraction) -> float:
    """The divergence of the pair in rational numbers, outcome by outcome.

    ``odds`` is exp(-epsilon0), ``ratio`` is exp(epsilon).
    """
    likely = 1 / (1 + odds)
    one: dict[tuple[int, int], Fraction] = {}
    other: dict[tuple[int, int], Fraction] = {}
    for clones in range(reports):
        weight = (
            math.comb(reports - 1, clones) * odds**clones * (1 - odds) ** (reports - 1 - clones)
        )
        for first in range(clones + 1):
            chance = weight * Fraction(math.comb(clones, first), 2**clones)
            for drawn, part in ((1, likely), (0, 1 - likely)):
                seen = (first + drawn, clones - first + 1 - drawn)
                swapped = (first + 1 - drawn, clones - first + drawn)
                one[seen] = one.get(seen, Fraction(0)) + chance * part
                other[swapped] = other.get(swapped, Fraction(0)) + chance * part
    return float(sum(max(one[key] - ratio * other[key], Fraction(0)) for key in one))


@pytest.mark.parametrize("odds", [Fraction(3, 4), Fraction(1, 3), Fraction(1, 20)])
@pytest.mark.parametrize("reports", [1, 2, 7, 20])
@pytest.mark.parametrize("part", [Fraction(0), Fraction(1, 5), Fraction(9, 10)])
def test_delta_is_that_of_all_outcomes(odds: Fraction, reports: int, part: Fraction) -> None:
    ratio = 1 + part * (1 / odds - 1)
    expected = enumerated_delta(odds, reports, ratio)
    found = shuffled_delta(-math.log(odds), reports, math.log(ratio))
    assert expected <= found <= expected * (1 + 1e-7) + 1e-8


def test_the_tails_of_a_large_batch_are_those_of_exact_sums() -> None:
    """400 reports by integers: every number of clones that has a chance, every outcome."""
    local, reports, epsilon = math.log(2), 401, math.log(1.125)
    likely, total = Fraction(2, 3), 0.0
    for clones in range(110, 291):
        weight = scipy.stats.binom.pmf(clones, reports - 1, 0.5)
        # from this outcome on, the one is more than exp(epsilon) times likelier
        share = Fraction(9, 8) * likely - (1 - likely), likely - Fraction(9, 8) * (1 - likely)
        first = math.ceil((clones + 1) * share[0] / sum(share))
        ways = [math.comb(clones, number) for number in range(first - 1, clones + 1)]
        tails = Fraction(sum(ways), 2**clones), Fraction(sum(ways[1:]), 2**clones)
        total += weight * float(share[1] * tails[0] - share[0] * tails[1])
    found = shuffled_delta(local, reports, epsilon)
    assert total * (1 - 1e-10) <= found <= total * (1 + 1e-5)


def response_deltas(local: float, reports: int, epsilon: float) -> list[float]:
    """The exact deltas of shuffled randomised response, of which the number of ones is seen."""
    flip = 1 / (1 + math.exp(local))
    others = scipy.stats.binom.pmf(np.arange(-1, reports + 1), reports - 1, flip)
    with_one = (1 - flip) * others[:-1] + flip * others[1:]
    with_zero = flip * others[:-1] + (1 - flip) * others[1:]
    pairs = ((with_one, with_zero), (with_zero, with_one))
    return [float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum()) for one, other in pairs]


@pytest.mark.parametrize("local", [0.5, 2.0])
@pytest.mark.parametrize("reports", [2, 10, 1000])
def test_shuffled_bits_cost_no_more(local: float, reports: int) -> None:
    for epsilon in (0.0, 0.05, 0.2, 0.4):
        assert max(response_deltas(local, reports, epsilon)) <= shuffled_delta(
            local, reports, epsilon
        )


def test_the_bound_is_not_far_above_shuffled_bits() -> None:
    """The clones of a bit are fewer than its equal reports: within a factor of two of epsilon."""
    epsilon = shuffled_epsilon(1.0, 10_000, 1e-6)
    assert max(response_deltas(1.0, 10_000, epsilon / 2)) > 1e-6
    assert shuffled_delta(1.0, 10_000, epsilon) <= 1e-6


def test_more_reports_never_cost_more() -> None:
    found = [shuffled_epsilon(2.0, reports, 1e-6) for reports in (1, 10, 100, 1000, 10**4, 10**5)]
    assert found == sorted(found, reverse=True)
    assert found[0] <= 2.0
    assert shuffled_delta(2.0, MOST + 5, 0.01) == shuffled_delta(2.0, MOST, 0.01)


def test_another_order_of_the_same_distance_costs_more() -> None:
    """A distance of the order from a uniform one is a part of delta, for either record."""
    near = shuffled_epsilon(1.0, 10_000, 1e-6, distance=1e-7)
    assert shuffled_epsilon(1.0, 10_000, 1e-6) < near
    spent = shuffled_delta(1.0, 10_000, near) + (1 + math.exp(near)) * 1e-7
    assert spent == pytest.approx(1e-6, rel=1e-4)
    assert shuffled_epsilon(1.0, 10_000, 1e-6, distance=1e-6) == 1.0


@pytest.mark.parametrize("local", [0.001, 700.0])
def test_the_ends_of_the_range_of_epsilon_are_finite(local: float) -> None:
    for reports in (1, 5, 10_000):
        assert 0 <= shuffled_epsilon(local, reports, 1e-9) <= local


@pytest.mark.parametrize(
    ("function", "arguments", "error"),
    [
        (shuffled_delta, (0.0, 10, 0.1), "epsilon must be positive and finite, got 0.0"),
        (shuffled_delta, (1.0, 0, 0.1), "reports must be at least 1, got 0"),
        (shuffled_delta, (1.0, 10, -0.1), "epsilon must be at least 0 and finite, got -0.1"),
        (shuffled_delta, (1.0, 10, math.nan), "epsilon must be at least 0 and finite, got nan"),
        (shuffled_epsilon, (1.0, 10, 0.0), "delta must be between 0 and 1, both excluded, got 0"),
    ],
)
def test_bad_parameters_are_refused(function: Any, arguments: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        function(*arguments)
