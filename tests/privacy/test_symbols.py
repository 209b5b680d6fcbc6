"""Randomised response: on labels, on symbols, on questions about one value."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.privacy import exact
from tacit.privacy.cost import Adjacency, Cost, compose
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.response import Bits, flip_probability, response_variance
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tacit.privacy.symbols import SymbolResponse, answer_epsilon, composed_delta, flip_labels
from tests.privacy.reference import SEEDED_LEVEL, UNSEEDED_LEVEL

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


@settings(max_examples=100, deadline=None)
@given(symbols=st.integers(2, 4096), epsilon=st.floats(1e-3, 700))
def test_both_probabilities_to_full_precision(symbols: int, epsilon: float) -> None:
    response = SymbolResponse(symbols, epsilon)
    with localcontext(prec=60):
        exact = symbols / (symbols + Decimal(epsilon).exp() - 1)
        assert abs(Decimal(response.replace_probability) / exact - 1) < Decimal("1e-14")
        assert abs(Decimal(response.keep_probability) / (1 - exact) - 1) < Decimal("1e-14")


@pytest.mark.parametrize("epsilon", [745.0, 1e300])
def test_a_replacement_is_never_impossible(epsilon: float) -> None:
    assert SymbolResponse(5, epsilon).replace_probability > 0


class Asked(NoNoise):
    """No noise, but a note of the probability that was asked for."""

    probability = 0.0

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> NDArray[Any]:
        if isinstance(distribution, Bits):
            self.probability = distribution.probability
        return super().draw(distribution, shape)


def drawn_probability(asked: float, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """The exact probability of True, by bisection for the word at which the coin turns."""

    def turned(word: int) -> bool:
        monkeypatch.setattr(exact, "words", lambda size: np.full(size, word, dtype=np.uint64))
        return bool(SystemNoise().draw(Bits(asked), (1,))[0])

    first = turned(0)
    low, high = 0, 2**64
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if turned(middle) == first else (low, middle)
    share = Fraction(high, 2**64)
    return share if first else 1 - share


@pytest.mark.parametrize(("symbols", "epsilon"), SETTINGS)
def test_the_ratio_of_drawn_probabilities_is_exp_epsilon_and_no_more(
    symbols: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every report of every symbol, with the probabilities that system noise really draws.

    A report has one of two probabilities: as the own symbol, or as another. Their ratio must not
    pass ``exp(epsilon)``, and reach it to one part in 100,000. Uniform symbols are exact.
    """
    source = Asked()
    SymbolResponse(symbols, epsilon).answers(np.zeros(1, dtype=np.int64), source)
    replaced = drawn_probability(source.probability, monkeypatch)
    other = replaced / symbols
    own = 1 - replaced + other
    with localcontext(prec=60):
        ratio = Decimal((own / other).numerator) / Decimal((own / other).denominator)
        allowed = Decimal(epsilon).exp()
        assert ratio <= allowed
        if epsilon < 40:
            assert (ratio - 1) / (allowed - 1) > 1 - Decimal("1e-5")


