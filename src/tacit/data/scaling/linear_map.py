"""Maps of scores that an engine computes as memory does, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats


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
