"""Randomised response: exact probabilities, exact privacy, and the variance of debiased labels."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.privacy.mechanisms.response import flip_probability, response_variance
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tacit.privacy.symbols import flip_labels

EPSILONS = (1e-6, 1e-3, 0.5, 1.0, 4.0, 50.0, 700.0)


def relative_error(value: float, exact: Decimal) -> Decimal:
    return abs(Decimal(value) / exact - 1)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_flip_probability_to_full_precision(epsilon: float) -> None:
    with localcontext(prec=60):
        exact = 1 / (1 + Decimal(epsilon).exp())
        assert relative_error(flip_probability(epsilon), exact) < Decimal("1e-15")


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_response_variance_to_full_precision(epsilon: float) -> None:
    with localcontext(prec=60):
        ratio = Decimal(epsilon).exp()
        exact = ratio / (ratio - 1) ** 2
        assert relative_error(response_variance(epsilon), exact) < Decimal("2e-15")


@settings(max_examples=100, deadline=None)
@given(epsilon=st.floats(1e-6, 700))
def test_likelihood_ratio_is_exp_epsilon(epsilon: float) -> None:
    """The ratio of kept to flipped; an error of 1e-15 in the probability is all that is allowed."""
    flip = Decimal(flip_probability(epsilon))
    with localcontext(prec=60):
        ratio = (1 - flip) / flip
        assert abs(ratio / Decimal(epsilon).exp() - 1) < Decimal("3e-15")


@settings(max_examples=100, deadline=None)
@given(epsilon=st.floats(1e-3, 30))
def test_variance_in_terms_of_the_flip_probability(epsilon: float) -> None:
    flip = flip_probability(epsilon)
    assert response_variance(epsilon) == pytest.approx(flip * (1 - flip) / (1 - 2 * flip) ** 2)


@pytest.mark.parametrize("epsilon", [745.0, 800.0, 1e300])
def test_flip_probability_is_never_zero(epsilon: float) -> None:
    assert flip_probability(epsilon) > 0


def test_variance_of_no_budget_is_unbounded() -> None:
    assert response_variance(1e-200) == np.inf


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_epsilon_must_be_positive_and_finite(epsilon: float) -> None:
    for function in (flip_probability, response_variance):
        with pytest.raises(ValueError, match=f"epsilon must be positive and finite, got {epsilon}"):
            function(epsilon)
    with pytest.raises(ValueError, match="epsilon must be positive and finite"):
        flip_labels(np.zeros(3, dtype=np.int8), epsilon, NoNoise())


@pytest.mark.parametrize("source", [SimulatedNoise(21), SystemNoise()])
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_labels_flip_as_often_as_they_should(
    source: NoiseSource, label: int, epsilon: float
) -> None:
    """Exact binomial test, which rejects frequencies 30 % off; false alarm: 1e-8."""
    labels = np.full(500_000, label, dtype=np.int8)
    flipped = int(np.sum(flip_labels(labels, epsilon, source) != labels))
    probability = flip_probability(epsilon)
    assert stats.binomtest(flipped, labels.size, probability).pvalue > 1e-8
    for factor in (1.3, 1 / 1.3):
        assert stats.binomtest(flipped, labels.size, probability * factor).pvalue < 1e-8


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_variance_of_debiased_labels(epsilon: float) -> None:
    """Mean squared error of 210,000 debiased labels; false alarm: 1e-6 over the seed."""
    labels = np.tile(np.array([0, 1, 1], dtype=np.int8), 70_000)
    flip = flip_probability(epsilon)
    reported = flip_labels(labels, epsilon, SimulatedNoise(22))
    errors = (reported - flip) / (1 - 2 * flip) - labels

    def score(values: NDArray[Any], mean: float) -> float:
        return abs(float(np.mean(values)) - mean) / float(np.std(values) / np.sqrt(values.size))

    level = float(stats.norm.isf(5e-7))
    assert score(errors, 0.0) < level
    assert score(errors**2, response_variance(epsilon)) < level
    for factor in (1.3, 1 / 1.3):
        assert score(errors**2, response_variance(epsilon) * factor) > level


@pytest.mark.parametrize("shape", [(0,), (1,), (6,), (2, 3), (3, 1)])
def test_flipped_labels_keep_their_shape(shape: tuple[int, ...]) -> None:
    labels = np.ones(shape, dtype=np.int8)
    for source, expected in (
        (SimulatedNoise(23), shape),
        (SimulatedNoise(23, replicates=4), (4, *shape)),
        (SystemNoise(), shape),
    ):
        reported = flip_labels(labels, 1.0, source)
        assert reported.shape == expected
        assert reported.dtype == np.int8
        assert np.all((reported == 0) | (reported == 1))


def test_without_noise_labels_stay() -> None:
    labels = np.array([0, 1, 1, 0], dtype=np.int8)
    assert np.array_equal(flip_labels(labels, 1.0, NoNoise()), labels)
