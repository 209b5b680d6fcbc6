"""Distribution functions by monotone cubics, and the area of two of them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.interpolate import PchipInterpolator

from tacit.metrics.cells.score_distribution import ScoreDistribution

EDGES = np.array([0.1, 0.15, 0.4, 0.7, 0.95])
SHARES = st.lists(st.floats(0, 1), min_size=EDGES.size, max_size=EDGES.size).map(sorted)


def closed(values: Any) -> ScoreDistribution:
    return ScoreDistribution(EDGES, np.asarray(values, dtype=np.float64))


@given(SHARES, st.floats(0, 1))
def test_it_is_scipy_s_monotone_cubic(values: list[float], score: float) -> None:
    borders, reached = np.concatenate([[0.0], EDGES, [1.0]]), np.array([0.0, *values, 1.0])
    with np.errstate(over="ignore"):
        expected = float(PchipInterpolator(borders, reached)(score))
    assert closed(values).at([score])[0] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(SHARES, SHARES)
def test_the_area_is_the_integral(upper: list[float], lower: list[float]) -> None:
    """Gauss-Legendre on three points against an adaptive quadrature, cell by cell."""
    above, below = closed(upper), closed(lower)
    borders = np.concatenate([[0.0], EDGES, [1.0]])
    with np.errstate(over="ignore"):
        density = PchipInterpolator(borders, np.array([0.0, *upper, 1.0])).derivative()
    expected = sum(
        quad(lambda s: float(below.at([s])[0]) * float(density(s)), low, high)[0]
        for low, high in pairwise(borders)
    )
    assert float(above.area_above(below)) == pytest.approx(expected, abs=1e-9)


def test_several_functions_are_each_their_own() -> None:
    rows = np.sort(np.random.default_rng(0).random((3, 4, EDGES.size)), axis=-1)
    several, other = closed(rows), closed(rows[::-1])
    scores = np.linspace(0, 1, 7)
    assert several.at(scores).shape == (3, 4, 7)
    for place in np.ndindex(3, 4):
        alone = closed(rows[place])
        np.testing.assert_array_equal(several.at(scores)[place], alone.at(scores))
        found = several.area_above(other)[place]
        assert found == pytest.approx(float(alone.area_above(closed(rows[::-1][place]))), abs=1e-14)


BAD: list[tuple[NDArray[np.float64], Any, str]] = [
    (EDGES, [0.1, 0.3, 0.2, 0.4, 0.5], "nondecreasing"),
    (EDGES, [-0.1, 0.3, 0.3, 0.4, 0.5], "nondecreasing"),
    (EDGES, [0.1, 0.3, 0.3, 0.4, 1.1], "nondecreasing"),
    (EDGES, [0.1, np.nan, 0.3, 0.4, 0.5], "nondecreasing"),
    (EDGES, np.full(5, np.inf), "nondecreasing"),
    (EDGES, [0.1, 0.3], r"values must have shape \(\.\.\., 5\), got \(2,\)"),
    (EDGES[::-1], [0.1, 0.2, 0.3, 0.4, 0.5], "edges must ascend"),
    (np.array([0.5, 1.0]), [0.1, 0.2], "edges must ascend between 0 and 1"),
    (np.zeros(0), [], r"an inner edge or more, got shape \(0,\)"),
]


@pytest.mark.parametrize(("edges", "values", "said"), BAD)
def test_what_is_no_distribution_is_refused(
    edges: NDArray[np.float64], values: Any, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        ScoreDistribution(edges, np.asarray(values, dtype=np.float64))
