"""How budgets and records are divided over a tree's levels."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.counts.tree_budget import (
    CHOICE_UNITS,
    LOCAL_HEIGHTS,
    MIN_LEVEL_FRACTION,
    Aim,
    epsilon_by_level,
    local_height,
    record_units,
)
from tacit.metrics.trees import TreeNoise
from tacit.privacy.distributions import discrete_laplace_variance

Floats = NDArray[np.float64]

few = settings(max_examples=30, deadline=None)
HEIGHT = 7


def auc_weights(height: int) -> Floats:
    """The AUC's of evenly spread scores: falling from 3/4 to -1/4 over either class's cells."""
    place = (np.arange(2**height) + 0.5) / 2**height
    return np.concatenate([place - 0.75, 0.25 - place])


def cdf_weights(height: int) -> Floats:
    """The number of positives below a third of the range."""
    below = np.clip(2**height / 3 - np.arange(2**height), 0, 1)
    return np.concatenate([below, np.zeros(2**height)])


def variance(weights: Floats, division: tuple[float, ...] | Floats, distance: int = 1) -> float:
    """The noise variance of a weighted sum under a division of the budget."""
    parts = np.asarray(division)
    asked, variances = parts > 0, np.full(parts.size, np.inf)
    variances[asked] = discrete_laplace_variance(distance / parts[asked])
    return float(TreeNoise(variances).variance_of(weights, np.zeros(weights.size)))


@few
@given(
    height=st.integers(1, 14),
    epsilon=st.floats(1e-3, 20),
    distance=st.sampled_from([1, 2]),
    aim=st.sampled_from(get_args(Aim)),
)
def test_shares_add_up_to_epsilon(height: int, epsilon: float, distance: int, aim: Aim) -> None:
    parts = epsilon_by_level(height, epsilon, distance, aim)
    assert len(parts) == height + 2
    assert math.fsum(parts) == pytest.approx(epsilon, rel=1e-12)
    assert parts[0] == 0
    assert parts[-1] > 0
    assert all(
        part == 0 or part >= MIN_LEVEL_FRACTION * epsilon * (1 - 1e-3) for part in parts[:-1]
    )
    if aim == "all":
        assert parts[1:] == pytest.approx([epsilon / (height + 1)] * (height + 1))


@pytest.mark.parametrize("distance", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_each_aim_is_best_at_what_it_aims_at(epsilon: float, distance: int) -> None:
    def among(weights: Floats) -> dict[str, float]:
        return {
            aim: variance(weights, epsilon_by_level(HEIGHT, epsilon, distance, aim), distance)
            for aim in get_args(Aim)
        }

    area, cumulative = among(auc_weights(HEIGHT)), among(cdf_weights(HEIGHT))
    assert area["auc"] < 0.95 * min(area["all"], area["curves"])
    assert cumulative["curves"] < 0.95 * cumulative["auc"]
    assert cumulative["curves"] < 0.95 * cumulative["all"]


def test_no_shift_between_two_levels_serves_the_area_better() -> None:
    """A tenth of one level's budget given to another never lowers the variance by 1 %."""
    parts = np.array(epsilon_by_level(HEIGHT, 1.0, 1, "auc"))
    asked, weights = np.flatnonzero(parts), auc_weights(HEIGHT)
    best = variance(weights, parts)
    for source in asked:
        for target in asked[asked != source]:
            other = parts.copy()
            other[source] *= 0.9
            other[target] += parts[source] - other[source]
            assert variance(weights, other) > 0.99 * best


@pytest.mark.parametrize("aim", get_args(Aim))
@pytest.mark.parametrize("height", [1, 2, 3, 10, 24])
def test_records_are_dealt_out_whole(aim: Aim, height: int) -> None:
    shares = record_units(height, aim)
    assert len(shares) == height
    assert sum(shares) == CHOICE_UNITS
    assert min(shares) > 0
    halvings = {"report": 1 / 4, "groups": 1 / 2, "auc": 1 / 2, "curves": 0.0, "all": 0.0}
    expected = 2.0 ** (-np.arange(height) * halvings[aim])
    wanted = CHOICE_UNITS * expected / expected.sum()
    np.testing.assert_allclose(shares, wanted, atol=height + 1)


def test_the_local_height_falls_with_the_noise() -> None:
    by_records = [local_height(reports, 2.0) for reports in (10, 10**3, 10**5, 10**7, 10**9)]
    by_epsilon = [local_height(10**6, epsilon) for epsilon in (0.1, 0.5, 1.0, 2.0, 5.0)]
    for computed in (by_records, by_epsilon):
        assert computed == sorted(computed)
        assert computed[0] < computed[-1]
        assert set(computed) <= set(LOCAL_HEIGHTS)
    assert by_records[0] == min(LOCAL_HEIGHTS)
    assert by_records[-1] > 6
