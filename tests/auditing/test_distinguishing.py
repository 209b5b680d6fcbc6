from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.auditing.distinguishing import distinguish
from tacit.privacy.cost import analytic_gaussian_sigma
from tacit.privacy.mechanisms.gaussian import Normal
from tacit.privacy.mechanisms.laplace import Laplace
from tacit.privacy.noise import SimulatedNoise

TRIES = 20_000


def laplace_pair(scale: float, seed: int, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    noise = SimulatedNoise(seed, replicates=TRIES)
    drawn = [noise.draw(Laplace(scale, 1.0), (columns,)) for _ in range(2)]
    return drawn[0] + 1.0, drawn[1]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_laplace_noise_is_bounded_near_its_epsilon(epsilon: float) -> None:
    """A bound above epsilon is a false alarm, of probability below 0.001 each."""
    bound = distinguish(*laplace_pair(1 / epsilon, seed=1)).epsilon
    assert 0.6 * epsilon <= bound <= epsilon


def test_a_scale_30_percent_too_small_is_noticed() -> None:
    assert distinguish(*laplace_pair(0.7, seed=2)).epsilon > 1.0


def test_columns_that_say_nothing_do_not_hide_one_that_does() -> None:
    first, second = laplace_pair(1.0, seed=3, columns=30)
    first[:, 1:] -= 1.0
    assert 0.6 <= distinguish(first, second).epsilon <= 1.0


def test_gaussian_noise_is_bounded_near_its_epsilon_at_its_delta() -> None:
    delta = 0.05
    sigma = analytic_gaussian_sigma(1.0, delta)
    drawn = SimulatedNoise(4, replicates=TRIES).draw(Normal(sigma), (2,))
    first, second = drawn[:, :1] + 1.0, drawn[:, 1:]
    assert 0.6 <= distinguish(first, second, delta).epsilon <= 1.0
    assert distinguish(first, second, 0.0).epsilon > 1.0


def test_a_value_that_is_sent_as_it_is_shows_as_far_as_the_draws_reach() -> None:
    bound = distinguish(np.ones((4000, 1)), np.zeros((4000, 1)))
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
            distinguish(
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
        assert distinguish(drawn[:, :3], drawn[:, 3:]).epsilon == 0.0


def test_draws_of_different_shapes_or_too_few_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one shape .* got \(9, 1\) and \(9, 2\)"):
        distinguish(np.zeros((9, 1)), np.zeros((9, 2)))
    with pytest.raises(ValueError, match=r"at least 8, got \(7, 1\)"):
        distinguish(np.zeros((7, 1)), np.zeros((7, 1)))
