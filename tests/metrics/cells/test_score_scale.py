"""Public maps of scores to positions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics.cells.score_scale import KNOT_LEVELS, SCALES, ScoreScale, named_scale

FIXED = ("probability", "log-odds", "real")
PROBABILITIES = st.floats(0, 1)
NUMBERS = st.floats(allow_nan=False)
DYADIC = np.arange(1, 2**KNOT_LEVELS) / 2**KNOT_LEVELS


@pytest.mark.parametrize("name", FIXED)
def test_knots_have_dyadic_positions_and_come_back_exactly(name: str) -> None:
    scale = named_scale(name)
    np.testing.assert_array_equal(scale.positions(scale.knots), DYADIC)
    np.testing.assert_array_equal(scale.scores(DYADIC), scale.knots)


@pytest.mark.parametrize("name", ["log-odds", "real"])
@given(first=NUMBERS, second=NUMBERS)
def test_positions_of_numbers_keep_their_order(name: str, first: float, second: float) -> None:
    low, high = named_scale(name).positions(sorted((first, second))).tolist()
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize("name", ["probability", "even"])
@given(first=PROBABILITIES, second=PROBABILITIES)
def test_positions_of_probabilities_keep_their_order(
    name: str, first: float, second: float
) -> None:
    low, high = named_scale(name).positions(sorted((first, second))).tolist()
    assert 0 <= low <= high <= 1


@given(PROBABILITIES)
def test_a_cell_is_where_its_edges_say(score: float) -> None:
    """``position >= e`` if and only if ``score >= score of e``, for every edge e of a cell."""
    scale = named_scale("probability")
    reached = scale.positions([score]) >= DYADIC
    np.testing.assert_array_equal(reached, scale.knots <= score)


@given(PROBABILITIES)
def test_even_positions_are_the_scores(score: float) -> None:
    assert named_scale("even").positions([score]).tolist() == [score]


def test_probabilities_and_their_log_odds_have_the_same_position() -> None:
    log_odds = np.linspace(-20, 20, 401)
    probabilities = 1 / (1 + np.exp(-log_odds))
    by_log_odds = named_scale("log-odds").positions(log_odds)
    by_probabilities = named_scale("probability").positions(probabilities)
    tenth_of_a_cell = 0.1 / 2**KNOT_LEVELS
    np.testing.assert_allclose(by_probabilities, by_log_odds, atol=tenth_of_a_cell)


@given(st.floats(1e-9, 0.999))
def test_scores_come_back_from_their_positions(position: float) -> None:
    for name in SCALES:
        scale = named_scale(name)
        assert scale.positions(scale.scores([position]))[0] == pytest.approx(position, abs=1e-5)


@pytest.mark.parametrize(
    ("knots", "low", "high"),
    [
        ([0.5], None, 1.0),
        ([0.5, 0.5], 0.0, 1.0),
        ([0.5], 0.0, 0.5),
        ([], 0.0, 1.0),
        ([np.inf], 0.0, None),
        ([-1.01e308, -1e308, 1e308, 1.01e308], None, None),
    ],
)
def test_knots_must_ascend(knots: list[float], low: float | None, high: float | None) -> None:
    with pytest.raises(ValueError, match="cell edges"):
        ScoreScale(np.array(knots), low, high)


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scale must be one of .*, got 'octaves'"):
        named_scale("octaves")


@pytest.mark.parametrize("name", SCALES)
def test_slopes_and_open_ends_give_the_positions_nearby(name: str) -> None:
    scale = named_scale(name)
    below, above = scale.open_ends
    knots = scale.knots
    middles = (knots[:-1] + knots[1:]) / 2
    starts = knots[:-1]
    lines = scale.positions(starts) + scale.slopes(starts) * (middles - starts)
    np.testing.assert_allclose(scale.positions(middles), lines, rtol=1e-12)
    assert (below is None) == (scale.low is not None)
    if below is not None and above is not None:
        # half of an open cell lies within the width of its neighbour
        half = 0.5 * float(scale.slopes(np.array([below[0] - below[1]]))[0])
        assert scale.positions(below[0] - below[1]) == pytest.approx(half)
        assert scale.positions(above[0] + above[1]) == pytest.approx(1 - half)
