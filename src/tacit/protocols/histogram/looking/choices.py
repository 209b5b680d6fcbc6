"""What follows the looks so far: which query comes next, and with what part of epsilon.

The server decides from noisy counts only. A zoom, where a cell holds too much of a class; else the
parts of another look at the same cells that make the AUC's variance least; where that is none, the
one number with all parts that are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import PROBABILITY, ScoreScale
from tacit.privacy.cost import Adjacency
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.protocols.histogram.looking import looks
from tacit.protocols.histogram.looking.seen import Seen
from tacit.protocols.histogram.second_round import influences_of
from tacit.protocols.shared.zoomed_cells import best_scales, zoomed
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS

MORE_PARTS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
"""Parts of epsilon that another look may get; 0 for none."""

WORTHWHILE = 0.95
"""Largest ratio of the predicted standard errors with and without another look at which it is
taken."""

UNSHOWN_VARIANCE = 0.25
"""Variance that counts for a class that will not show."""


@dataclass(frozen=True, eq=False)
class Next:
    """The next query: its parts, whether it is a look, and the scale where that is a new one."""

    parts: int
    look: bool
    scale: ScoreScale | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal queries."""
        knots = b"" if self.scale is None else self.scale.knots.tobytes()
        return self.parts, self.look, knots


@dataclass(frozen=True)
class Choices:
    """How a run of looks divides epsilon.

    Parameters
    ----------
    protocol : the settings of the histogram.
    inflation : the noise that arrives, as a multiple of what the guarantee needs.
    """

    protocol: Any
    inflation: float = 1.0

    def precisions(self, parts: int) -> tuple[float, float]:
        """The inverse noise variances of a look of so many parts."""
        by_class, by_cell = (
            self.inflation * float(discrete_laplace_variance(self.protocol.distance / epsilon))
            for epsilon in looks.look_epsilons(self.protocol.epsilon, parts)
        )
        return 1 / by_class, 1 / by_cell

    def decided(self, seen: Seen, parts: tuple[int, ...]) -> list[Next]:
        """What follows these looks, for every replicate."""
        left = looks.PARTS - sum(parts)
        if len(parts) == looks.MAX_LOOKS or left <= looks.FIRST_PARTS:  # the number needs a part
            return [Next(left, look=False)] * seen.smaller.size
        again, least = self._best_parts(seen, left)
        crowded = seen.crowded(np.sqrt(least))
        zoom_parts = np.full(again.shape, looks.FIRST_PARTS)
        fine = self._fine(seen, left, least, crowded.any(axis=-1))
        if len(parts) == looks.MAX_LOOKS - 1 and crowded.any():
            zoom_parts, _ = self._best_parts(seen, left, alone=True)
        steps = []
        for row, more in enumerate(again.tolist()):
            at_fine_cells = fine[row]
            if at_fine_cells is not None:
                steps.append(at_fine_cells)
                continue
            finer = self._finer(seen, row, crowded[row])
            if finer is not None:
                steps.append(Next(int(zoom_parts[row]), look=True, scale=finer))
            else:
                steps.append(Next(more or left, look=bool(more)))
        return steps

    def _finer(self, seen: Seen, row: int, crowded: NDArray[np.bool_]) -> ScoreScale | None:
        """The zoomed scale of a replicate; None where nothing is crowded, or can be split."""
        if not crowded.any():
            return None
        cells = 1 << self.protocol.look_heights[-1]
        return zoomed(seen.scale, seen.counts[row], crowded, cells, seen.cell_error)

    def _fine(
        self, seen: Seen, left: int, least: Floats, crowded: NDArray[np.bool_]
    ) -> list[Next | None]:
        """For every replicate a look at fixed fine cells, where that pays; None elsewhere.

        It pays where many records make the noise less than what ties could hide in the cells of
        the first look, ``HIDDEN_TIES``, or where fine cells may part a crowd.
        """
        none: list[Next | None] = [None] * crowded.size
        if seen.knots is not None or self.protocol.height is not None or left < 2:
            return none
        fine_parts, variance = self._best_parts(seen, left, alone=True)
        pays = variance < WORTHWHILE**2 * (least + curves.HIDDEN_TIES**2)
        pays |= crowded & (self.protocol.scale == PROBABILITY)
        if not pays.any():
            return none
        scales = best_scales(self.protocol.scale, seen.counts, seen.scale)
        return [
            Next(looks.FIRST_PARTS if crowd else int(part), look=True, scale=scale) if pay else None
            for pay, crowd, part, scale in zip(pays, crowded, fine_parts, scales, strict=True)
        ]

    def _best_parts(
        self, seen: Seen, left: int, alone: bool = False
    ) -> tuple[NDArray[np.int64], Floats]:
        """The parts of another look with the least predicted variance, and that, shape (R,) each.

        With D the width of an influence, f the rest of epsilon, m the smaller class and s^2 the
        variance of a cell: ``2 D^2 / (f m)^2 + (s^2 B)^2 / (12 P^2 N^2)``, the noise of the one
        number and the product of both functions' errors; and the product of the smaller class's
        relative error with the functions'. Classes must show.

        Parameters
        ----------
        alone : whether the look will be at other cells, as many as there can be.
        """
        before = (0.0, 0.0) if alone else seen.precisions
        tried = [more for more in MORE_PARTS if more < left and (more or not alone)]
        cells = 1 << (self.protocol.look_heights[-1] if alone else seen.height)
        width = self._width(seen)
        variances = np.array(
            [self._predicted(seen, width, before, more, left, cells, alone) for more in tried]
        )
        best = np.argmin(variances, axis=0)
        if not alone:
            worthwhile = variances.min(axis=0) < WORTHWHILE**2 * variances[0]
            best = np.where(worthwhile, best, 0)
        return np.asarray(tried)[best], np.take_along_axis(variances, best[np.newaxis], axis=0)[0]

    def _predicted(
        self,
        seen: Seen,
        width: Floats,
        before: tuple[float, float],
        more: int,
        left: int,
        cells: int,
        alone: bool,
    ) -> Floats:
        """The AUC's variance after another look of some parts, shape (R,)."""
        added = self.precisions(more) if more else (0.0, 0.0)
        by_class, by_cell = (1 / (a + b) for a, b in zip(before, added, strict=True))
        smaller, pairs = seen.smaller, np.prod(seen.sizes, axis=-1)
        rest = self.protocol.epsilon * (left - more) / looks.PARTS
        by_number = 2 * (width / (rest * smaller)) ** 2
        by_functions = (by_cell * cells) ** 2 / 12 / pairs**2
        by_ties = 0.0 if alone else by_cell * seen.lone_mass
        linear = seen.linear_variance * by_cell * seen.precisions[1] * cells / (1 << seen.height)
        variance = by_number + by_functions + by_ties + by_class / smaller**2 * linear
        shown = smaller > CLEAR_CLASS_SIZE_IN_ERRORS * math.sqrt(by_class)
        return np.where(shown, variance, UNSHOWN_VARIANCE * (1 + 1 / (1 + more)))

    def _width(self, seen: Seen) -> Floats:
        """How far a record moves the smaller class's size times the AUC, shape (R,)."""
        if self.protocol.adjacency == Adjacency.REPLACE.value:
            return np.ones(seen.smaller.shape)
        area = influences_of(seen.published, seen.straight).area
        return np.maximum(area, 1 - area)
