"""Fieller's interval of a quotient of normal numbers holds it as often as it says."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.metrics.functional import fieller_bounds

REACH = 1.959964
DRAWS = 200_000


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.6])
def test_the_interval_holds_a_quotient_whose_denominator_is_noisy(correlation: float) -> None:
    """The coverage of 95 % is known to 0.05 points, and is held to 0.3.

    It fails by chance with a probability below 1e-8. Errors 30 % too small cover 83 %, and 30 % too
    large 99 %: both are missed with a probability below 1e-9.
    """
    source = np.random.default_rng(0)
    above, below, error, noise = 3.0, 10.0, 1.0, 2.0
    first, second = source.standard_normal((2, DRAWS))
    upper = above + error * (correlation * first + np.sqrt(1 - correlation**2) * second)
    lower = below + noise * first
    value = upper / lower
    cross = correlation * error * noise
    # of (A - (A / B) B) / B, its covariance with B / B, and the variance of the latter
    variance = (error**2 - 2 * value * cross + value**2 * noise**2) / lower**2
    crossed = (cross - value * noise**2) / lower**2
    low, high = fieller_bounds(value, variance, crossed, noise**2 / lower**2, REACH)
    held = (low <= above / below) & (above / below <= high)
    assert np.mean(held | (lower <= REACH * noise)) == pytest.approx(0.95, abs=0.003)


def test_a_denominator_that_is_not_told_from_zero_bounds_nothing() -> None:
    value, variance, crossed, base = np.array([[2.0], [0.1], [0.0], [0.3]])
    low, high = fieller_bounds(value, variance, crossed, base, REACH)
    assert (low[0], high[0]) == (-np.inf, np.inf)


def test_without_noise_below_the_interval_is_the_normal_one() -> None:
    value, variance, crossed, base = np.array([[2.0], [0.25], [0.0], [0.0]])
    low, high = fieller_bounds(value, variance, crossed, base, 2.0)
    assert (low[0], high[0]) == (1.0, 3.0)
