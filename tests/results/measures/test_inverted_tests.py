"""Intervals by inverted tests, of figures that have a bound."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.results.measures.smooth_calibration import accepted, even_normals

PATH = np.linspace(0.0, 8.0, 81)
NOISE = even_normals(512, 1)[:, 0]


@pytest.mark.parametrize("truth", [0.0, 0.5, 3.0])
def test_a_distance_is_held_at_its_bound_too(truth: float) -> None:
    """The distance |x| of a normal x from 0, over 1,000 evenly spread ones: no chance is in it."""
    drawn = np.abs(PATH[:, np.newaxis] + NOISE)
    estimates = np.abs(truth + even_normals(1_000, 1)[:, 0])
    found = [accepted(each, PATH, drawn, 0.95) for each in estimates.tolist()]
    held = np.mean([each.low <= truth <= each.high for each in found])
    above = np.mean([each.middle > truth for each in found])
    assert held == pytest.approx(0.975 if truth == 0 else 0.95, abs=0.006)
    assert above == pytest.approx(0.5, abs=0.02)


def test_normal_numbers_that_are_spread_evenly_have_normal_quantiles() -> None:
    normals = even_normals(256, 3)
    assert normals.mean(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    for reach, inside in [(0.6745, 0.5), (1.0, 0.6827), (1.96, 0.95)]:
        assert np.mean(np.abs(normals) < reach) == pytest.approx(inside, abs=0.01)