def test_rounding_down_would_have_been_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bare probability, which the source rounds down above one half, passes exp(epsilon)."""
    passed = 0
    for symbols, epsilon in SETTINGS:
        replaced = drawn_probability(
            SymbolResponse(symbols, epsilon).replace_probability, monkeypatch
        )
        with localcontext(prec=60):
            exact = symbols / (symbols + Decimal(epsilon).exp() - 1)
            passed += Decimal(replaced.numerator) / Decimal(replaced.denominator) < exact
    assert passed


@pytest.mark.parametrize("source", [SimulatedNoise(31), SystemNoise()])
@pytest.mark.parametrize(("symbols", "epsilon"), [(2, 1.0), (5, 0.7), (5, 3.0), (36, 2.0)])
def test_reports_have_their_probabilities(
    source: NoiseSource, symbols: int, epsilon: float
) -> None:
    """Chi-square, and rejection of an epsilon 30 % off; false alarm 1e-4 seeded, 1e-6 unseeded."""
    level = SEEDED_LEVEL if isinstance(source, SimulatedNoise) else UNSEEDED_LEVEL
    own = np.full(200_000, 1)
    counts = np.bincount(SymbolResponse(symbols, epsilon).answers(own, source), minlength=symbols)

    def p_value(claimed: float) -> float:
        response = SymbolResponse(symbols, claimed)
        expected = np.full(symbols, response.replace_probability / symbols)
        expected[1] += response.keep_probability
        return float(stats.chisquare(counts, expected * own.size).pvalue)

    assert p_value(epsilon) > level
    assert p_value(epsilon * 1.3) < level
    assert p_value(epsilon / 1.3) < level


class Scripted(NoNoise):
    """Replacements and uniform symbols as given."""

    def __init__(self, replaced: NDArray[np.bool_], uniform: NDArray[np.int64]) -> None:
        super().__init__()
        self.replace_probability, self.uniform = replaced, uniform

    def draw(self, distribution: Distribution, shape: tuple[int, ...]) -> NDArray[Any]:
        return self.replace_probability if isinstance(distribution, Bits) else self.uniform


def test_a_report_is_the_own_symbol_or_one_that_does_not_depend_on_it() -> None:
    source = Scripted(np.array([True, False, True, False]), np.array([3, 3, 0, 0]))
    response = SymbolResponse(4, 1.0)
    assert response.answers(np.array([1, 1, 2, 2]), source).tolist() == [3, 1, 0, 2]
    assert response.answers(np.array([0, 0, 3, 3]), source).tolist() == [3, 0, 0, 3]


def report_probability(response: SymbolResponse, own: int, report: int) -> float:
    return response.replace_probability / response.symbols + response.keep_probability * (
        own == report
    )


def all_reports(response: SymbolResponse, records: list[int]) -> list[tuple[float, list[int]]]:
    """Every outcome with its probability, and the counts of its reports."""
    values = []
    for reports in product(range(response.symbols), repeat=len(records)):
        chances = [
            report_probability(response, own, report)
            for own, report in zip(records, reports, strict=True)
        ]
        counts = np.bincount(reports, minlength=response.symbols).tolist()
        values.append((float(np.prod(chances)), counts))
    return values


@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_debiased_counts_and_their_variance_are_unbiased(epsilon: float) -> None:
    """Exact expectations over all 81 outcomes of four records."""
    response = SymbolResponse(3, epsilon)
    chances, counts = zip(*all_reports(response, [0, 0, 1, 2]), strict=True)
    probability, reported = np.array(chances), np.array(counts)
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


def test_replicates_are_independent_and_keep_the_shape_of_the_records() -> None:
    symbols = np.arange(6) % 3
    several = SymbolResponse(3, 1.0).answers(symbols, SimulatedNoise(5, replicates=40))
    assert several.shape == (40, 6)
    assert len({row.tobytes() for row in several}) > 30
    np.testing.assert_array_equal(SymbolResponse(3, 1.0).answers(symbols, NoNoise()), symbols)


@pytest.mark.parametrize(
    ("symbols", "epsilon", "message"),
    [
        (1, 1.0, "symbols must be at least 2, got 1"),
        (3, 0.0, "epsilon must be positive and finite, got 0.0"),
        (3, float("inf"), "epsilon must be positive and finite, got inf"),
    ],
)
def test_settings_outside_their_range_are_refused(
    symbols: int, epsilon: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        SymbolResponse(symbols, epsilon)


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


QUESTIONS = [(0.5, 1e-3, 6), (1.0, 1e-6, 8), (2.0, 1e-2, 2), (5.0, 1e-6, 12), (1.0, 0.3, 1)]


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


@pytest.mark.parametrize(("epsilon", "delta", "answers"), QUESTIONS)
def test_an_answer_gets_as_much_as_delta_allows(epsilon: float, delta: float, answers: int) -> None:
    each = answer_epsilon(epsilon, delta, answers)
    assert composed_delta(each, answers, epsilon) <= delta
    assert composed_delta(each * (1 + 1e-9), answers, epsilon) > delta
    assert each > epsilon / answers


@pytest.mark.parametrize(("epsilon", "delta", "answers"), QUESTIONS)
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
def test_questions_outside_their_range_are_refused(
    epsilon: float, delta: float, answers: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        answer_epsilon(epsilon, delta, answers)
