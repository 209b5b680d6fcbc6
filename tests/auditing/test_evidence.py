from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.auditing.distinguishing import chi_square, learn, lowest_bits, telling


def naive_lowest_bit(value: float) -> int:
    """The largest power of two that divides the number."""
    exponent, fraction = 0, Fraction(value)
    while fraction.denominator > 1:
        fraction, exponent = fraction * 2, exponent - 1
    while fraction.numerator % 2 == 0:
        fraction, exponent = fraction / 2, exponent + 1
    return exponent


@given(st.lists(st.floats(-1e12, 1e12).filter(lambda v: abs(v) > 1e-12), min_size=1, max_size=20))
def test_lowest_bits_are_those_of_exact_fractions(values: list[float]) -> None:
    expected = [naive_lowest_bit(value) for value in values]
    assert lowest_bits(np.array(values)).tolist() == expected


def test_zero_has_no_lowest_bit() -> None:
    assert lowest_bits(np.array([0.0, -0.0])).tolist() == [0.0, 0.0]


def test_few_different_rows_are_learnt_as_wholes() -> None:
    """Each column alone says nothing here; together they say everything."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (2, 4000))
    first, second = np.stack([bits[0], bits[0]], 1), np.stack([bits[1], 1 - bits[1]], 1)
    _, score = learn(first.astype(float), second.astype(float))
    result = score(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    assert (result > 5).tolist() == [True, True, False, False]
    assert (result < -5).tolist() == [False, False, True, True]


def test_rows_that_were_never_seen_say_nothing() -> None:
    _, by_row = learn(np.array([[1.0, 2.0]] * 9), np.array([[1.0, 3.0]] * 9))
    assert by_row(np.array([[1.0, 7.0]])).tolist() == [0.0]


def test_independent_columns_add_up() -> None:
    """Two counts with Laplace noise that both move by one: the largest log-ratio is 2.

    Both tails are far out; the learnt ratio there errs by about 0.1.
    """
    rng = np.random.default_rng(0)
    first, second = (rng.laplace(shift, 1.0, (40_000, 2)) for shift in (1.0, 0.0))
    (score,) = learn(first, second)
    assert score(np.array([[6.0, 6.0]]))[0] == pytest.approx(2.0, abs=0.4)
    assert score(np.array([[6.0, -6.0]]))[0] == pytest.approx(0.0, abs=0.4)


def test_chi_square_of_two_coins_is_the_textbooks() -> None:
    first = np.repeat([0.0, 1.0], [30, 70])[:, np.newaxis]
    second = np.repeat([0.0, 1.0], [50, 50])[:, np.newaxis]
    result, freedom = chi_square(first, second)
    assert result == pytest.approx(20**2 / 80 + 20**2 / 120)
    assert freedom.tolist() == [1.0]


def test_equal_columns_do_not_tell_and_different_ones_do() -> None:
    """400 equal columns at five standard deviations: a false alarm has probability below 0.01."""
    rng = np.random.default_rng(0)
    first, second = rng.laplace(size=(2, 3000, 400))
    first[:, 7] += 0.5
    assert np.flatnonzero(telling(first, second)).tolist() == [7]
