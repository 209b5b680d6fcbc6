"""What several flipped answers cost together."""

from __future__ import annotations

import itertools
import math

import pytest

from tacit.privacy.cost import Adjacency, Cost, compose
from tacit.privacy.symbols import answer_epsilon, composed_delta

SETTINGS = [(0.5, 1e-3, 6), (1.0, 1e-6, 8), (2.0, 1e-2, 2), (5.0, 1e-6, 12), (1.0, 0.3, 1)]


@pytest.mark.parametrize(("each", "answers", "epsilon"), [(0.4, 3, 0.7), (2.0, 5, 3.0), (1, 1, 2)])
def test_composed_delta_is_the_divergence_of_all_outcomes(
    each: float, answers: int, epsilon: float
) -> None:
    keep = math.exp(each) / (1 + math.exp(each))
    expected = 0.0
    for outcome in itertools.product((0, 1), repeat=answers):
        first = math.prod(1 - keep if bit else keep for bit in outcome)
        second = math.prod(keep if bit else 1 - keep for bit in outcome)
        expected += max(0.0, first - math.exp(epsilon) * second)
    assert composed_delta(each, answers, epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("epsilon", "delta", "answers"), SETTINGS)
def test_an_answer_gets_as_much_as_delta_allows(epsilon: float, delta: float, answers: int) -> None:
    each = answer_epsilon(epsilon, delta, answers)
    assert composed_delta(each, answers, epsilon) <= delta
    assert composed_delta(each * (1 + 1e-9), answers, epsilon) > delta
    assert each > epsilon / answers


@pytest.mark.parametrize(("epsilon", "delta", "answers"), SETTINGS)
def test_privacy_loss_distributions_agree(epsilon: float, delta: float, answers: int) -> None:
    """Those of dp-accounting are discretised upwards, to steps of 1e-4."""
    costs = [Cost(answer_epsilon(epsilon, delta, answers), adjacency=Adjacency.SCORE)] * answers
    cost = compose(costs, delta, "pld").epsilon
    assert epsilon * (1 - 1e-6) <= cost <= epsilon + 2e-3


def test_without_delta_epsilon_is_divided() -> None:
    assert answer_epsilon(2.0, 0.0, 8) == 0.25


@pytest.mark.parametrize(
    ("epsilon", "delta", "answers", "message"),
    [
        (0.0, 0.0, 2, "epsilon must be positive and finite, got 0.0"),
        (1.0, 1.0, 2, "delta must be at least 0 and below 1, got 1.0"),
        (1.0, -0.1, 2, "delta must be at least 0 and below 1, got -0.1"),
        (1.0, 0.1, 0, "answers must be at least 1, got 0"),
    ],
)
def test_settings_outside_their_range_are_refused(
    epsilon: float, delta: float, answers: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        answer_epsilon(epsilon, delta, answers)
