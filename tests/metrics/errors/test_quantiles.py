"""The quantile of a Laplace and a normal error together, beside their convolution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics.errors import laplace_normal_reach


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


@pytest.mark.parametrize("level", [0.1, 0.68, 0.95, 0.999])
def test_either_error_alone_has_its_own_quantile(level: float) -> None:
    normal = laplace_normal_reach(np.array(0.0), np.array(2.0), level)
    assert float(normal) == pytest.approx(2 * scipy.stats.norm.isf((1 - level) / 2))
    alone = laplace_normal_reach(np.array(2.0), np.array(0.0), level)
    assert float(alone) == pytest.approx(-math.log(1 - level) * math.sqrt(2), rel=1e-9)


@given(st.floats(0, 1), st.floats(1e-9, 1e9))
def test_at_95_percent_it_rises_with_the_laplace_part_and_scales(part: float, unit: float) -> None:
    parts = np.array([part, min(part + 0.01, 1.0)])
    low, high = laplace_normal_reach(np.sqrt(parts) * unit, np.sqrt(1 - parts) * unit, 0.95) / unit
    assert 1.9599 < low <= high * (1 + 1e-5) < 2.1184


def test_what_is_unknown_or_nothing_stays() -> None:
    reach = laplace_normal_reach(np.array([0.0, np.nan, 1.0]), np.array([0.0, 1.0, np.nan]), 0.95)
    assert reach[0] == 0
    assert np.isnan(reach[1:]).all()
