"""What follows the rounds so far: which query comes next, and with what fraction of epsilon.

The server decides from noisy counts only. A zoom, where a cell holds too much of a class. For a
report, where its counts leave enough for the AUC: a tree of cells that are placed by the rounds,
with the largest fraction of epsilon with which the AUC, of the tree and of one number with the
rest, keeps its noise below ``ENOUGH`` of its sampling error. Else the parts of another round with
the same cells that make the AUC's variance least; where that is none, the one number with all parts
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
from tacit.counts import tree_budget
from tacit.counts.placing import borders_of, planned_height
from tacit.counts.pooling import Pooled, product_variance
from tacit.counts.zoomed_cells import best_scales, recounted, zoomed
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import PROBABILITY, ScoreScale
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.cost import Adjacency
from tacit.privacy.distributions import discrete_laplace_variance
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS, MIN_CLASS_SIZE_IN_ERRORS

MORE_PARTS = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
"""Fractions of epsilon that another round may get; 0 for none."""

WORTHWHILE = 0.95
"""Largest ratio of the predicted standard errors with and without another round at which it is
taken."""

UNSHOWN_VARIANCE = 0.25
"""Variance that counts for a class that will not show."""

UNKNOWN_ERRORS = 1.5
"""Standard errors below which the size of a class says nothing of whether it will show."""

ENOUGH = 0.385
"""Largest planned noise of a report's AUC in its sampling error. As first rounds are noisy, it is
0.45 at most in the median: the AUC's total error is then 1.10 of sampling alone."""

LEAST_TREE = 2
"""Least fractions of epsilon of a tree."""

REPORT_ROUNDS = 4
"""Largest number of rounds of a report."""


