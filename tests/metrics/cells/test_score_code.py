"""Codes in the order of scores, and the cells between edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.metrics.cells.score_scale import (
    HALF_CODE,
    cells_of,
    probability_codes,
    probability_scores,
    signed_codes,
    signed_scores,
    truncated,
)

NUMBERS = st.floats(allow_nan=False)
PROBABILITIES = st.floats(0, 1)
BITS = st.integers(0, 52)
PROBABILITY_CODES = st.integers(0, 2 * HALF_CODE)


@given(NUMBERS, NUMBERS)
def test_codes_of_numbers_keep_their_order(first: float, second: float) -> None:
    one, two = signed_codes([first, second]).tolist()
    assert (one < two, one == two) == (first < second, first == second)


@given(PROBABILITIES, PROBABILITIES)
def test_codes_of_probabilities_keep_their_order(first: float, second: float) -> None:
    one, two = probability_codes([first, second]).tolist()
    assert (one < two, one == two) == (first < second, first == second)


@given(NUMBERS)
def test_numbers_come_back_from_their_codes(number: float) -> None:
    assert signed_scores(signed_codes(number)) == number


@given(PROBABILITIES)
def test_probabilities_come_back_from_their_codes(probability: float) -> None:
    assert probability_scores(probability_codes(probability)) == probability


@given(PROBABILITIES.filter(lambda p: p > 0.5))
def test_codes_are_reflected_in_a_half(probability: float) -> None:
    """1 - p is exact from 1/2 on."""
    codes = probability_codes([probability, 1 - probability])
    assert int(codes.sum()) == 2 * HALF_CODE


def test_both_ends_are_told_apart_to_the_last_double() -> None:
    low = [0.0, -0.0, 5e-324, 1e-300]
    high = [1 - 2**-52, 1 - 2**-53, 1.0]
    assert probability_codes(low).tolist()[:3] == [0, 0, 1]
    assert np.all(np.diff(probability_codes(low[1:] + high)) > 0)


@given(NUMBERS, NUMBERS, BITS)
def test_a_truncated_code_is_a_threshold_on_numbers(first: float, second: float, bits: int) -> None:
    """``code(s) >= c`` if and only if ``s >= score(c)``, for a cleared code c."""
    cut = truncated(signed_codes(second), bits)
    assert bool(signed_codes(first) >= cut) == bool(first >= signed_scores(cut))


@given(PROBABILITIES, PROBABILITY_CODES, BITS)
def test_a_truncated_code_is_a_threshold_on_probabilities(
    score: float, code: int, bits: int
) -> None:
    """For codes below 1/2, and from there on for those of a probability."""
    cut = truncated(code, bits)
    if cut > HALF_CODE:
        cut = probability_codes(probability_scores(cut))
    assert bool(probability_codes(score) >= cut) == bool(score >= probability_scores(cut))


@given(NUMBERS, BITS)
def test_truncation_goes_towards_zero_and_is_done_once(number: float, bits: int) -> None:
    cut = truncated(signed_codes(number), bits)
    assert abs(int(cut)) <= abs(int(signed_codes(number)))
    assert int(truncated(cut, bits)) == int(cut)
    assert abs(int(cut)) % 2 ** (52 - bits) == 0


@pytest.mark.parametrize("bits", [-1, 53])
def test_bits_outside_the_significand_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match=f"bits must be from 0 to 52, got {bits}"):
        truncated(1, bits)


@given(st.lists(PROBABILITIES, min_size=1), st.lists(PROBABILITIES, min_size=1, unique=True))
def test_a_cell_is_the_number_of_edges_at_most_the_score(
    scores: list[float], unordered: list[float]
) -> None:
    edges = np.sort(unordered)
    expected = [sum(1 for edge in edges if edge <= score) for score in scores]
    assert cells_of(scores, edges).tolist() == expected
