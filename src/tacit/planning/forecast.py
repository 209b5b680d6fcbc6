"""What is predicted of an estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_ERROR = 0.25
"""Above this an AUC of 0.5 and one of 1 are not told apart."""

FEWEST_ERRORS = 3.0
"""A class below this many standard errors of its noisy size is drowned; below five, predictions,
which are linear in the noise, are too small."""


@dataclass(frozen=True)
class Forecast:
    """The predicted error of an estimate about this data's own figure.

    Parameters
    ----------
    standard_error : by privacy noise, by drawing who reports what, and by records' unknown places
        within cells.
    bias : how far the mean lies above the exact figure.
    smaller_class, class_error : the smaller class's size, and the standard error with which the
        protocol knows class sizes; 0 where it knows them exactly.
    """

    standard_error: float
    bias: float = 0.0
    smaller_class: float = math.inf
    class_error: float = 0.0

    @property
    def error(self) -> float:
        """The root mean square error."""
        return math.hypot(self.standard_error, self.bias)

    @property
    def obstacle(self) -> str | None:
        """Why nothing could be said, or None."""
        if self.smaller_class < FEWEST_ERRORS * self.class_error:
            return (
                f"the noise on class sizes, {self.class_error:.3g} records, drowns the smaller "
                f"class of {self.smaller_class:.0f}"
            )
        if not self.error <= MOST_ERROR:
            return f"the predicted error, {self.error:.2g}, is above {MOST_ERROR}"
        return None


def placement(cells: tuple[Floats, Floats], corrected: bool = False) -> float:
    """The variance of not knowing where in their cells records lie, from expected counts.

    A cell's pairs, p positives and n negatives placed at random, win with variance ``p n (p + n +
    1) / 12`` of their number (Mann and Whitney 1947); over Poisson counts that is ``p n (p + n + 3)
    / 12`` of the expected ones.

    Parameters
    ----------
    cells : expected positives and negatives, shapes (B,).
    corrected : whether ``density_correction`` is added, which sparse counts make vary: it is
        ``sum n_j (p_{j+1} - p_{j-1}) / 12``, and the variance of each product ``n p``.

    Examples
    --------
    >>> round(placement((np.full(10, 10.0), np.full(10, 10.0))), 7)
    1.92e-05
    """
    ours, theirs = cells
    spread = float(np.sum(ours * theirs * (ours + theirs + 3))) / 12
    if corrected:
        products = np.sum(theirs[1:] * ours[:-1]) + np.sum(theirs[:-1] * ours[1:])
        steps = np.sum(theirs * _steps(ours) ** 2) + np.sum(ours * _steps(theirs) ** 2)
        spread += float(products + steps) / 144
    return spread / float(ours.sum() * theirs.sum()) ** 2


def _steps(cells: Floats) -> Floats:
    """How much more the next cell holds than the one before."""
    padded = np.pad(cells, 1, mode="edge")
    return padded[2:] - padded[:-2]
