"""k-ary randomised response: exact probabilities, exact privacy, and the noise of counts."""

from __future__ import annotations

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
from tacit.privacy.mechanisms.interface import Distribution
from tacit.privacy.mechanisms.response import Bits
from tacit.privacy.noise import NoiseSource, NoNoise, SimulatedNoise, SystemNoise
from tacit.privacy.symbols import SymbolResponse
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
