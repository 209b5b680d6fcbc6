"""Units of scores: what a file's numbers mean, by name, and how one is converted to another.

An AUC over several clients compares their scores with each other. One client in percent next to
others from 0 to 1 gives a wrong figure that looks like any other; a range of private scores, or a
refusal that one record causes, would reveal something about that record to others. So units are
named, and names are compared.

Maps of scores that an engine computes as memory does, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.data.errors import DataError


@dataclass(frozen=True)
class LinearMap:
    """``(score - shift) / divisor``, and no farther than two ends: a map that never falls.

    A difference, a quotient and a comparison of doubles round alike everywhere (IEEE 754).

    Parameters
    ----------
    shift, divisor : finite; the divisor is positive.
    low, high : the ends of the images; infinite where there are none.

    Examples
    --------
    >>> LinearMap(divisor=100.0, low=0.0, high=1.0)([50.0, 120.0])
    array([0.5, 1. ])
    """

    shift: float = 0.0
    divisor: float = 1.0
    low: float = -np.inf
    high: float = np.inf

    def __call__(self, scores: ArrayLike) -> Floats:
        """The images of scores."""
        moved = np.asarray(scores, dtype=np.float64)
        if self.moves:
            moved = (moved - self.shift) / self.divisor
        if np.isinf(self.low) and np.isinf(self.high):
            return moved
        return np.clip(moved, self.low, self.high)

    @property
    def moves(self) -> bool:
        """Whether there is a difference or a quotient."""
        return (self.shift, self.divisor) != (0.0, 1.0)


PROBABILITY, PERCENT, LOG_ODDS, REAL = "probability", "percent", "log-odds", "real"
UNITS = (PROBABILITY, PERCENT, LOG_ODDS, REAL)
"""From 0 to 1; from 0 to 100; the logarithm of p / (1 - p); any other number."""

MAX_LOG_ODDS = 750.0
"""Largest size of log-odds. The probabilities 0 and 1 get it: the smallest positive double has
log-odds of -744.4, the largest below 1 of 36.7, so both ends stay apart from all others."""

ENDS_OF_LOG_ODDS = (
    f"the log-odds of the probabilities 0 and 1 are written {-MAX_LOG_ODDS:g} and {MAX_LOG_ODDS:g}"
)
"""What a refusal of infinite log-odds adds."""

RANGES = {
    PROBABILITY: (0.0, 1.0),
    PERCENT: (0.0, 100.0),
    LOG_ODDS: (-np.inf, np.inf),
    REAL: (-np.inf, np.inf),
}
"""The numbers that can be of a unit."""


def check_unit(unit: object) -> str:
    """A unit's name.

    Raises
    ------
    DataError : for another word.
    """
    if unit not in UNITS:
        raise DataError(f"unit must be one of {', '.join(UNITS)}, got {unit!r}")
    return str(unit)


def are_convertible(unit: str, target: str) -> bool:
    """Whether scores of one unit can be converted to another; those of an unknown unit cannot.

    Examples
    --------
    >>> are_convertible("percent", "probability"), are_convertible("real", "probability")
    (True, False)
    """
    if unit not in UNITS or target not in UNITS:
        return False
    return unit == target or REAL not in (unit, target)


def is_exact(unit: str, target: str) -> bool:
    """Whether the conversion of scores falls nowhere, not even by rounding: it has no logarithm."""
    return unit == target or LOG_ODDS not in (unit, target)


def converted(scores: ArrayLike, unit: str, target: str) -> Floats:
    """Scores of one unit in another, by an increasing map; numbers beyond a unit's end are its end.

    Scores whose unit does not change stay as they are.

    Parameters
    ----------
    scores : shape (M,), in ``unit``.
    unit, target : units, before and after.

    Raises
    ------
    DataError : for units that cannot be converted into each other.

    Examples
    --------
    >>> converted([0.0, 50.0, 120.0], "percent", "probability")
    array([0. , 0.5, 1. ])
    >>> converted([-750.0, 0.0], "log-odds", "percent")
    array([ 0., 50.])
    """
    if not are_convertible(unit, target):
        raise DataError(f"scores in {unit} cannot be converted to {target}")
    values = np.asarray(scores, dtype=np.float64)
    if unit == target:
        return values
    known = _expit(values) if unit == LOG_ODDS else values / 100 if unit == PERCENT else values
    probabilities: Floats = np.clip(known, 0.0, 1.0)
    if target == LOG_ODDS:
        return _logit(probabilities)
    return 100 * probabilities if target == PERCENT else probabilities


def conversion(unit: str, target: str) -> Callable[[Floats], Floats]:
    """``converted`` as a map of scores; of percentages one that an engine can compute.

    Examples
    --------
    >>> conversion("percent", "probability")
    LinearMap(shift=0.0, divisor=100.0, low=0.0, high=1.0)
    """
    if unit == target:
        return LinearMap()
    if (unit, target) == (PERCENT, PROBABILITY):
        return LinearMap(divisor=100.0, low=0.0, high=1.0)
    return partial(converted, unit=unit, target=target)


def outside(scores: ArrayLike, unit: str) -> NDArray[np.bool_]:
    """Which numbers cannot be of a unit, shape (M,)."""
    values = np.asarray(scores, dtype=np.float64)
    low, high = RANGES[unit]
    return (values < low) | (values > high)


def _expit(values: Floats) -> Floats:
    """``1 / (1 + exp(-x))``, for negative x as ``exp(x) / (1 + exp(x))``: nothing overflows."""
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, small) / (1.0 + small)


def _logit(values: Floats) -> Floats:
    """``log(p / (1 - p))``, at 0 and 1 the largest size."""
    with np.errstate(divide="ignore"):
        return np.clip(np.log(values) - np.log1p(-values), -MAX_LOG_ODDS, MAX_LOG_ODDS)
