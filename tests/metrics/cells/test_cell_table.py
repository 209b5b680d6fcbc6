"""The table of cells agrees with a search among all edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics.cells.score_scale import CellTable, cells_of, named_scale

NUMBERS = st.floats(allow_nan=False)
EDGES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True)


@given(edges=EDGES, scores=st.lists(NUMBERS))
def test_any_scores_have_the_cells_that_a_search_finds(
    edges: list[float], scores: list[float]
) -> None:
    ends = np.array(sorted(edges))
    numbers = np.array([*scores, *edges], dtype=np.float64)
    np.testing.assert_array_equal(CellTable(ends).cells(numbers), cells_of(numbers, ends))


@pytest.mark.parametrize("name", ["probability", "log-odds", "real"])
def test_scores_at_and_beside_knots_have_their_cells(name: str) -> None:
    knots = named_scale(name).knots
    scores = np.concatenate([knots, np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)])
    np.testing.assert_array_equal(CellTable(knots).cells(scores), cells_of(scores, knots))
