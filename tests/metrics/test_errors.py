"""Laws of sums of few draws, beside the probabilities of every outcome."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from tacit.arrays import Floats
from tacit.metrics.errors import (
    FREQUENCIES,
    ErrorLaw,
    StaircaseDraws,
    WholeLaplaceDraws,
    joined_laws,
    laplace_law,
    laplace_normal_reach,
    law_of,
)
from tacit.privacy.distributions import staircase_inner_width
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Staircase
from tests.privacy.reference import log_weight

OUTCOMES = np.arange(-200, 201)


def laplace_chances(scale: float) -> Floats:
    weights = np.exp(-np.abs(OUTCOMES) / scale)
    return np.asarray(weights / weights.sum())


def stairs(weights: Floats, widths: list[int], epsilon: list[float]) -> StaircaseDraws:
    inner = staircase_inner_width(np.array(widths), np.array(epsilon))
    return StaircaseDraws(weights, np.array(widths), inner, np.array(epsilon))


@pytest.mark.parametrize("scale", [0.15, 0.5, 3.0])
def test_moments_of_whole_laplace_draws_are_those_of_all_outcomes(scale: float) -> None:
    draws, chances = WholeLaplaceDraws(np.array([2.0]), scale, 3), laplace_chances(scale)
    second, fourth = (float(np.sum(chances * (2.0 * OUTCOMES) ** n)) for n in (2, 4))
    assert float(draws.variance) == pytest.approx(3 * second)
    assert float(draws.variance) == pytest.approx(
        12 * float(DiscreteLaplace(1, 1 / scale).variance)
    )
    assert float(draws.fourth_cumulant) == pytest.approx(3 * (fourth - 3 * second**2))


@pytest.mark.parametrize(("width", "epsilon"), [(1, 2.0), (7, 1.0), (20, 4.0), (20, 8.0)])
def test_characteristic_functions_are_those_of_all_outcomes(width: int, epsilon: float) -> None:
    step = np.array([2 / FREQUENCIES])
    turns = (np.arange(FREQUENCIES) + 0.5) * step
    made = stairs(np.array([1.0]), [width], [epsilon]).factor(step, slice(0, 1))
    chances = np.exp(log_weight(Staircase(width, epsilon), OUTCOMES))
    characteristic = np.cos(np.outer(turns, OUTCOMES)) @ chances / chances.sum()
    np.testing.assert_allclose(made[0], characteristic, atol=1e-7)
    made = WholeLaplaceDraws(np.array([1.0]), 1 / epsilon, 2).factor(step, slice(0, 1))
    each = np.cos(np.outer(turns, OUTCOMES)) @ laplace_chances(1 / epsilon)
    np.testing.assert_allclose(made[0], each**2, atol=1e-9)


@pytest.mark.parametrize(("width", "epsilon"), [(1, 2.0), (1000, 1.0), (30_000, 8.0)])
def test_the_variance_of_stairs_is_the_mechanism_s(width: int, epsilon: float) -> None:
    made = stairs(np.array([0.5, 2.0]), [width, width], [epsilon, epsilon]).variance
    assert float(made) == pytest.approx(4.25 * float(Staircase(width, epsilon).variance))


def test_replicates_have_their_own_laws_in_any_groups() -> None:
    weights = np.array([[1.0, 2.0], [2.0, 4.0], [1.0, 0.0]])
    law, normal = ErrorLaw((WholeLaplaceDraws(weights, 0.3),)), np.array([0.1, 0.2, np.nan])
    reach = law.reach(normal, 0.95)
    assert reach[1] == pytest.approx(2 * reach[0], rel=1e-9)
    assert np.isnan(reach[2])
    joined = joined_laws([(2, None), (3, law)])
    assert joined is not None
    together = joined.reach(np.concatenate([[1.0, 2.0], normal]), 0.95)
    np.testing.assert_allclose(together[2:], reach)
    np.testing.assert_allclose(together[:2], [1.959964, 3.919928], rtol=1e-6)
    assert joined.variance[:2].tolist() == [0, 0]
    assert joined_laws([(2, None)]) is None


def test_two_laplace_draws_are_their_convolution() -> None:
    """Of two draws of scale b, ``P(|sum| > t) = (1 + t / (2 b)) exp(-t / b)``."""
    reach = float(laplace_law(np.array([1.0, 1.0])).reach(np.array(0.0), 0.95)) * math.sqrt(2)
    assert (1 + reach / 2) * math.exp(-reach) == pytest.approx(0.05, abs=2e-4)


def test_draws_of_a_file_are_refused_where_they_do_not_fit() -> None:
    law = ErrorLaw((stairs(np.array([1.0, 2.0]), [9, 4], [5.0, 1.0]),))
    (entry,) = law.to_dict()
    again = law_of([entry])
    whole = law_of([{**entry, "epsilon": [2**64, 1]}])
    assert float(whole.reach(np.array(1.0), 0.9)) > 0
    assert float(again.reach(np.array(1.0), 0.9)) == float(law.reach(np.array(1.0), 0.9))
    with pytest.raises(ValueError, match="must have one shape, got"):
        law_of([{**entry, "inner": [1]}])
    with pytest.raises(ValueError, match="must have one shape, got"):
        law_of([{"weights": [1.0]}])


def convolved_coverage(reach: float, laplace: float, normal: float) -> float:
    """The probability of ``|L + Z| <= reach``: normal probabilities under the Laplace density."""
    scale = laplace / math.sqrt(2)

    def inside(draw: float) -> float:
        ends = scipy.stats.norm.cdf([(-reach - draw) / normal, (reach - draw) / normal])
        return float((ends[1] - ends[0]) * math.exp(-abs(draw) / scale) / (2 * scale))

    points = [0.0, reach, -reach]
    return float(scipy.integrate.quad(inside, -40 * scale, 40 * scale, points=points, limit=400)[0])


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("part", [0.04, 0.2, 0.5, 0.9, 0.99])
def test_the_reach_covers_as_the_convolution_says(part: float, level: float) -> None:
    laplace, normal = math.sqrt(part) * 3e-6, math.sqrt(1 - part) * 3e-6
    reach = float(laplace_normal_reach(np.array(laplace), np.array(normal), level))
    assert convolved_coverage(reach, laplace, normal) == pytest.approx(level, abs=1e-6)


def test_what_is_unknown_or_nothing_stays() -> None:
    reach = laplace_normal_reach(np.array([0.0, np.nan, 1.0]), np.array([0.0, 1.0, np.nan]), 0.95)
    assert reach[0] == 0
    assert np.isnan(reach[1:]).all()
