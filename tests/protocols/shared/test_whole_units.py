"""Sums in whole units of a part of their sensitivity."""

from fractions import Fraction
from math import floor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.counts.influence import units_for, whole_units
from tacit.privacy.cost import MAX_BUDGET, MIN_BUDGET
from tacit.privacy.exact import MAX_SHARED_SCALE

TOTALS = st.integers(-(2**50), 2**50)
SENSITIVITIES = st.integers(1, 2**33)
UNITS = st.integers(1, units_for(MAX_BUDGET))


@given(TOTALS, SENSITIVITIES, UNITS)
def test_a_sum_is_rounded_once_to_the_nearest_unit(
    total: int, sensitivity: int, units: int
) -> None:
    exact = floor(Fraction(total * units, sensitivity) + Fraction(1, 2))
    if abs(exact) < 2**62:
        assert int(whole_units(np.array(total), sensitivity, units)) == exact


def test_units_give_noise_of_the_largest_shared_scale() -> None:
    assert units_for(1.0) / 1.0 == MAX_SHARED_SCALE
    for epsilon in np.geomspace(MIN_BUDGET, MAX_BUDGET, 200).tolist():
        assert units_for(epsilon) / epsilon <= MAX_SHARED_SCALE
    assert units_for(1e-9) == 1
    assert units_for(MAX_BUDGET) < 2**26
