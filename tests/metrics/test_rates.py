"""Rates of cells against scikit-learn on records, and their gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as sklearn

from tacit import binormal_scores
from tacit.metrics.functional import (
    OTHER_NAMES,
    RATES,
    Functional,
    Rate,
    average_precision,
    false_positive_rate,
    positive_predictive_value,
    rate_name,
    reaching,
    sensitivity,
    specificity,
)

Floats = NDArray[np.float64]

EDGES = np.linspace(0.0, 1.0, 9)
REFERENCES: dict[str, Callable[[Any, Any], float]] = {
    "positive_predictive_value": sklearn.precision_score,
    "sensitivity": sklearn.recall_score,
    "specificity": lambda labels, called: sklearn.recall_score(labels, called, pos_label=0),
    "accuracy": sklearn.accuracy_score,
    "f1": sklearn.f1_score,
}
THRESHOLD_RATES = RATES | {"false_positive_rate": Rate("false_positive_rate", false_positive_rate)}

few = settings(max_examples=25, deadline=None)
COUNTS = st.lists(st.integers(1, 40), min_size=8, max_size=8)
THRESHOLDS = st.floats(0.0, 1.0)


def records(counts: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Scores at the lower border of every cell, with their labels."""
    scores = [np.repeat(EDGES[:-1], own.astype(np.int64)) for own in counts]
    labels = np.repeat([1, 0], [scores[0].size, scores[1].size])
    return np.concatenate(scores), labels


@few
@given(positive_counts=COUNTS, negative_counts=COUNTS, border=st.integers(0, 7))
def test_rates_agree_with_scikit_learn(
    positive_counts: list[int], negative_counts: list[int], border: int
) -> None:
    counts = np.array([positive_counts, negative_counts], dtype=np.float64)
    scores, labels = records(counts)
    above = reaching(EDGES, EDGES[border : border + 1])
    for name, reference in REFERENCES.items():
        expected = reference(labels, scores >= EDGES[border])
        assert RATES[name](counts, above).value == pytest.approx([expected], rel=1e-12)
    fell = sklearn.recall_score(labels, scores >= EDGES[border], pos_label=0)
    assert false_positive_rate(counts, above).value == pytest.approx([1 - fell])


def by_differences(rate: Callable[[Floats], Floats], counts: Floats) -> Floats:
    step, computed = 1e-4, []
    for place in np.ndindex(counts.shape):
        more, less = counts.copy(), counts.copy()
        more[place] += step
        less[place] -= step
        computed.append((rate(more) - rate(less)) / (2 * step))
    return np.stack(computed, axis=-1).reshape(*computed[0].shape, *counts.shape)


@few
@given(
    positive_counts=COUNTS,
    negative_counts=COUNTS,
    thresholds=st.lists(THRESHOLDS, min_size=1, max_size=3),
)
def test_gradients_are_derivatives(
    positive_counts: list[int], negative_counts: list[int], thresholds: list[float]
) -> None:
    counts = np.array([positive_counts, negative_counts], dtype=np.float64)
    above = reaching(EDGES, np.array(thresholds))
    for name, rate in THRESHOLD_RATES.items():
        computed_rate = rate(counts, above)
        known = np.isfinite(computed_rate.value)
        expected = by_differences(lambda c, rate=rate: rate(c, above).value, counts)  # type: ignore[misc]
        assert computed_rate.gradient.shape == (len(thresholds), 2, 8), name
        np.testing.assert_allclose(
            computed_rate.gradient[known], expected[known], rtol=1e-4, atol=1e-7
        )


@few
@given(positive_counts=COUNTS, negative_counts=COUNTS)
def test_the_gradient_of_average_precision_is_its_derivative(
    positive_counts: list[int], negative_counts: list[int]
) -> None:
    counts = np.array([positive_counts, negative_counts], dtype=np.float64)
    computed_precision = average_precision(counts)
    expected = by_differences(lambda c: average_precision(c).value, counts)
    np.testing.assert_allclose(computed_precision.gradient, expected, rtol=1e-5, atol=1e-8)


@few
@given(positive_counts=COUNTS, negative_counts=COUNTS, threshold=THRESHOLDS)
def test_rates_do_not_change_when_all_counts_grow_alike(
    positive_counts: list[int], negative_counts: list[int], threshold: float
) -> None:
    counts = np.array([positive_counts, negative_counts], dtype=np.float64)
    above = reaching(EDGES, np.array([threshold]))
    rates = [*(rate(counts, above) for rate in THRESHOLD_RATES.values())]
    rates += [average_precision(counts), positive_predictive_value(counts, np.eye(8))]
    for rate in rates:
        known = np.isfinite(rate.value)
        moved = np.sum(counts * rate.gradient, axis=(-2, -1))
        np.testing.assert_allclose(moved[known], 0.0, atol=1e-12)
    again = positive_predictive_value(counts * 3, above)
    np.testing.assert_allclose(again.value, positive_predictive_value(counts, above).value)
    np.testing.assert_allclose(
        again.gradient, positive_predictive_value(counts, above).gradient / 3
    )


def test_a_threshold_takes_its_part_of_the_cell_that_it_cuts() -> None:
    edges = np.array([0.0, 0.2, 1.0])
    fractions = reaching(edges, np.array([0.0, 0.05, 0.2, 0.6, 1.0]))
    expected = np.array([[1, 1], [0.75, 1], [0, 1], [0, 0.5], [0, 0]])
    np.testing.assert_allclose(fractions, expected)