@dataclass(frozen=True, eq=False)
class Next:
    """The next query: what it costs, what it is for, and its cells where these are new ones.

    Parameters
    ----------
    parts : of epsilon.
    counts : whether counts follow, or the one number.
    scale : whose equal cells a round counts in; None for the same cells as before.
    height : of a tree, in whose cells a round counts, and nothing but the number follows; 0 for
        a flat round.
    """

    parts: int
    counts: bool
    scale: ScoreScale | None = None
    height: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for queries that replicates can share: trees may have cells of their own each."""
        borders = b"" if self.scale is None or self.height else self.scale.borders.tobytes()
        return self.parts, self.counts, self.height, borders


@dataclass(frozen=True)
class Choices:
    """How a run divides epsilon.

    Parameters
    ----------
    protocol : the settings of the histogram.
    height : of the first round.
    noises : the noise that arrives, as a multiple of what the guarantee needs.
    """

    protocol: Any
    height: int = tree_budget.ROUND_HEIGHT
    noises: float = 1.0

    @property
    def zoom_height(self) -> int:
        """The height of flat rounds with zoomed cells."""
        return min(self.height + 1, tree_budget.MAX_FLAT_HEIGHT)

    def variances(self, parts: int, height: int) -> Floats:
        """The noise variances of a round's levels, of all strata together, shape (height+2,)."""
        epsilon = self.protocol.known_epsilon * parts / tree_budget.PARTS
        made = np.full(height + 2, np.inf)
        for level, part in tree_budget.round_levels(self.protocol, height, epsilon).items():
            scale = self.protocol.distance / part
            made[level] = self.noises * float(discrete_laplace_variance(scale))
        return made * float(tree_budget.round_strata(self.protocol, height))

    def precisions(self, parts: int) -> tuple[float, float]:
        """The inverse noise variances of a class size and of a cell of a flat round."""
        variances = self.variances(parts, tree_budget.MAX_FLAT_HEIGHT)
        return 1 / float(variances[tree_budget.CLASSES]), 1 / float(variances[-1])

    def decided(self, pool: Pooled, parts: tuple[int, ...]) -> list[Next]:
        """What follows these rounds, for every replicate."""
        left = tree_budget.PARTS - sum(parts)
        report = self.protocol.aim == "report" or self.protocol.by_group
        most = REPORT_ROUNDS - 1 if report else tree_budget.MAX_ROUNDS
        if pool.height > tree_budget.MAX_FLAT_HEIGHT or left <= tree_budget.FIRST_PARTS:
            return [Next(left, counts=False)] * pool.smaller.size
        for_auc = self._for_auc(pool, parts, left, most)
        if not report:
            return for_auc
        return [self._for_report(pool, row, parts, step) for row, step in enumerate(for_auc)]

    def _for_report(self, pool: Pooled, row: int, parts: tuple[int, ...], step: Next) -> Next:
        """What follows for the report of a replicate, of which the AUC alone would take a step."""
        left, rounds = tree_budget.PARTS - sum(parts), REPORT_ROUNDS - len(parts)
        alone, area = pool.of(np.array([row])), float(pool.area[row])
        tree = self._tree(alone, area, left, with_number=rounds > 1)
        if step.counts and step.scale is not None and rounds == 2:
            # a zoom, if a tree can follow it: after the last round there is no number
            zoom = replace(step, parts=tree_budget.FIRST_PARTS)
            if self._tree(alone, area, left - zoom.parts, False) is not None:
                return zoom
        # looks into concentrated cells, with little of epsilon
        zooms = step.scale is not None and step.parts == tree_budget.FIRST_PARTS
        return step if tree is None or (zooms and rounds > 2) else tree

    def _tree(self, pool: Pooled, area: float, left: int, with_number: bool) -> Next | None:
        """The tree of one replicate of this AUC; None where that needs more than it would leave.

        Figures of groups follow from a tree of each alone: it gets all that is left.
        """
        sizes, error = pool.sizes[0], math.sqrt(pool.class_variance)
        if sizes.min() < CLEAR_CLASS_SIZE_IN_ERRORS * error and not self.protocol.by_group:
            return None
        # of class sizes and the area alone: small noisy cells would show too much of it
        enough = ENOUGH**2 * float(plug_in_variance(area, *sizes.tolist()))
        height = planned_height(self.protocol, float(sizes.sum()), self.noises)
        concentrated = pool.concentrated(np.sqrt([enough]))[0]
        base = self.protocol.score_scale
        borders = borders_of(self.protocol, pool, height, concentrated)
        scale = ScoreScale(borders, base.low, base.high)
        if self.protocol.by_group:
            return Next(left, counts=True, scale=scale, height=height)
        expected = self._expected_tree(pool, scale, height, left)
        linear, products = float(expected.linear_variance[0]), float(product_variance(expected)[0])
        smaller, width = float(sizes.min()) - error, float(self._width(np.asarray(area)))
        for tree in range(left, LEAST_TREE - 1 if with_number else left - 1, -1):
            # variances fall with the square of epsilon, those of products with its fourth power
            by_tree = (linear + products * (left / tree) ** 2) * (left / tree) ** 2
            rest = self.protocol.epsilon * (left - tree) / tree_budget.PARTS
            if rest:
                number = (
                    self.noises * 2 * (width / (rest * smaller)) ** 2
                    + products * (left / tree) ** 4
                )
                by_tree = by_tree * number / (by_tree + number)
            if by_tree <= enough:
                return Next(tree, counts=True, scale=scale, height=height)
        return None

    def _expected_tree(self, pool: Pooled, scale: ScoreScale, height: int, parts: int) -> Pooled:
        """A tree of so many parts whose leaves are the counts that were seen, without noise."""
        shares = np.maximum(pool.counts, 0.0)
        shares /= np.maximum(shares.sum(axis=-1, keepdims=True), 1.0)
        counts = shares * (pool.sizes - math.sqrt(pool.class_variance))[..., np.newaxis]
        leaves = recounted(counts, pool.scale, scale)
        return self.expected(leaves, scale, scale.borders, parts, height)

    def expected(
        self, counts: Floats, scale: ScoreScale, borders: Floats | None, parts: int, height: int
    ) -> Pooled:
        """What a round says of one replicate of these counts by class, but for its noise."""
        variances = self.variances(parts, height)
        levels = {
            level: counts.reshape(1, 1 << level, -1).sum(axis=-1)
            for level in np.flatnonzero(np.isfinite(variances)).tolist()
        }
        return Pooled(scale, borders, levels, variances)

    def _for_auc(self, pool: Pooled, parts: tuple[int, ...], left: int, most: int) -> list[Next]:
        """What follows where the AUC is all that matters, for every replicate."""
        if len(parts) >= most:
            return [Next(left, counts=False)] * pool.smaller.size
        again, least = self._best_parts(pool, left)
        closes = self._closes(pool, left, least)
        concentrated = pool.concentrated(np.sqrt(least))
        zoom_parts = np.full(again.shape, tree_budget.FIRST_PARTS)
        fine = self._fine(pool, left, least, concentrated.any(axis=-1))
        if len(parts) == most - 1 and concentrated.any():  # no other flat round follows
            zoom_parts, _ = self._best_parts(pool, left, alone=True)
        steps = []
        for row, more in enumerate(again.tolist()):
            if closes[row]:
                steps.append(Next(left, counts=True))
            elif (at_fine_cells := fine[row]) is not None:
                steps.append(at_fine_cells)
            elif (finer := self._finer(pool, row, concentrated[row])) is not None:
                steps.append(Next(int(zoom_parts[row]), counts=True, scale=finer))
            else:
                steps.append(Next(more or left, counts=bool(more)))
        return steps

    def _closes(self, pool: Pooled, left: int, least: Floats) -> NDArray[np.bool_]:
        """Where a last round with the same cells, and their own AUC, beat a number, shape (R,).

        So where little shows: a number's noise is then more than that of all cells together.
        """
        if pool.is_linear:
            return np.zeros(least.shape, dtype=np.bool_)
        added = float(self.variances(left, pool.height)[-1])
        ratio = added / (added + pool.cell_variance)
        by_cells = pool.linear_variance * ratio + product_variance(pool) * ratio**2
        known = pool.smaller >= UNKNOWN_ERRORS * math.sqrt(pool.class_variance)
        return np.asarray(known & (by_cells < least))

    def _finer(self, pool: Pooled, row: int, concentrated: NDArray[np.bool_]) -> ScoreScale | None:
        """The zoomed scale of a replicate; None where nothing is concentrated, or can be split."""
        if not concentrated.any():
            return None
        cells = 1 << self.zoom_height
        return zoomed(pool.scale, pool.counts[row], concentrated, cells, pool.cell_error)

    def _fine(
        self, pool: Pooled, left: int, least: Floats, concentrated: NDArray[np.bool_]
    ) -> list[Next | None]:
        """For every replicate a round in fixed fine cells, where that pays; None elsewhere.

        It pays where many records make the noise less than what ties could hide in the cells of
        the first round, ``HIDDEN_TIES``, or where fine cells may part a concentration.
        """
        none: list[Next | None] = [None] * concentrated.size
        asked = self.protocol.height is not None
        if pool.borders is not None or asked or self.height != tree_budget.ROUND_HEIGHT or left < 2:
            return none
        fine_parts, variance = self._best_parts(pool, left, alone=True)
        pays = variance < WORTHWHILE**2 * (least + curves.HIDDEN_TIES**2)
        pays |= concentrated & (self.protocol.scale == PROBABILITY)
        if not pays.any():
            return none
        scales = best_scales(self.protocol.scale, pool.counts, pool.scale)
        parts = np.where(concentrated, tree_budget.FIRST_PARTS, fine_parts).tolist()
        return [
            Next(part, counts=True, scale=scale) if pay else None
            for pay, part, scale in zip(pays, parts, scales, strict=True)
        ]

    def _best_parts(
        self, pool: Pooled, left: int, alone: bool = False
    ) -> tuple[NDArray[np.int64], Floats]:
        """The parts of another round with the least predicted variance, and that, shape (R,) each.

        With D the width of an influence, f the rest of epsilon, m the smaller class and s^2 the
        variance of a cell: ``2 D^2 / (f m)^2 + (s^2 B)^2 / (12 P^2 N^2)``, the noise of the one
        number and the product of both functions' errors; and the product of the smaller class's
        relative error with the functions'. Classes must show.

        Parameters
        ----------
        alone : whether the round will be at other cells, as many as there can be.
        """
        tried = [more for more in MORE_PARTS if more < left and (more or not alone)]
        variances = np.array([self._predicted(pool, more, left, alone) for more in tried])
        best = np.argmin(variances, axis=0)
        if not alone:
            worthwhile = variances.min(axis=0) < WORTHWHILE**2 * variances[0]
            best = np.where(worthwhile, best, 0)
        return np.asarray(tried)[best], np.take_along_axis(variances, best[np.newaxis], axis=0)[0]

    def _predicted(self, pool: Pooled, more: int, left: int, alone: bool) -> Floats:
        """The AUC's variance after another round of ``more`` parts, shape (R,)."""
        before = (0.0, 0.0) if alone else (1 / pool.class_variance, 1 / pool.cell_variance)
        cells = 1 << (self.zoom_height if alone else pool.height)
        width = self._width(pool.area)
        added = self.precisions(more) if more else (0.0, 0.0)
        by_class, by_cell = (1 / (a + b) for a, b in zip(before, added, strict=True))
        smaller, pairs = pool.smaller, np.prod(pool.sizes, axis=-1)
        rest = self.protocol.epsilon * (left - more) / tree_budget.PARTS
        by_number = self.noises * 2 * (width / (rest * smaller)) ** 2
        by_functions = (by_cell * cells) ** 2 / 12 / pairs**2
        by_ties = 0.0 if alone else by_cell * pool.lone_mass
        linear = pool.linear_variance * by_cell / pool.cell_variance * cells / (1 << pool.height)
        variance = by_number + by_functions + by_ties + by_class / smaller**2 * linear
        shown = ndtr(smaller / math.sqrt(by_class) - MIN_CLASS_SIZE_IN_ERRORS)
        shown = np.where(smaller < UNKNOWN_ERRORS * math.sqrt(pool.class_variance), 0.0, shown)
        unshown = UNSHOWN_VARIANCE * (1 + 1 / (1 + more))
        return np.asarray(shown * np.minimum(variance, unshown) + (1 - shown) * unshown)

    def _width(self, area: Floats) -> Floats:
        """How far a record moves the smaller class's size times the AUC, of the shape of this."""
        if self.protocol.adjacency == Adjacency.REPLACE.value:
            return np.ones_like(area)
        return np.maximum(area, 1 - area)
