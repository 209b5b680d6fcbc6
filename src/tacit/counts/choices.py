"""What follows the looks so far: which query comes next, and with what fraction of epsilon.

The server decides from noisy counts only. A zoom, where a cell holds too much of a class. For a
report, where its counts leave enough for the AUC: a tree of cells that are placed by the looks,
with the largest fraction of epsilon with which the AUC, of the tree and of one number with the
rest, keeps its noise below ``ENOUGH`` of its sampling error. Else the parts of another look at the
same cells that make the AUC's variance least; where that is none, the one number with all parts
that are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.arrays import Floats
from tacit.counts import looks
from tacit.counts.placing import knots_of, planned_height
from tacit.counts.pooling import Seen, product_variance
from tacit.counts.zoomed_cells import best_scales, recounted, zoomed
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import PROBABILITY, ScoreScale
from tacit.privacy.cost import Adjacency
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS, MIN_CLASS_SIZE_IN_ERRORS

MORE_PARTS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
"""Fractions of epsilon that another look may get; 0 for none."""

WORTHWHILE = 0.95
"""Largest ratio of the predicted standard errors with and without another look at which it is
taken."""

UNSHOWN_VARIANCE = 0.25
"""Variance that counts for a class that will not show."""

UNKNOWN_ERRORS = 1.5
"""Standard errors below which the size of a class says nothing of whether it will show."""

ENOUGH = 0.385
"""Largest planned noise of a report's AUC in its sampling error. As first looks are noisy, it comes
out as 0.45 at most in the median: the AUC's total error is then 1.10 of sampling alone."""

LEAST_TREE = 2
"""Least fractions of epsilon of a tree."""

REPORT_ROUNDS = 4
"""Largest number of rounds of a report."""


