"""What straight lines in wide cells miss, beside the exact AUC of the same densities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocols.dpauc.estimate import line_errors

FINEST = 200_000


def exact_errors(powers: tuple[float, float], scale: ScoreScale) -> Floats:
    """``-integral of e- d(e+)`` by cell, where ``1 - F`` are powers of the distance to 1."""
    ends = np.concatenate([[0.0], scale.knots, [1.0]])
    errors = []
    for low, high in pairwise(ends.tolist()):
        # points that crowd where the densities are steep
        above = (1 - high) + (high - low) * np.linspace(0, 1, FINEST) ** 8
        part = (above - above[0]) / (above[-1] - above[0])
        rest = [above**power for power in powers]
        off = [part * (each[-1] - each[0]) + each[0] - each for each in rest]
        middle = (off[1][1:] + off[1][:-1]) / 2
        errors.append(float(np.sum(middle * np.diff(off[0]))))
    return np.array(errors)


def shares_of_powers(powers: tuple[float, float], scale: ScoreScale) -> Floats:
    ends = np.concatenate([[0.0], scale.knots, [1.0]])
    return np.array([-np.diff((1 - ends) ** power) for power in powers])


@pytest.mark.parametrize("powers", [(0.3, 0.5), (0.2, 0.25), (0.6, 0.4)])
def test_powers_of_the_distance_to_an_end_are_known(powers: tuple[float, float]) -> None:
    """The end cell's model is exact. Over a power of ten densities that are linear in log-odds
    err by 2 to 8 times as much as powers do, to the same side: the statement is cautious."""
    scale = ScoreScale(1 - 10.0 ** np.arange(-1, -7, -1), 0.0, 1.0)
    exact = exact_errors(powers, scale)
    stated = line_errors(shares_of_powers(powers, scale), scale)
    assert stated[-1] == pytest.approx(exact[-1], rel=1e-3)
    assert np.all(stated[2:-1] / exact[2:-1] > 1)
    assert np.all(stated[2:-1] / exact[2:-1] < 10)
    assert np.sign(exact[-1]) == np.sign(powers[0] - powers[1])


def test_equal_densities_leave_nothing() -> None:
    """Errors of both classes in proportion have no part in the AUC."""
    scale = ScoreScale(1 - 10.0 ** np.arange(-1, -7, -1), 0.0, 1.0)
    shares = shares_of_powers((0.4, 0.4), scale)
    np.testing.assert_allclose(line_errors(shares, scale), 0.0, atol=1e-15)


def test_a_mirrored_scale_has_mirrored_errors() -> None:
    knots = np.array([2.0**-20, 2.0**-10, 2.0**-3, 0.5, 0.75])
    shares = np.array([[0.05, 0.1, 0.1, 0.15, 0.2, 0.4], [0.3, 0.2, 0.2, 0.1, 0.1, 0.1]])
    here = line_errors(shares, ScoreScale(knots, 0.0, 1.0))
    # 1 - s turns positives into the class that scores lower
    there = line_errors(shares[::-1, ::-1], ScoreScale(np.sort(1 - knots), 0.0, 1.0))
    np.testing.assert_allclose(there[::-1], here, rtol=1e-6, atol=1e-12)


def test_scores_without_bounds_have_none() -> None:
    scale = ScoreScale(np.arange(5.0))
    assert not line_errors(np.full((3, 2, 6), 1 / 6), scale).any()
