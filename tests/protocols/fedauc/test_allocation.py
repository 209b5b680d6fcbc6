"""The influence allocation against a naive minimiser, and the first round against its budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from tacit.counts import allocating
from tacit.counts.rank_noise import RankNoise
from tacit.data.ragged import Ragged
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.running.evaluating import exact_auc
from tests.federations import binormal_clients


def geometry_of(clients: object) -> allocating.RankGeometry:
    return allocating.RankGeometry.of(Ragged(doubled_mid_ranks(clients.scores), clients.offsets))  # type: ignore[attr-defined]


def naive_variance(low: float, high: float, centre: float, error: float, epsilon: float) -> float:
    """Minimise over pivot and share with a general optimiser, from several starts."""

    def objective(point: NDArray[Any]) -> float:
        pivot, fraction = point[0], 1 / (1 + np.exp(-point[1]))
        count, rest = 2 / (fraction * epsilon) ** 2, 2 / ((1 - fraction) * epsilon) ** 2
        reach = max(abs(high - pivot), abs(low - pivot))
        return float(((pivot - centre) ** 2 + error**2) * count + reach**2 * rest)

    starts = [(p, s) for p in ((low + high) / 2, centre) for s in (-4.0, -1.0, 1.0)]
    return min(minimize(objective, start, method="Nelder-Mead").fun for start in starts)


LARGE = 4096
"""A factor of all ranks, after which half a rank is nothing: pivots are as good as continuous."""


@settings(max_examples=40)
@example(0.0, 5.5, 100.0, 27.0, 1.0)  # few ranks far from the centre
@given(
    st.integers(0, 1600).map(lambda doubled: doubled / 2),
    st.integers(10, 800).map(lambda doubled: doubled / 2),
    st.integers(200, 1800).map(lambda doubled: doubled / 2),
    st.floats(1, 100),
    st.floats(0.2, 4),
)
def test_the_grid_is_within_one_percent_of_a_general_optimiser(
    low: float, width: float, centre: float, error: float, epsilon: float
) -> None:
    """Of one client with these ranks, whose positives' influence changes sign at the centre.

    The grid's shares are 0.23 apart in log odds, so one is at most 0.115 from the best share s. At
    that distance the variance, in units of its minimum, is
    ``s**3 / t**2 + (1 - s)**3 / (1 - t)**2`` with t the share tried: at most 1.0100 for every s.
    Rounding to half a rank adds at most 0.0001 after all ranks are multiplied.
    """
    records = 100_000 * LARGE
    shift = (records - 1) / 2 - LARGE * centre
    ends = (np.array([LARGE * (low + part * width) + shift]) for part in (0.0, 0.5, 1.0))
    bottom, middle, top = ends
    geometry = allocating.RankGeometry(
        records, bottom, top, middle, np.array([1e30]), np.array([9.0])
    )
    noise, prior = (
        RankNoise("laplace", epsilon),
        allocating.PriorEstimate(records / 2, 0.5, LARGE * error),
    )
    chosen = allocating.influence_allocation(geometry, noise, prior, rounds=1)
    weighted, count, _ = allocating.predicted_variance(geometry, noise, chosen, (records - 1) / 2)
    variance = float(weighted[0] / LARGE**2 + error**2 * count[0])
    assert variance <= 1.0101 * naive_variance(low, low + width, centre, error, epsilon)


def test_a_hopeless_first_round_tells_nothing() -> None:
    geometry = geometry_of(binormal_clients(50, 50, 10))
    noise = RankNoise("laplace", 0.001)
    prior = allocating.prior_from(geometry, noise, np.array(70.0), np.array(0.9))
    assert prior.centre_error == pytest.approx(49.5)


def test_the_stated_error_of_the_centre_is_its_spread() -> None:
    """20,000 first rounds: the spread's own error is 0.5 %, so 5 % is ten of them."""
    clients = binormal_clients(4000, 12000, 5)
    geometry, noise = geometry_of(clients), RankNoise("laplace", 0.5)
    first_allocation = allocating.adaptive_allocation(geometry, noise)
    rng = np.random.default_rng(0)
    truth = exact_auc(clients)
    centre = allocating.influence_centre(clients.records, 4000.0, truth)
    count, rest = (
        noise.drawn(1, first_allocation.fraction).variance,
        noise.drawn(1, 1 - first_allocation.fraction).unit_variance,
    )
    reach = np.maximum(
        geometry.high - first_allocation.doubled_pivot / 2, first_allocation.doubled_pivot / 2
    )
    first = rng.laplace(scale=np.sqrt(count / 2), size=(20000, 5))
    second = rng.laplace(scale=np.sqrt(rest / 2) * reach, size=(20000, 5))
    positives = 4000.0 + first.sum(-1)
    middle = (clients.records - 1) / 2
    numerator = (truth - 0.5) * 4000.0 * 12000.0
    numerator = numerator + ((first_allocation.doubled_pivot / 2 - middle) * first + second).sum(-1)
    areas = 0.5 + numerator / (positives * (clients.records - positives))
    observed = np.std(allocating.influence_centre(clients.records, positives, areas) - centre)
    stated = allocating.prior_from(geometry, noise, np.array(4000.0), np.array(truth)).centre_error
    assert float(stated) == pytest.approx(observed, rel=0.05)


def test_the_vague_release_covers_the_plausible_centres() -> None:
    vague = allocating.vague_prior(1000)
    centre = allocating.influence_centre(1000, vague.positives, vague.auc)
    distance = float(centre) - float(allocating.influence_centre(1000, 50.0, 0.9))
    assert abs(distance) < 3 * float(vague.centre_error)
