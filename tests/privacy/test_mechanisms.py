"""Every mechanism: its variance, loss and loss distribution against its one probabilities."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.privacy.cost import Adjacency
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian, Gaussian, Normal
from tacit.privacy.mechanisms.interface import Distribution, Mechanism, Together
from tacit.privacy.mechanisms.laplace import (
    DiscreteLaplace,
    Laplace,
    PolyaShare,
    Staircase,
)
from tacit.privacy.mechanisms.response import Bits, Choices, RandomisedResponse, UniformIntegers
from tacit.privacy.noise import NoNoise, SimulatedNoise, SystemNoise
from tests.privacy import reference
from tests.privacy.reference import log_weight

Floats = NDArray[np.float64]

EPSILONS = st.floats(0.05, 6)
WIDTHS = st.integers(1, 40)
SHARES = st.fractions(Fraction(1, 20), Fraction(3), max_denominator=20)
WHOLE = st.one_of(
    st.builds(DiscreteLaplace, WIDTHS, EPSILONS),
    st.builds(Staircase, WIDTHS, EPSILONS),
    st.builds(PolyaShare, st.integers(1, 5), st.floats(0.3, 6), SHARES),
    st.builds(DiscreteGaussian, WIDTHS, st.floats(0.3, 30)),
)
PURE = st.one_of(
    st.builds(DiscreteLaplace, WIDTHS, EPSILONS),
    st.builds(Staircase, WIDTHS, EPSILONS),
    st.builds(PolyaShare, st.integers(1, 5), st.floats(0.3, 6), SHARES),
)
STATED = st.one_of(
    st.builds(DiscreteLaplace, WIDTHS, EPSILONS),
    st.builds(Staircase, WIDTHS, EPSILONS),
)


def support(mechanism: Any) -> NDArray[np.int64]:
    """Integers on which all but a part in 10**12 of the noise lies."""
    if isinstance(mechanism, DiscreteGaussian):
        reach = 10 * float(np.asarray(mechanism.sigma)) + 10
    else:
        steps = 40 / float(mechanism.epsilon) * (1 + float(getattr(mechanism, "share", 1)))
        reach = (steps + 3) * float(mechanism.sensitivity)
    return np.arange(-int(reach), int(reach) + 1)


def probabilities(mechanism: Any) -> tuple[NDArray[np.int64], Floats]:
    values = support(mechanism)
    weights = log_weight(mechanism, values)
    chances = np.exp(weights - weights.max())
    return values, chances / chances.sum()


def hockey_stick(first: Floats, second: Floats, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@settings(max_examples=150, deadline=None)
@given(mechanism=WHOLE)
def test_the_variance_is_that_of_the_probabilities(mechanism: Mechanism) -> None:
    values, chances = probabilities(mechanism)
    expected = float(chances @ values.astype(np.float64) ** 2)
    assert float(mechanism.variance) == pytest.approx(expected, rel=1e-6)
    assert float(chances @ values) == pytest.approx(0, abs=1e-6 * math.sqrt(expected) + 1e-12)


@settings(max_examples=150, deadline=None)
@given(mechanism=PURE, data=st.data())
def test_the_loss_of_a_shift_is_the_largest_ratio_of_probabilities(
    mechanism: Mechanism, data: st.DataObject
) -> None:
    """A share above 1 falls fastest in the far tail, so its loss is not reached."""
    sensitivity = int(getattr(mechanism, "sensitivity"))  # noqa: B009
    shift = data.draw(st.integers(0, 2 * sensitivity))
    values = np.arange(-6 * sensitivity - 30, 6 * sensitivity + 31)
    ratios = np.abs(log_weight(mechanism, values) - log_weight(mechanism, values - shift))
    stated = float(mechanism.loss(shift))
    assert ratios.max() <= stated * (1 + 1e-7) + 1e-9
    if getattr(mechanism, "share", 0) <= 1:
        assert ratios.max() == pytest.approx(stated, rel=1e-6)


@settings(max_examples=150, deadline=None)
@given(mechanism=PURE, data=st.data())
def test_no_shift_within_the_sensitivity_costs_more_than_declared(
    mechanism: Mechanism, data: st.DataObject
) -> None:
    cost = mechanism.cost(Adjacency.LABEL)
    shifts = np.arange(int(getattr(mechanism, "sensitivity")) + 1)  # noqa: B009
    losses = mechanism.loss(shifts)
    assert losses[0] == 0
    assert losses.max() <= cost.epsilon * (1 + 1e-12)
    assert losses.max() >= cost.epsilon * (1 - 1e-12)
    assert (np.diff(losses) >= -1e-12).all()
    assert (cost.delta, cost.adjacency) == (0, Adjacency.LABEL)


@settings(max_examples=60, deadline=None)
@given(scale=st.floats(0.01, 1e6), epsilon=EPSILONS, shift=st.floats(-3, 3))
def test_continuous_laplace(scale: float, epsilon: float, shift: float) -> None:
    mechanism = Laplace(scale * epsilon, epsilon)
    values = np.linspace(-8, 8, 200_001) * 5 * scale
    chances = np.exp(log_weight(mechanism, values))
    chances /= chances.sum()
    assert float(chances @ values**2) == pytest.approx(float(mechanism.variance), rel=1e-4)
    assert float(mechanism.loss(scale * epsilon)) == pytest.approx(epsilon, rel=1e-12)
    moved = np.abs(log_weight(mechanism, values) - log_weight(mechanism, values - shift * scale))
    assert moved.max() <= float(mechanism.loss(shift * scale)) * (1 + 1e-9) + 1e-9


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(0.05, 15), delta=st.floats(1e-10, 0.1), part=st.floats(0.05, 1))
def test_gaussian_parts_add_up_to_the_whole(epsilon: float, delta: float, part: float) -> None:
    first, rest = (Gaussian(7, epsilon, delta, 2, one) for one in (part, 1 - part + 1e-12))
    whole = Gaussian(7, epsilon, delta, 2)
    squares = sum(float(one.squared_loss(7)) for one in (first, rest))
    assert squares == pytest.approx(float(whole.squared_loss(7)), rel=1e-9)
    assert whole.rho == pytest.approx(squares / 2, rel=1e-9)
    assert float(first.sigma) ** 2 == pytest.approx(float(first.variance), rel=1e-12)
    assert math.isinf(float(whole.loss(1)))
    cost = whole.cost(Adjacency.RECORD)
    assert (cost.epsilon, cost.delta, cost.rho) == (epsilon, delta, whole.rho)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(0.01, 30))
def test_randomised_response(epsilon: float) -> None:
    mechanism = RandomisedResponse(epsilon)
    flip = mechanism.flip_probability
    weights = np.exp(log_weight(mechanism, [0, 1]))
    assert weights[1] / weights.sum() == pytest.approx(flip, rel=1e-12)
    assert float(mechanism.variance) == pytest.approx(flip * (1 - flip) / (1 - 2 * flip) ** 2)
    assert mechanism.loss([0, 1, -1]).tolist() == [0, epsilon, epsilon]
    assert mechanism.cost(Adjacency.LABEL).epsilon == epsilon


@settings(max_examples=25, deadline=None)
@given(mechanism=STATED, level=st.floats(0, 1))
def test_the_loss_distribution_bounds_every_shift(mechanism: Mechanism, level: float) -> None:
    """Never below the divergence of any shift by up to the sensitivity; for that, close to it."""
    values, chances = probabilities(mechanism)
    sensitivity = int(getattr(mechanism, "sensitivity"))  # noqa: B009
    epsilon = level * float(getattr(mechanism, "epsilon"))  # noqa: B009
    bound = mechanism.loss_distribution().get_delta_for_epsilon(epsilon)
    exact = 0.0
    for shift in range(1, sensitivity + 1):
        moved = np.zeros_like(chances)
        moved[shift:] = chances[:-shift]
        exact = hockey_stick(chances, moved, epsilon)
        assert exact <= bound + 1e-9
    assert bound <= exact + 2e-4
    assert values.size == chances.size


def test_the_losses_of_a_staircase_are_those_of_its_probabilities() -> None:
    for width, epsilon in ((1, 0.5), (2, 3.0), (7, 0.1), (7, 1.0), (10, 4.0), (30, 0.3)):
        expected = reference.best_staircase(width, epsilon)
        chances = expected.pmf
        moved = np.zeros_like(chances)
        moved[width:] = chances[:-width]
        loss = Staircase(width, epsilon).loss_distribution()
        for level in (0.0, 0.3 * epsilon, 0.9 * epsilon):
            measured = loss.get_delta_for_epsilon(level)
            assert measured == pytest.approx(hockey_stick(chances, moved, level), abs=1.1e-4)


def test_laplace_noise_as_drawn_is_covered() -> None:
    """The mass at the largest loss is that of the grid, a little above one half."""
    mechanism = Laplace(3, 0.5)
    measured = mechanism.loss_distribution().get_delta_for_epsilon(0.0)
    assert 1 - math.exp(-0.25) <= measured <= 1 - math.exp(-0.25) + 1e-4


@pytest.mark.parametrize("sensitivity", [0, 0.4])
def test_a_statistic_that_does_not_move_costs_nothing(sensitivity: float) -> None:
    """Integers that move by less than one do not move."""
    loss = DiscreteLaplace(sensitivity, 1.0).loss_distribution()
    assert loss.get_delta_for_epsilon(0.0) == pytest.approx(0, abs=1e-12)
    assert Laplace(0, 1.0).loss_distribution().get_delta_for_epsilon(0.0) < 1e-12
    assert Staircase(0, 1.0).loss_distribution().get_delta_for_epsilon(0.0) < 1e-12


def test_a_release_of_several_numbers_costs_their_sum() -> None:
    pair = Together((DiscreteLaplace(1, 0.25), Staircase(9, 0.5)), times=2)
    cost = pair.cost(Adjacency.LABEL)
    assert (cost.epsilon, cost.delta, cost.mechanism) == (1.5, 0, pair)
    assert pair.loss_error == 2 * Staircase(9, 0.5).loss_error
    assert pair.loss_distribution().get_delta_for_epsilon(1.5 + 5e-4) < 1e-12
    assert pair.loss_distribution().get_delta_for_epsilon(1.4) > 1e-3
    unknown = Together((DiscreteLaplace(1, 0.25), PolyaShare(1, 1.0, Fraction(1, 2))))
    assert unknown.loss_distribution() is None


def test_arrays_of_mechanisms_cost_the_largest_and_are_no_part_of_a_cost() -> None:
    for mechanism in (
        DiscreteLaplace(np.array([1, 3]), np.array([0.2, 0.7])),
        Laplace(np.array([1, 3]), np.array([0.2, 0.7])),
        Staircase(np.array([1, 3]), np.array([0.2, 0.7])),
    ):
        cost = mechanism.cost(Adjacency.RECORD)
        assert (cost.epsilon, cost.mechanism) == (0.7, None)
        assert mechanism.variance.shape == (2,)


EVERY: list[Distribution] = [
    DiscreteLaplace(3, 1.0),
    Laplace(3, 1.0),
    PolyaShare(3, 1.0, Fraction(2, 5)),
    Staircase(3, 1.0),
    Gaussian(3, 1.0, 1e-6),
    DiscreteGaussian(3, 4.0),
    Normal(2.0),
    RandomisedResponse(1.0),
    Bits(0.3),
    UniformIntegers(5),
    Choices((1, 2, 3)),
]


def named(distribution: Distribution) -> str:
    return type(distribution).__name__


@pytest.mark.parametrize("distribution", EVERY, ids=named)
def test_every_source_draws_the_same_shape_and_type(distribution: Distribution) -> None:
    drawn = [source.draw(distribution, (4, 3)) for source in (SimulatedNoise(1), SystemNoise())]
    assert drawn[0].shape == drawn[1].shape == (4, 3)
    silent = NoNoise().draw(distribution, (4, 3))
    assert silent.shape == (4, 3)
    assert drawn[0].dtype == drawn[1].dtype == silent.dtype
    assert not silent.any()
    leading = (4, 3) if distribution.shared else (6, 4, 3)
    for source in (SimulatedNoise(1, replicates=6), NoNoise(replicates=6)):
        assert source.draw(distribution, (4, 3)).shape == leading


@pytest.mark.parametrize("distribution", EVERY, ids=named)
def test_scaled_noise_is_wrong_by_the_factor(distribution: Distribution) -> None:
    """Nothing that hides something stays as it was: an audit's mistake must not be lost."""
    if isinstance(distribution, UniformIntegers | Choices):
        assert distribution.scaled(0.5) is distribution
        return
    seed = 5
    right = SimulatedNoise(seed).draw(distribution, (40_000,)).astype(np.float64)
    wrong = SimulatedNoise(seed).draw(distribution.scaled(0.7), (40_000,)).astype(np.float64)
    assert wrong.var() < 0.85 * right.var()


@pytest.mark.parametrize("distribution", EVERY, ids=named)
def test_simulated_variances_are_those_stated(distribution: Distribution) -> None:
    """200,000 draws of a kurtosis of at most 15 err by 0.9 %; 5 % is more than five of it.

    A scale 30 % off changes a variance by 40 % at least. A debiased bit's variance is not its
    draw's, so bits are left to the tests of their probability.
    """
    if not isinstance(distribution, Mechanism) or isinstance(distribution, RandomisedResponse):
        return
    drawn = SimulatedNoise(3).draw(distribution, (200_000,)).astype(np.float64)
    assert drawn.var() == pytest.approx(float(distribution.variance), rel=0.05)