def test_rates_of_nothing_are_unknown() -> None:
    counts = np.array([[0.0, 3.0], [0.0, 0.0]])
    above = np.array([[0.0, 1.0], [0.0, 0.0]])
    assert np.isnan(false_positive_rate(counts, above).value).all()
    assert np.isnan(specificity(counts, above).value).all()
    assert sensitivity(counts, above).value.tolist() == [1.0, 0.0]
    np.testing.assert_array_equal(positive_predictive_value(counts, above).value, [1.0, np.nan])
    np.testing.assert_array_equal(positive_predictive_value(counts, np.eye(2)).value, [np.nan, 1.0])


def test_average_precision_of_nothing_is_unknown() -> None:
    computed_precision = average_precision(np.zeros((2, 4)))
    assert np.isnan(computed_precision.value)
    assert np.isnan(computed_precision.gradient).all()


@pytest.mark.parametrize(
    ("separation", "times", "error"), [(0.6, 1, 1e-3), (0.95, 1, 1e-3), (0.8, 100, 5e-5)]
)
def test_average_precision_is_that_of_scikit_learn(
    separation: float, times: int, error: float
) -> None:
    """Scores without ties in 4,096 cells: 10,000 records, and a million.

    A positive counts itself among those that reach its score, in a cell half of them: up to 7e-4
    with 10,000 records, and a hundredth of that with a million, where cells hide up to 3e-5.
    """
    scores, labels = binormal_scores(3000 * times, 7000 * times, separation, seed=1)
    edges = np.linspace(0, 1, 4097)
    counts = np.stack([np.histogram(scores[labels == own], edges)[0] for own in (1, 0)])
    exact = sklearn.average_precision_score(labels, scores)
    computed_precision = float(average_precision(counts.astype(np.float64)).value[0])
    assert computed_precision == pytest.approx(exact, abs=error)


def naive_average_precision(counts: Floats) -> float:
    total = 0.0
    for cell in range(counts.shape[1]):
        won = counts[0, cell + 1 :].sum() + counts[0, cell] / 2
        lost = counts[1, cell + 1 :].sum() + counts[1, cell] / 2
        if won + lost > 0:
            total += counts[0, cell] * won / (won + lost)
    return float(total / counts[0].sum())


@few
@given(
    positive_counts=st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(any),
    negative_counts=st.lists(st.integers(0, 5), min_size=6, max_size=6),
)
def test_average_precision_is_the_sum_that_it_says(
    positive_counts: list[int], negative_counts: list[int]
) -> None:
    counts = np.array([positive_counts, negative_counts], dtype=np.float64)
    assert float(average_precision(counts).value[0]) == pytest.approx(
        naive_average_precision(counts)
    )


def test_sampling_errors_are_those_of_drawn_samples() -> None:
    """1,000 samples of 3,000 records: their standard deviation is within 11 % of the mean error.

    That is five standard errors of 2.2 %. Errors 30 % off are refused, at eight beyond the bound.
    """
    rng = np.random.default_rng(3)
    chances = np.concatenate([np.linspace(1, 5, 8), np.linspace(9, 1, 8)])
    drawn = rng.multinomial(3000, chances / chances.sum(), 1000).reshape(1000, 2, 8)
    above = reaching(EDGES, np.array([0.55]))
    rates: list[Callable[[Floats], Functional]] = [
        *(lambda c, rate=rate: rate(c, above) for rate in THRESHOLD_RATES.values()),
        lambda c: positive_predictive_value(c, np.eye(8)[2:3]),
        average_precision,
    ]
    for rate in rates:
        computed_rates = [rate(counts.astype(np.float64)) for counts in drawn[:300]]
        errors = [
            float(np.squeeze(r.sampling_error(counts)))
            for r, counts in zip(computed_rates, drawn, strict=False)
        ]
        deviation = np.std([float(np.squeeze(rate(c.astype(np.float64)).value)) for c in drawn])
        assert deviation == pytest.approx(np.mean(errors), rel=0.11)


def test_noise_in_empty_cells_is_not_taken_for_records() -> None:
    """Errors of 200 noisy tables of 1,024 cells with 500 records: the exact one within 10 %."""
    rng = np.random.default_rng(0)
    counts = np.zeros((2, 1024))
    counts[0, 300:1000:7], counts[1, 100:900:2] = 1, 1
    above = reaching(np.linspace(0, 1, 1025), np.array([0.5]))
    exact = float(sensitivity(counts, above).sampling_error(counts)[0])
    errors = []
    for _ in range(200):
        noisy = counts + rng.normal(0, 0.5, counts.shape)
        errors.append(float(sensitivity(noisy, above).sampling_error(noisy)[0]))
    assert np.mean(errors) == pytest.approx(exact, rel=0.1)


def test_both_fields_names_are_known() -> None:
    assert {rate_name(name) for name in OTHER_NAMES} <= RATES.keys()
    assert rate_name("Positive predictive value") == rate_name("precision")
    with pytest.raises(KeyError, match=r"did you mean 'accuracy'.*sensitivity, .*ppv"):
        rate_name("acuracy")
