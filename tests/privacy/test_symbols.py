"""Randomised response: on labels, on symbols, on questions about one value."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit.protocol as tp
from tacit.privacy.mechanisms.response import (
    flip_probability,
    response_variance,
)
from tacit.privacy.symbols import SymbolResponse, answer_epsilon, flip_labels
from tests.privacy.reference import Scripted, drawn_probability

SETTINGS = [
    (2, 1e-3),
    (2, 1.0),
    (3, 0.7),
    (36, 1.0),
    (36, 5.0),
    (256, 0.1),
    (4096, 1e-3),
    (10, 50.0),
]


@settings(max_examples=100)
@given(symbols=st.integers(2, 4096), epsilon=st.floats(1e-3, 700))
def test_both_probabilities_to_full_precision(symbols: int, epsilon: float) -> None:
    response = SymbolResponse(symbols, epsilon)
    with localcontext(prec=60):
        exact = symbols / (symbols + Decimal(epsilon).exp() - 1)
        assert abs(Decimal(response.replace_probability) / exact - 1) < Decimal("1e-14")
        assert abs(Decimal(response.keep_probability) / (1 - exact) - 1) < Decimal("1e-14")


@pytest.mark.parametrize("epsilon", [745.0, 800.0, 1e300])
def test_a_flip_and_a_replacement_are_never_impossible(epsilon: float) -> None:
    assert flip_probability(epsilon) > 0
    assert SymbolResponse(5, epsilon).replace_probability > 0


@pytest.mark.parametrize(("symbols", "epsilon"), SETTINGS)
def test_the_ratio_of_drawn_probabilities_is_exp_epsilon_and_no_more(
    symbols: int, epsilon: float
) -> None:
    """Every report of every symbol, with the probabilities that system noise really draws.

    A report has one of two probabilities: as the own symbol, or as another. Their ratio must not
    pass ``exp(epsilon)``, and reach it to one part in 100,000. Uniform symbols are exact.
    """
    replaced = drawn_probability(SymbolResponse(symbols, epsilon).replaced_chance)
    other = replaced / symbols
    own = 1 - replaced + other
    with localcontext(prec=60):
        ratio = Decimal((own / other).numerator) / Decimal((own / other).denominator)
        allowed = Decimal(epsilon).exp()
        assert ratio <= allowed
        if epsilon < 40:
            assert (ratio - 1) / (allowed - 1) > 1 - Decimal("1e-5")


@pytest.mark.parametrize(
    ("symbols", "reports"), [([1, 1, 2, 2], [3, 1, 0, 2]), ([0, 0, 3, 3], [3, 0, 0, 3])]
)
def test_a_report_is_the_own_symbol_or_one_that_does_not_depend_on_it(
    symbols: list[int], reports: list[int]
) -> None:
    """Replaced with the stated chance, by each symbol equally often."""
    source, response = Scripted([[3, 3, 0, 0]], [True, False] * 2), SymbolResponse(4, 1.0)
    assert response.answers(np.array(symbols), source).tolist() == reports
    replaced = response.replaced_chance
    assert source.chance == pytest.approx((replaced * (1 - replaced)) ** 2 / 4**4, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_debiased_counts_and_their_variance_are_unbiased(epsilon: float) -> None:
    """Exact expectations over all 81 outcomes of four records."""
    response = SymbolResponse(3, epsilon)
    chances = response.replace_probability / 3 + response.keep_probability * np.eye(3)
    outcomes = np.array(list(product(range(3), repeat=4)))
    probability = chances[[0, 0, 1, 2], outcomes].prod(axis=1)
    reported = (outcomes[..., np.newaxis] == np.arange(3)).sum(axis=1)
    debiased_counts = response.debiased(reported)
    np.testing.assert_allclose(probability @ debiased_counts, [2, 1, 1], atol=1e-10)
    for weights in np.array([[1.0, 0, 0], [0.3, -1, 2], [1, 1, 1]]):
        exact = (
            probability @ (debiased_counts @ weights) ** 2 - (np.array([2, 1, 1]) @ weights) ** 2
        )
        own, shared = response.covariance(reported)
        plain = np.sum(own * weights**2, axis=-1) - 2 * (shared @ weights) * weights.sum()
        assert probability @ plain == pytest.approx(exact, abs=1e-9)
        np.testing.assert_allclose(
            response.variance(reported, weights), np.maximum(plain, 0), atol=1e-12
        )


def test_one_symbol_is_refused() -> None:
    with pytest.raises(ValueError, match="symbols must be at least 2, got 1"):
        SymbolResponse(1, 1.0)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5, 1.0, 4.0, 50.0, 700.0])
def test_flips_and_their_variance_to_full_precision(epsilon: float) -> None:
    """The variance of a debiased bit is ``rho (1 - rho) / (1 - 2 rho)^2``."""
    with localcontext(prec=700):
        flip = 1 / (1 + Decimal(epsilon).exp())
        variance = flip * (1 - flip) / (1 - 2 * flip) ** 2
        assert abs(Decimal(flip_probability(epsilon)) / flip - 1) < Decimal("1e-15")
        assert abs(Decimal(response_variance(epsilon)) / variance - 1) < Decimal("2e-15")


def test_variance_of_no_budget_is_unbounded() -> None:
    assert response_variance(1e-200) == np.inf


@pytest.mark.parametrize("shape", [(0,), (6,), (3, 2)])
@pytest.mark.parametrize("replicates", [None, 4])
def test_labels_are_those_of_the_drawn_flips(shape: tuple[int, ...], replicates: int) -> None:
    labels = np.arange(math.prod(shape), dtype=np.int8).reshape(shape) % 2
    flips = tp.SimulatedNoise(23, replicates).draw(tp.RandomisedResponse(1.0), shape)
    reported = flip_labels(labels, 1.0, tp.SimulatedNoise(23, replicates))
    np.testing.assert_array_equal(reported, np.where(flips, 1 - labels, labels))
    assert reported.dtype == np.int8
    np.testing.assert_array_equal(flip_labels(labels, 1.0, tp.NoNoise()), labels)


def test_without_delta_epsilon_is_divided() -> None:
    assert answer_epsilon(2.0, 0.0, 8) == 0.25


@pytest.mark.parametrize(
    ("epsilon", "delta", "answers", "message"),
    [
        (1.0, 1.0, 2, "delta must be at least 0 and below 1, got 1.0"),
        (1.0, -0.1, 2, "delta must be at least 0 and below 1, got -0.1"),
        (1.0, 0.1, 0, "answers must be at least 1, got 0"),
    ],
)
def test_questions_outside_their_range_are_refused(
    epsilon: float, delta: float, answers: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        answer_epsilon(epsilon, delta, answers)
