"""Composition that reads mechanisms: never below the exact figure, never above the plain one."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tacit.privacy.composition import bound, restated
from tacit.privacy.cost import Adjacency, Cost, compose, worst_case
from tacit.privacy.mechanisms.gaussian import DiscreteGaussian, Gaussian
from tacit.privacy.mechanisms.interface import Together
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace, PolyaShare, Staircase
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.protocols.published.dpauc import PublishedDPAUC
from tests.privacy.reference import gaussian_delta, law_of, log_weight

LABEL = Adjacency.LABEL
MECHANISMS: dict[str, Any] = {
    "laplace": Laplace(5, 0.3),
    "discrete-laplace": DiscreteLaplace(5, 0.3),
    "count": DiscreteLaplace(1, 0.3),
    "staircase": Staircase(5, 0.3),
    "gaussian": Gaussian(5, 0.3, 1e-8),
    "discrete-gaussian": DiscreteGaussian(5, 60.0, 1e-8),
    "response": RandomisedResponse(0.3),
    "share": PolyaShare(1, 0.3, Fraction(1, 2)),
    "together": Together((DiscreteLaplace(1, 0.1), Staircase(9, 0.2))),
}
TIMES = 12


def exact_delta(mechanism: Any, times: int, epsilon: float) -> float:
    """The delta of so many releases, by convolving the losses, which are whole 240ths."""
    law = law_of(mechanism)
    moved = log_weight(mechanism, law.support - int(mechanism.sensitivity))
    units = np.rint(240 * (log_weight(mechanism, law.support) - moved) / mechanism.epsilon)
    one = np.bincount(units.astype(np.int64) + 240, law.pmf, 481)
    whole = np.ones(1)
    for _ in range(times):
        whole = np.convolve(whole, one)
    losses = (np.arange(whole.size) - 240 * times) * mechanism.epsilon / 240
    return float(whole @ np.maximum(-np.expm1(epsilon - losses), 0.0))


@pytest.mark.parametrize(
    ("name", "delta"), [(name, (1e-4, 1e-6)[place % 2]) for place, name in enumerate(MECHANISMS)]
)
def test_never_looser_than_without_the_mechanism(name: str, delta: float) -> None:
    cost = MECHANISMS[name].cost(LABEL)
    for method in ("pld", "tightest"):
        read = compose([cost] * TIMES, delta, method)
        bare = compose([cost.figures] * TIMES, delta, method)
        assert read.epsilon <= bare.epsilon
        assert read.delta <= delta
        assert read.adjacency == bare.adjacency
    measured = bound({cost: TIMES}, LABEL, delta)
    assert measured.tightest.epsilon <= bound({cost.figures: TIMES}, LABEL, delta).tightest.epsilon
    assert measured.summed == bound({cost.figures: TIMES}, LABEL, delta).summed


@pytest.mark.parametrize("name", ["discrete-laplace", "count", "staircase"])
@pytest.mark.parametrize("times", [2, TIMES])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_never_below_the_exact_figure(name: str, times: int, delta: float) -> None:
    """And within 2 % of it, though losses are rounded up to multiples of 1e-4."""
    mechanism = MECHANISMS[name]
    spent = compose([mechanism.cost(LABEL)] * times, delta, "pld")
    assert exact_delta(mechanism, times, spent.epsilon) <= delta
    assert exact_delta(mechanism, times, 0.98 * spent.epsilon) > delta


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("times", [2, 30])
def test_gaussian_releases_compose_to_one_gaussian_release(times: int, delta: float) -> None:
    """``mu = sqrt(times) / sigma``; the figure lies between the exact one and 2 % above it."""
    mechanism = Gaussian(1, 0.3, 1e-8)
    mu = math.sqrt(2 * mechanism.rho * times)
    spent = compose([mechanism.cost(LABEL)] * times, delta)
    assert (
        gaussian_delta(spent.epsilon, 1 / mu)
        <= delta
        < gaussian_delta(0.98 * spent.epsilon, 1 / mu)
    )
    assert spent.epsilon < 0.96 * compose([mechanism.cost(LABEL).figures] * times, delta).epsilon


def test_a_delta_below_the_rounding_is_not_read_from_mechanisms() -> None:
    cost = MECHANISMS["laplace"].cost(LABEL)
    for delta in (1e-10, 1e-12):
        assert (
            compose([cost] * TIMES, delta, "pld").epsilon
            == compose([cost.figures] * TIMES, delta, "pld").epsilon
        )


def test_a_sampler_too_far_from_its_distribution_is_not_read() -> None:
    """The staircase is drawn to one part in 2**39, which is too much at a delta of 2e-8."""
    mechanism = Together((Staircase(50, 0.1), Laplace(50, 0.1)))
    cost = mechanism.cost(LABEL)
    for delta, gains in ((1e-4, True), (2e-8, False)):
        read, bare = (compose([one] * 10, delta, "pld").epsilon for one in (cost, cost.figures))
        assert (read < bare) == gains


def test_mixed_costs_are_read_where_they_can_be() -> None:
    costs = [
        Gaussian(1, 0.2, 1e-9).cost(LABEL),
        Cost(0.2, adjacency=LABEL),
        Laplace(1, 0.2).cost(LABEL),
    ] * 5
    read, bare = compose(costs, 1e-6), compose([cost.figures for cost in costs], 1e-6)
    assert read.epsilon < 0.95 * bare.epsilon


def test_a_cost_keeps_its_mechanism_only_where_it_still_says_what_was_drawn() -> None:
    cost = Laplace(1, 0.2).cost(Adjacency.REPLACE)
    assert restated(cost, LABEL).mechanism == cost.mechanism
    assert restated(replace(cost, adjacency=Adjacency.RECORD), LABEL).mechanism is None
    assert (cost + cost).mechanism is None
    assert worst_case([cost, cost]).mechanism == cost.mechanism
    assert worst_case([cost, cost.figures]).mechanism is None
    assert "mechanism" not in repr(cost)


def test_the_papers_forms_of_dpauc_say_what_they_draw() -> None:
    """A record moves 2 T counts by one, each under noise for 2 T of them: much like a Gaussian."""
    for mechanism, gain in (("laplace", 0.2), ("gaussian(delta=1e-8)", 0.95)):
        protocol = PublishedDPAUC(0.5, 50, mechanism, "replace")
        cost = protocol.guarantee
        read, bare = (compose([one] * 8, 1e-6).epsilon for one in (cost, cost.figures))
        assert read < gain * bare


def gaussian_of(size: float, epsilon: float) -> DiscreteGaussian:
    return DiscreteGaussian(size, 2.0, 1e-8)


def test_a_sensitivity_that_rounding_left_below_an_integer_is_that_integer() -> None:
    """Noise that hides a step of 3 does not hide it better for being called 3 - 2**-51."""
    for whole in (1, 3):
        short = np.nextafter(whole, 0)
        assert short < whole
        for kind in (DiscreteLaplace, gaussian_of):
            costs = [[kind(size, 0.3).cost(LABEL)] * TIMES for size in (short, whole)]
            below, exact = (compose(each, delta=1e-6).epsilon for each in costs)
            assert below >= exact * (1 - 1e-9)
        shares = [PolyaShare(size, 0.3, Fraction(1, 2)) for size in (short, whole)]
        below, exact = (share.cost(LABEL).epsilon for share in shares)
        assert below >= exact * (1 - 1e-9)


def test_mechanisms_of_several_numbers_together_cost_the_sum() -> None:
    """Their loss distribution is that of one number each; with arrays it is not known."""
    both = Together((DiscreteLaplace(np.array([1, 2]), 0.1), Staircase(2, 0.2)))
    cost = both.cost(LABEL)
    assert cost.mechanism is None
    assert compose([cost] * 3, delta=1e-6) == compose([Cost(cost.epsilon, adjacency=LABEL)] * 3)


def test_staircase_noise_of_a_broken_width_has_no_loss_distribution() -> None:
    """It would be that of a smaller width; the sampler refuses it too."""
    with pytest.raises(ValueError, match="sensitivity must be a whole number"):
        Staircase(1.5, 1.0).loss_distribution()