@dataclass(frozen=True, eq=False)
class Next:
    """The next query: its parts, whether it is a look, and the cells where these are new ones.

    Parameters
    ----------
    parts : of epsilon.
    look : whether counts follow, or the one number.
    scale : whose equal cells a look counts in; None for the same cells as before.
    height : of a tree, in whose cells a look counts, and nothing but the number follows; 0 for
        a flat look.
    """

    parts: int
    look: bool
    scale: ScoreScale | None = None
    height: int = 0

    @property
    def zooms(self) -> bool:
        """Whether it looks into concentrated cells, with little of epsilon."""
        return self.scale is not None and self.parts == looks.FIRST_PARTS

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for queries that replicates can share: trees may have cells of their own each."""
        knots = b"" if self.scale is None or self.height else self.scale.knots.tobytes()
        return self.parts, self.look, self.height, knots


@dataclass(frozen=True)
class Choices:
    """How a run of looks divides epsilon.

    Parameters
    ----------
    protocol : the settings of the histogram.
    height : of the first look.
    noises : the noise that arrives, as a multiple of what the guarantee needs.
    """

    protocol: Any
    height: int = looks.LOOK_HEIGHT
    noises: float = 1.0

    @property
    def zoom_height(self) -> int:
        """The height of flat looks with zoomed cells."""
        return min(self.height + 1, looks.MAX_FLAT_HEIGHT)

    def variances(self, parts: int, height: int) -> Floats:
        """The noise variances of a look's levels, of all strata together, shape (height+2,)."""
        epsilon = self.protocol.known_epsilon * parts / looks.PARTS
        made = np.full(height + 2, np.inf)
        for level, part in looks.look_levels(self.protocol, height, epsilon).items():
            scale = self.protocol.distance / part
            made[level] = self.noises * float(discrete_laplace_variance(scale))
        return made * float(looks.look_strata(self.protocol, height))

    def precisions(self, parts: int) -> tuple[float, float]:
        """The inverse noise variances of a class size and of a cell of a flat look."""
        variances = self.variances(parts, looks.MAX_FLAT_HEIGHT)
        return 1 / float(variances[looks.CLASSES]), 1 / float(variances[-1])

    def decided(self, seen: Seen, parts: tuple[int, ...]) -> list[Next]:
        """What follows these looks, for every replicate."""
        left = looks.PARTS - sum(parts)
        report = self.protocol.aim == "report" or self.protocol.by_group
        most = REPORT_ROUNDS - 1 if report else looks.MAX_LOOKS
        if seen.height > looks.MAX_FLAT_HEIGHT or left <= looks.FIRST_PARTS:
            return [Next(left, look=False)] * seen.smaller.size
        for_auc = self._for_auc(seen, parts, left, most)
        if not report:
            return for_auc
        return [self._for_report(seen, row, parts, step) for row, step in enumerate(for_auc)]

    def _for_report(self, seen: Seen, row: int, parts: tuple[int, ...], step: Next) -> Next:
        """What follows for the report of a replicate, of which the AUC alone would take a step."""
        left, rounds = looks.PARTS - sum(parts), REPORT_ROUNDS - len(parts)
        alone, area = seen.of(np.array([row])), float(seen.area[row])
        tree = self._tree(alone, area, left, with_number=rounds > 1)
        if step.look and step.scale is not None and rounds == 2:
            # a zoom, if a tree can follow it: after the last round there is no number
            zoom = replace(step, parts=looks.FIRST_PARTS)
            if self._tree(alone, area, left - zoom.parts, False) is not None:
                return zoom
        return step if tree is None or (step.zooms and rounds > 2) else tree

    def _tree(self, seen: Seen, area: float, left: int, with_number: bool) -> Next | None:
        """The tree of one replicate of this AUC; None where that needs more than it would leave.

        Figures of groups follow from a tree of each alone: it gets all that is left.
        """
        sizes, error = seen.sizes[0], math.sqrt(seen.class_variance)
        if sizes.min() < CLEAR_CLASS_SIZE_IN_ERRORS * error and not self.protocol.by_group:
            return None
        enough = ENOUGH**2 * _sampling_variance(area, *sizes.tolist())
        height = planned_height(self.protocol, float(sizes.sum()), self.noises)
        crowded = seen.crowded(np.sqrt([enough]))[0]
        base = self.protocol.score_scale
        knots = knots_of(self.protocol, seen, height, crowded)
        scale = ScoreScale(knots, base.low, base.high)
        if self.protocol.by_group:
            return Next(left, look=True, scale=scale, height=height)
        expected = self._expected_tree(seen, scale, height, left)
        linear, products = float(expected.linear_variance[0]), float(product_variance(expected)[0])
        smaller, width = float(sizes.min()) - error, float(self._width(np.asarray(area)))
        for tree in range(left, LEAST_TREE - 1 if with_number else left - 1, -1):
            # variances fall with the square of epsilon, those of products with its fourth power
            by_tree = (linear + products * (left / tree) ** 2) * (left / tree) ** 2
            rest = self.protocol.epsilon * (left - tree) / looks.PARTS
            if rest:
                number = (
                    self.noises * 2 * (width / (rest * smaller)) ** 2
                    + products * (left / tree) ** 4
                )
                by_tree = by_tree * number / (by_tree + number)
            if by_tree <= enough:
                return Next(tree, look=True, scale=scale, height=height)
        return None

    def _expected_tree(self, seen: Seen, scale: ScoreScale, height: int, parts: int) -> Seen:
        """A tree of so many parts whose leaves are the counts that were seen, without noise."""
        shares = np.maximum(seen.counts, 0.0)
        shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1.0)
        counts = shares * (seen.sizes - math.sqrt(seen.class_variance))[..., np.newaxis]
        leaves = recounted(counts, seen.scale, scale).reshape(1, -1)
        variances = self.variances(parts, height)
        levels = {
            level: leaves.reshape(1, 1 << level, -1).sum(axis=-1)
            for level in np.flatnonzero(np.isfinite(variances)).tolist()
        }
        return Seen(scale, scale.knots, levels, variances)

    def _for_auc(self, seen: Seen, parts: tuple[int, ...], left: int, most: int) -> list[Next]:
        """What follows where the AUC is all that matters, for every replicate."""
        if len(parts) >= most:
            return [Next(left, look=False)] * seen.smaller.size
        again, least = self._best_parts(seen, left)
        closes = self._closes(seen, left, least)
        crowded = seen.crowded(np.sqrt(least))
        zoom_parts = np.full(again.shape, looks.FIRST_PARTS)
        fine = self._fine(seen, left, least, crowded.any(axis=-1))
        if len(parts) == most - 1 and crowded.any():  # no other flat look follows
            zoom_parts, _ = self._best_parts(seen, left, alone=True)
        steps = []
        for row, more in enumerate(again.tolist()):
            at_fine_cells = fine[row]
            if closes[row]:
                steps.append(Next(left, look=True))
                continue
            if at_fine_cells is not None:
                steps.append(at_fine_cells)
                continue
            finer = self._finer(seen, row, crowded[row])
            if finer is not None:
                steps.append(Next(int(zoom_parts[row]), look=True, scale=finer))
            else:
                steps.append(Next(more or left, look=bool(more)))
        return steps

    def _closes(self, seen: Seen, left: int, least: Floats) -> NDArray[np.bool_]:
        """Where a last look at the same cells, and their own AUC, beat a number, shape (R,).

        So where little shows: a number's noise is then more than that of all cells together.
        """
        if seen.straight:
            return np.zeros(least.shape, dtype=np.bool_)
        added = float(self.variances(left, seen.height)[-1])
        ratio = added / (added + seen.cell_variance)
        by_cells = seen.linear_variance * ratio + product_variance(seen) * ratio**2
        known = seen.smaller >= UNKNOWN_ERRORS * math.sqrt(seen.class_variance)
        return np.asarray(known & (by_cells < least))

    def _finer(self, seen: Seen, row: int, crowded: NDArray[np.bool_]) -> ScoreScale | None:
        """The zoomed scale of a replicate; None where nothing is concentrated, or can be split."""
        if not crowded.any():
            return None
        cells = 1 << self.zoom_height
        return zoomed(seen.scale, seen.counts[row], crowded, cells, seen.cell_error)

    def _fine(
        self, seen: Seen, left: int, least: Floats, crowded: NDArray[np.bool_]
    ) -> list[Next | None]:
        """For every replicate a look at fixed fine cells, where that pays; None elsewhere.

        It pays where many records make the noise less than what ties could hide in the cells of
        the first look, ``HIDDEN_TIES``, or where fine cells may part a concentration.
        """
        none: list[Next | None] = [None] * crowded.size
        asked = self.protocol.height is not None
        if seen.knots is not None or asked or self.height != looks.LOOK_HEIGHT or left < 2:
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
        before = (0.0, 0.0) if alone else (1 / seen.class_variance, 1 / seen.cell_variance)
        tried = [more for more in MORE_PARTS if more < left and (more or not alone)]
        cells = 1 << (self.zoom_height if alone else seen.height)
        width = self._width(seen.area)
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
        by_number = self.noises * 2 * (width / (rest * smaller)) ** 2
        by_functions = (by_cell * cells) ** 2 / 12 / pairs**2
        by_ties = 0.0 if alone else by_cell * seen.lone_mass
        linear = seen.linear_variance * by_cell / seen.cell_variance * cells / (1 << seen.height)
        variance = by_number + by_functions + by_ties + by_class / smaller**2 * linear
        shown = ndtr(smaller / math.sqrt(by_class) - MIN_CLASS_SIZE_IN_ERRORS)
        shown = np.where(smaller < UNKNOWN_ERRORS * math.sqrt(seen.class_variance), 0.0, shown)
        unshown = UNSHOWN_VARIANCE * (1 + 1 / (1 + more))
        return np.asarray(shown * np.minimum(variance, unshown) + (1 - shown) * unshown)

    def _width(self, area: Floats) -> Floats:
        """How far a record moves the smaller class's size times the AUC, of the shape of this."""
        if self.protocol.adjacency == Adjacency.REPLACE.value:
            return np.ones_like(area)
        return np.maximum(area, 1 - area)


def _sampling_variance(area: float, positives: float, negatives: float) -> float:
    """The variance of an AUC by sampling (Hanley and McNeil 1982, equation 1).

    Of class sizes and the area alone: small noisy cells would show too much of it.
    """
    of_two_positives, of_two_negatives = area / (2 - area), 2 * area**2 / (1 + area)
    return (
        area * (1 - area)
        + (positives - 1) * (of_two_positives - area**2)
        + (negatives - 1) * (of_two_negatives - area**2)
    ) / (positives * negatives)
