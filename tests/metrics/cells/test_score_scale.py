"""Maps of scores to positions, the code whose short codes are their edges, the table of cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics.cells import score_scale

NUMBERS = st.floats(allow_nan=False)
PROBABILITIES = st.floats(0, 1)
BITS = st.integers(0, 52)


@given(NUMBERS, NUMBERS)
def test_codes_keep_their_order_and_give_their_numbers(first: float, second: float) -> None:
    one, two = score_scale.signed_codes([first, second]).tolist()
    assert (one < two, one == two) == (first < second, first == second)
    assert score_scale.signed_scores(score_scale.signed_codes(first)) == first


@given(NUMBERS, NUMBERS, BITS)
def test_a_truncated_code_is_a_threshold_on_numbers(first: float, second: float, bits: int) -> None:
    """``code(s) >= c`` if and only if ``s >= score(c)``, for a cleared code c."""
    cut = score_scale.truncated(score_scale.signed_codes(second), bits)
    assert bool(score_scale.signed_codes(first) >= cut) == bool(
        first >= score_scale.signed_scores(cut)
    )


@given(NUMBERS, BITS)
def test_truncation_goes_towards_zero_and_is_done_once(number: float, bits: int) -> None:
    cut = score_scale.truncated(score_scale.signed_codes(number), bits)
    assert abs(int(cut)) <= abs(int(score_scale.signed_codes(number)))
    assert int(score_scale.truncated(cut, bits)) == int(cut)
    assert abs(int(cut)) % 2 ** (52 - bits) == 0


@given(st.lists(PROBABILITIES, min_size=1), st.lists(PROBABILITIES, min_size=1, unique=True))
def test_a_cell_is_the_number_of_edges_at_most_the_score(
    scores: list[float], unordered: list[float]
) -> None:
    edges = np.sort(unordered)
    expected = [sum(1 for edge in edges if edge <= score) for score in scores]
    assert score_scale.cells_of(scores, edges).tolist() == expected


FIXED = ("probability", "log-odds", "real")
DYADIC = np.arange(1, 2**score_scale.BORDER_LEVELS) / 2**score_scale.BORDER_LEVELS


@pytest.mark.parametrize("name", FIXED)
def test_knots_have_dyadic_positions_and_come_back_exactly(name: str) -> None:
    scale = score_scale.named_scale(name)
    np.testing.assert_array_equal(scale.positions(scale.borders), DYADIC)
    np.testing.assert_array_equal(scale.scores(DYADIC), scale.borders)


@pytest.mark.parametrize("name", score_scale.SCALES)
@given(data=st.data())
def test_positions_keep_their_order(name: str, data: st.DataObject) -> None:
    numbers = PROBABILITIES if name in ("probability", "even") else NUMBERS
    low, high = (
        score_scale.named_scale(name)
        .positions(sorted([data.draw(numbers), data.draw(numbers)]))
        .tolist()
    )
    assert 0 <= low <= high <= 1


@given(PROBABILITIES)
def test_a_cell_is_where_its_edges_say(score: float) -> None:
    """``position >= e`` if and only if ``score >= score of e``, for every edge e of a cell."""
    scale = score_scale.named_scale("probability")
    reached = scale.positions([score]) >= DYADIC
    np.testing.assert_array_equal(reached, scale.borders <= score)


@pytest.mark.parametrize(
    ("borders", "low", "high"),
    [
        ([0.5], None, 1.0),
        ([0.5, 0.5], 0.0, 1.0),
        ([0.5], 0.0, 0.5),
        ([], 0.0, 1.0),
        ([np.inf], 0.0, None),
        ([-1.01e308, -1e308, 1e308, 1.01e308], None, None),
    ],
)
def test_knots_must_ascend(borders: list[float], low: float | None, high: float | None) -> None:
    with pytest.raises(ValueError, match="cell edges"):
        score_scale.ScoreScale(np.array(borders), low, high)


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scale must be one of .*, got 'octaves'"):
        score_scale.named_scale("octaves")


@pytest.mark.parametrize("name", score_scale.SCALES)
def test_slopes_and_open_ends_give_the_positions_nearby(name: str) -> None:
    scale = score_scale.named_scale(name)
    below, above = scale.open_ends
    borders = scale.borders
    middles = (borders[:-1] + borders[1:]) / 2
    starts = borders[:-1]
    lines = scale.positions(starts) + scale.slopes(starts) * (middles - starts)
    np.testing.assert_allclose(scale.positions(middles), lines, rtol=1e-12)
    assert (below is None) == (scale.low is not None)
    if below is not None and above is not None:
        # half of an open cell lies within the width of its neighbour
        half = 0.5 * float(scale.slopes(np.array([below[0] - below[1]]))[0])
        assert scale.positions(below[0] - below[1]) == pytest.approx(half)
        assert scale.positions(above[0] + above[1]) == pytest.approx(1 - half)


EDGES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, unique=True)


@given(edges=EDGES, scores=st.lists(NUMBERS))
def test_any_scores_have_the_cells_that_a_search_finds(
    edges: list[float], scores: list[float]
) -> None:
    ends = np.array(sorted(edges))
    with np.errstate(over="ignore"):
        beside = [np.nextafter(ends, end) for end in (-np.inf, np.inf)]
    numbers = np.concatenate([scores, ends, *beside])
    expected = np.searchsorted(ends, numbers, side="right")
    np.testing.assert_array_equal(score_scale.CellTable(ends).cells(numbers), expected)
    # of many scores, also infinite ones
    many = np.resize(np.append(numbers, np.inf), score_scale.AT_ONCE + numbers.size)
    expected = np.searchsorted(ends, many, side="right")
    np.testing.assert_array_equal(score_scale.cells_of(many, ends), expected)
