from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from tacit.auditing import distinguishing as attack
from tacit.privacy.cost import analytic_gaussian_sigma
from tacit.privacy.mechanisms.gaussian import Normal
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.noise import SimulatedNoise

TRIES = 20_000


def laplace_pair(scale: float, seed: int, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    noise = SimulatedNoise(seed, replicates=TRIES)
    drawn = [noise.draw(Laplace(scale, 1.0), (columns,)) for _ in range(2)]
    return drawn[0] + 1.0, drawn[1]


@pytest.mark.parametrize(
    ("epsilon", "columns"), [(0.5, 1), (1.0, 1), (2.0, 1), (4.0, 1), (1.0, 30)]
)
def test_laplace_noise_is_bounded_near_its_epsilon(epsilon: float, columns: int) -> None:
    """A bound above epsilon is a false alarm, of probability below 0.001 each.

    Columns that say nothing do not hide one that does.
    """
    first, second = laplace_pair(1 / epsilon, seed=1, columns=columns)
    first[:, 1:] -= 1.0
    assert 0.6 * epsilon <= attack.distinguish(first, second).epsilon <= epsilon


def test_a_scale_30_percent_too_small_is_noticed() -> None:
    assert attack.distinguish(*laplace_pair(0.7, seed=2)).epsilon > 1.0


def test_gaussian_noise_is_bounded_near_its_epsilon_at_its_delta() -> None:
    delta = 0.05
    sigma = analytic_gaussian_sigma(1.0, delta)
    drawn = SimulatedNoise(4, replicates=TRIES).draw(Normal(sigma), (2,))
    first, second = drawn[:, :1] + 1.0, drawn[:, 1:]
    assert 0.6 <= attack.distinguish(first, second, delta).epsilon <= 1.0
    assert attack.distinguish(first, second, 0.0).epsilon > 1.0


def test_a_value_that_is_sent_as_it_is_shows_as_far_as_the_draws_reach() -> None:
    bound = attack.distinguish(np.ones((4000, 1)), np.zeros((4000, 1)))
    assert bound.epsilon == pytest.approx(math.log(2000 / -math.log(0.0005)), rel=0.01)


def test_bounds_are_wrong_no_more_often_than_they_say() -> None:
    """Flipped bits at epsilon 1, 600 attacks of 400 draws at an error of 0.2.

    A sound attack is wrong 120 times or less; the test alarms above 158, with probability below
    1e-4. That the bound is not always far below is seen from its median.
    """
    rng = np.random.default_rng(5)
    keep = math.e / (1 + math.e)
    bounds = np.array(
        [
            attack.distinguish(
                (rng.random((400, 1)) < keep).astype(float),
                (rng.random((400, 1)) < 1 - keep).astype(float),
                error=0.2,
            ).epsilon
            for _ in range(600)
        ]
    )
    assert np.sum(bounds > 1.0) <= 158
    assert np.median(bounds) > 0.6


def test_equal_mechanisms_are_told_apart_as_seldom_as_stated() -> None:
    """60 attacks on equal noise at an error of 0.001: any positive bound is a false alarm, which
    happens with probability below 0.06 altogether."""
    for seed in range(60):
        drawn = SimulatedNoise(seed, replicates=2000).draw(Laplace(1, 1.0), (6,))
        assert attack.distinguish(drawn[:, :3], drawn[:, 3:]).epsilon == 0.0


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((9, 1), (9, 2)), r"one shape .* got \(9, 1\) and \(9, 2\)"),
        (((7, 1), (7, 1)), r"at least 8, got \(7, 1\)"),
    ],
)
def test_draws_of_different_shapes_or_too_few_are_refused(shapes: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        attack.distinguish(np.zeros(shapes[0]), np.zeros(shapes[1]))


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
    expected = [0.0, *(naive_lowest_bit(value) for value in values)]
    assert attack.lowest_bits(np.array([0.0, *values])).tolist() == expected


def test_few_different_rows_are_learnt_as_wholes() -> None:
    """Each column alone says nothing here; together they say everything."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (2, 4000))
    first, second = np.stack([bits[0], bits[0]], 1), np.stack([bits[1], 1 - bits[1]], 1)
    _, score = attack.learn(first.astype(float), second.astype(float))
    result = score(np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]))
    assert (result > 5).tolist() == [True, True, False, False]
    assert (result < -5).tolist() == [False, False, True, True]


def test_rows_that_were_never_seen_say_nothing() -> None:
    _, by_row = attack.learn(np.array([[1.0, 2.0]] * 9), np.array([[1.0, 3.0]] * 9))
    assert by_row(np.array([[1.0, 7.0]])).tolist() == [0.0]


def test_independent_columns_add_up() -> None:
    """Two counts with Laplace noise that both move by one: the largest log-ratio is 2.

    Both tails are far out; the learnt ratio there errs by about 0.1.
    """
    rng = np.random.default_rng(0)
    first, second = (rng.laplace(shift, 1.0, (40_000, 2)) for shift in (1.0, 0.0))
    (score,) = attack.learn(first, second)
    assert score(np.array([[6.0, 6.0]]))[0] == pytest.approx(2.0, abs=0.4)
    assert score(np.array([[6.0, -6.0]]))[0] == pytest.approx(0.0, abs=0.4)


def test_chi_square_of_two_coins_is_the_textbooks() -> None:
    first = np.repeat([0.0, 1.0], [30, 70])[:, np.newaxis]
    second = np.repeat([0.0, 1.0], [50, 50])[:, np.newaxis]
    result, freedom = attack.chi_square(first, second)
    assert result == pytest.approx(20**2 / 80 + 20**2 / 120)
    assert freedom.tolist() == [1.0]


def test_equal_columns_do_not_tell_and_different_ones_do() -> None:
    """400 equal columns at five standard deviations: a false alarm has probability below 0.01."""
    rng = np.random.default_rng(0)
    first, second = rng.laplace(size=(2, 3000, 400))
    first[:, 7] += 0.5
    assert np.flatnonzero(attack.telling(first, second)).tolist() == [7]


@given(tries=st.integers(1, 400), share=st.floats(0, 1), error=st.floats(1e-6, 0.4))
def test_bounds_are_clopper_and_pearsons(tries: int, share: float, error: float) -> None:
    hits = round(share * tries)
    low = attack.least_probability(hits, tries, error)
    high = attack.most_probability(hits, tries, error)
    assert attack.interval(hits, tries, 1 - 2 * error) == pytest.approx((low, high))
    assert low == (0 if hits == 0 else pytest.approx(beta.ppf(error, hits, tries - hits + 1)))
    assert high == (
        1 if hits == tries else pytest.approx(beta.ppf(1 - error, hits + 1, tries - hits))
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.0), (1.0, 0.05), (4.0, 0.0)])
def test_an_epsilon_bound_errs_no_more_often_than_it_says(epsilon: float, delta: float) -> None:
    """The worst event of a mechanism that is exactly (epsilon, delta)-private, 20,000 times.

    With an error of 0.05 a sound bound is wrong 1,000 times or less; the test alarms above 1,130,
    with probability below 1e-4.
    """
    rng = np.random.default_rng(0)
    rare = 0.8 * (1 - delta) / (1 + math.exp(epsilon))
    first = rng.binomial(500, math.exp(epsilon) * rare + delta, 20_000)
    second = rng.binomial(500, rare, 20_000)
    pairs, counts = np.unique(np.stack([first, second]), axis=1, return_counts=True)
    wrong = [attack.epsilon_bound(int(a), int(b), 500, delta, 0.05) > epsilon for a, b in pairs.T]
    assert counts[np.array(wrong)].sum() <= 1130
