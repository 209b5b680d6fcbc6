"""A sum in whole units of a part of its sensitivity, so that noise of a bounded scale hides it."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Integers

UNITS_PER_EPSILON = 2**16
"""Units of a released sum in its sensitivity, for each unit of epsilon. The noise then has this
scale in units, which is the largest of which exact shares are drawn."""


def units_for(epsilon: float) -> int:
    """Units in the sensitivity of a sum that is released at epsilon, at least 1.

    Examples
    --------
    >>> units_for(0.5)
    32768
    """
    return max(1, int(UNITS_PER_EPSILON * epsilon))


def whole_units(total: Integers, sensitivity: Integers | int, units: int) -> Integers:
    """A sum in units of ``sensitivity / units``, rounded once to the nearest: half rounds up.

    ``floor(total units / sensitivity + 1/2)`` moves by exactly ``units`` when the total moves by
    the sensitivity, and never by more when it moves by less: rounding adds nothing to the
    sensitivity.

    Parameters
    ----------
    total : int64, shape (...).
    sensitivity : int64, from 1, shape (...).
    units : from 1, and such that ``sensitivity * units`` stays below 2**61 and
        ``total / sensitivity * units`` below 2**62. A budget of at most ``MAX_BUDGET`` has fewer
        than 2**26 units, so that every sensitivity below 2**35 will do.

    Examples
    --------
    >>> whole_units(np.array([-10, -4, 0, 4, 10]), 10, 4).tolist()
    [-4, -2, 0, 2, 4]
    """
    whole, rest = np.divmod(total, sensitivity)
    # floor(x + 1/2) of x = rest units / sensitivity, in whole numbers
    return np.asarray(whole * units + (2 * rest * units + sensitivity) // (2 * sensitivity))
