"""The forms of calibration maps: steps, lines between knots, and a logistic curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.metrics import logistic
from tacit.metrics.cells.binning import checked_edges, checked_unit


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function: ``values[k]`` from ``edges[k]`` up to, but not at, ``edges[k + 1]``.

    Edges, shape (K + 1,), ascend from 0 to 1; values, shape (K,), lie within 0 and 1. Anything else
    raises ``ValueError``.
    """

    edges: Floats
    values: Floats
    kind: ClassVar[str] = "piecewise-constant"

    def __post_init__(self) -> None:
        edges = checked_edges(self.edges)
        _freeze(self, edges=edges, values=_checked_values(self.values, edges.size - 1))

    def __call__(self, scores: Floats) -> Floats:
        """The value of each score's step; 1 belongs to the last."""
        return self.values[np.searchsorted(self.edges[1:-1], scores, side="right")]


@dataclass(frozen=True, eq=False)
class Lines:
    """A function that is linear between knots, and constant before the first and after the last.

    Knots ascend within 0 and 1; values, as many, lie within 0 and 1. Anything else raises
    ``ValueError``.
    """

    knots: Floats
    values: Floats
    kind: ClassVar[str] = "piecewise-linear"

    def __post_init__(self) -> None:
        knots = _checked_values(self.knots, None, name="knots")
        if not (np.diff(knots) > 0).all():
            index = int(np.argmin(np.diff(knots) > 0))
            raise ValueError(f"knots must ascend, got {knots[index]} before {knots[index + 1]}")
        _freeze(self, knots=knots, values=_checked_values(self.values, knots.size))

    def __call__(self, scores: Floats) -> Floats:
        """The interpolated values; rounding takes none beyond its two knots' values."""
        above = np.searchsorted(self.knots, scores, side="right")
        left = self.values[np.maximum(above - 1, 0)]
        right = self.values[np.minimum(above, self.knots.size - 1)]
        between = np.interp(scores, self.knots, self.values)
        return np.clip(between, np.minimum(left, right), np.maximum(left, right))


@dataclass(frozen=True, eq=False)
class Logistic:
    """``expit(slope * logit(s) + intercept)``, both finite; s is kept a little off 0 and 1."""

    slope: float
    intercept: float
    kind: ClassVar[str] = "logistic"

    def __post_init__(self) -> None:
        for name in ("slope", "intercept"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r:.60}")

    def __call__(self, scores: Floats) -> Floats:
        """The probabilities."""
        return scipy.special.expit(self.slope * logistic.log_odds(scores) + self.intercept)


Curve = Steps | Lines | Logistic


def _checked_values(values: ArrayLike, size: int | None, name: str = "values") -> Floats:
    numbers = np.array(values, dtype=np.float64)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.size != (size or numbers.size):
        raise ValueError(f"{name} must have shape ({size or 'K'},), got {numbers.shape}")
    return checked_unit(numbers, name)


def _freeze(curve: Curve, **arrays: Floats) -> None:
    for name, array in arrays.items():
        array.flags.writeable = False
        object.__setattr__(curve, name, array)
