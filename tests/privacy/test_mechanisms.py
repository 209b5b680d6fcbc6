"""Every mechanism: its variance, loss and loss distribution against its one probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.privacy.cost import Adjacency
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian, Gaussian
from tacit.privacy.mechanisms.interface import Mechanism, Together
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace, PolyaShare, Staircase
from tacit.privacy.mechanisms.response import RandomisedResponse, response_variance
from tests.privacy.reference import law_of, log_weight

Floats = NDArray[np.float64]

EPSILONS = st.floats(0.05, 6)
WIDTHS = st.integers(1, 40)
SHARES = st.fractions(Fraction(1, 20), Fraction(3), max_denominator=20)
STATED = st.builds(DiscreteLaplace, WIDTHS, EPSILONS) | st.builds(Staircase, WIDTHS, EPSILONS)
PURE = STATED | st.builds(PolyaShare, st.integers(1, 5), st.floats(0.3, 6), SHARES)
WHOLE = PURE | st.builds(DiscreteGaussian, WIDTHS, st.floats(0.3, 30))


def hockey_stick(first: Floats, second: Floats, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


@settings(max_examples=150)
@given(mechanism=WHOLE)
def test_the_variance_is_that_of_the_probabilities(mechanism: Mechanism) -> None:
    law = law_of(mechanism)
    assert float(mechanism.variance) == pytest.approx(law.variance, rel=1e-6)
    mean = float(law.pmf @ law.support)
    assert mean == pytest.approx(0, abs=1e-6 * math.sqrt(law.variance) + 1e-12)


@settings(max_examples=150)
@given(mechanism=PURE, data=st.data())
def test_the_loss_of_a_shift_is_the_largest_ratio_of_probabilities(
    mechanism: Mechanism, data: st.DataObject
) -> None:
    """A share above 1 falls fastest in the far tail, so its loss is not reached.

    No shift within the sensitivity costs more than is declared, and one costs it.
    """
    sensitivity = int(getattr(mechanism, "sensitivity"))  # noqa: B009
    shift = data.draw(st.integers(0, 2 * sensitivity))
    values = np.arange(-6 * sensitivity - 30, 6 * sensitivity + 31)
    ratios = np.abs(log_weight(mechanism, values) - log_weight(mechanism, values - shift))
    stated = float(mechanism.loss(shift))
    assert ratios.max() <= stated * (1 + 1e-7) + 1e-9
    if getattr(mechanism, "share", 0) <= 1:
        assert ratios.max() == pytest.approx(stated, rel=1e-6)
    else:
        assert stated == pytest.approx(shift / float(getattr(mechanism, "scale")))  # noqa: B009
    cost = mechanism.cost(Adjacency.LABEL)
    losses = mechanism.loss(np.arange(sensitivity + 1))
    assert losses[0] == 0
    assert losses.max() == pytest.approx(cost.epsilon, rel=1e-12)
    assert (np.diff(losses) >= -1e-12).all()
    assert (cost.delta, cost.adjacency) == (0, Adjacency.LABEL)


@settings(max_examples=60)
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


@settings(max_examples=60)
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


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
@pytest.mark.parametrize(("sensitivity", "sigma"), [(1, 0.7), (3, 2.0), (3, 15.0)])
def test_discrete_gaussian_is_as_concentrated_as_it_says(
    sensitivity: int, sigma: float, order: float
) -> None:
    """Its Renyi divergence under a shift by the sensitivity is ``order * rho`` at most."""
    mechanism, reach = DiscreteGaussian(sensitivity, sigma), int(60 * sigma) + 60
    values = np.arange(-reach, reach + 1)
    here, there = (log_weight(mechanism, values - shift) for shift in (0, sensitivity))
    moment = np.logaddexp.reduce(order * here + (1 - order) * there)
    divergence = (moment - np.logaddexp.reduce(here)) / (order - 1)
    assert 0.7 * order * mechanism.rho <= divergence <= order * mechanism.rho * (1 + 1e-12)


@settings(max_examples=60)
@given(epsilon=st.floats(0.01, 30))
def test_randomised_response(epsilon: float) -> None:
    mechanism = RandomisedResponse(epsilon)
    weights = np.exp(log_weight(mechanism, [0, 1]))
    assert weights[1] / weights.sum() == pytest.approx(mechanism.probability, rel=1e-12)
    assert float(mechanism.variance) == response_variance(epsilon)
    assert mechanism.loss([0, 1, -1]).tolist() == [0, epsilon, epsilon]
    assert mechanism.cost(Adjacency.LABEL).epsilon == epsilon


@settings(max_examples=25)
@given(mechanism=STATED, level=st.floats(0, 1))
def test_the_loss_distribution_bounds_every_shift(mechanism: Mechanism, level: float) -> None:
    """Never below the divergence of any shift by up to the sensitivity; for that, close to it."""
    chances = law_of(mechanism).pmf
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
