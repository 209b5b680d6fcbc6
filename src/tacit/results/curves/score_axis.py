"""The scores along which a histogram's cells lie: where cells end, and what a score states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.data import units
from tacit.metrics.cells.score_scale import EVEN, ScoreScale, named_scale
from tacit.metrics.functional import reaching

HALVES = {units.PROBABILITY: 0.5, units.LOG_ODDS: 0.0}
"""Thresholds that state the probability 1/2, by the unit of scores; real numbers have none."""


@dataclass(frozen=True, eq=False)
class ScoreAxis:
    """Equal cells of positions, and the scores that they are of.

    Parameters
    ----------
    scale : the map of scores to positions.
    unit : what the scores are: ``"probability"``, ``"log-odds"`` or ``"real"``.

    Examples
    --------
    >>> ScoreAxis(named_scale("log-odds"), "log-odds").edges(2).tolist()
    [-inf, 0.0, inf]
    """

    scale: ScoreScale
    unit: str = units.PROBABILITY

    @property
    def half(self) -> float | None:
        """The score that states the probability 1/2; None where scores state none."""
        return HALVES.get(self.unit)

    @cached_property
    def is_fixed(self) -> bool:
        """Whether the cells were settled before any record was seen."""
        fixed = (named_scale(name).borders for name in (EVEN, self.unit))
        return any(np.array_equal(self.scale.borders, borders) for borders in fixed)

    def edges(self, cells: int) -> Floats:
        """The borders of so many cells, shape (cells + 1,); infinite at open ends."""
        return self.scale.scores(np.linspace(0.0, 1.0, cells + 1))

    def middles(self, cells: int) -> Floats:
        """A finite score inside every cell, that of its middle position, shape (cells,)."""
        return self.scale.scores((np.arange(cells) + 0.5) / cells)

    def stated(self, cells: int) -> Floats:
        """The middles as ``in_unit_interval`` gives them, shape (cells,)."""
        return in_unit_interval(self.middles(cells), self.unit)

    def reaching(self, thresholds: Floats, cells: int) -> Floats:
        """The fraction of each cell that reaches each threshold, shape (T, cells).

        Raises
        ------
        ValueError : for a threshold that no score of the unit can be.
        """
        low, high = units.RANGES[self.unit]
        for threshold in thresholds:
            if not low <= threshold <= high:
                raise ValueError(f"a threshold must be in [{low:g}, {high:g}], got {threshold}")
        return reaching(np.linspace(0.0, 1.0, cells + 1), self.scale.positions(thresholds))


def in_unit_interval(scores: ArrayLike, unit: str) -> Floats:
    """Scores as numbers from 0 to 1, in the same order.

    Log-odds become the probabilities that they state, real numbers the positions of the fixed scale
    for them, which state nothing.

    Examples
    --------
    >>> in_unit_interval([-750.0, 0.0, 750.0], "log-odds").tolist()
    [0.0, 0.5, 1.0]
    """
    if unit == units.REAL:
        return named_scale(units.REAL).positions(scores)
    return units.converted(scores, unit, units.PROBABILITY)


EVEN_AXIS = ScoreAxis(named_scale(EVEN))
"""Equal cells of [0, 1], as in the papers."""
