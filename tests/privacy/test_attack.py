"""What guarantees leave to attacks, beside dp-accounting's and enumerated tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.stats import norm

from tacit.privacy import composition
from tacit.privacy.cost import Adjacency, Cost


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_advantage_is_that_of_dp_accounting(epsilon: float, delta: float) -> None:
    parameters = pld.common.DifferentialPrivacyParameters(epsilon, delta)
    distribution = pld.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
    largest = distribution.get_delta_for_epsilon(0.0)
    assert Cost(epsilon, delta).advantage == pytest.approx(largest, abs=1e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 5.0, 30.0])
def test_no_attack_on_epsilon_is_better_than_the_best_on_mu_and_one_is_as_good(
    epsilon: float,
) -> None:
    mu, alarms = Cost(epsilon).mu, np.linspace(0, 1, 2001)
    of_mu = norm.cdf(norm.isf(alarms) - mu)
    assert np.all(Cost(epsilon).misses(alarms) >= of_mu - 1e-12)
    corner = np.array([1 / (1 + math.exp(epsilon))])
    met = Cost(epsilon).misses(corner) - norm.cdf(norm.isf(corner) - mu)
    assert abs(float(met[0])) < 1e-12
    assert math.copysign(1, mu) == 1
    assert math.erf(mu / math.sqrt(8)) == pytest.approx(Cost(epsilon).advantage)


def test_randomised_responses_together_are_no_easier_than_the_mu_of_their_history() -> None:
    """The best attack on n answers counts them: exact by enumeration of binomials."""
    epsilon, times = 0.3, 12
    truth = 1 / (1 + math.exp(-epsilon))
    counts = np.arange(times + 1)
    choose = np.array([math.comb(times, each) for each in counts])
    one, other = (choose * p**counts * (1 - p) ** (times - counts) for p in (truth, 1 - truth))
    largest = np.maximum(one - other, 0).sum()
    bound = composition.bound(
        {Cost(epsilon, adjacency=Adjacency.LABEL): times}, Adjacency.LABEL, 1e-6
    )
    # the mu of a small epsilon is sqrt(pi/2) epsilon, and many answers look Gaussian of epsilon
    assert largest <= bound.advantage <= 1.01 * math.sqrt(math.pi / 2) * largest
    assert bound.mu == pytest.approx(math.sqrt(times) * Cost(epsilon).mu)


@pytest.mark.parametrize(
    "costs", [{Cost(1.0, 1e-6, Adjacency.RECORD): 2}, {Cost(1.0, adjacency=Adjacency.LABEL): 1}]
)
def test_what_no_mu_bounds_is_said(costs: dict[Cost, int]) -> None:
    assert math.isinf(composition.bound(costs, Adjacency.RECORD).mu)
