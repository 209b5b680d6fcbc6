"""What looks at the same cells say together, before anything is concluded from them.

The variances of the AUC of looks and one number: products of errors, and what cells hide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.protocols.histogram.estimate import influence_weights
from tacit.protocols.histogram.second_round import NEGATIVES, POSITIVES, SIZES
from tacit.protocols.shared import zoomed_cells

FILLED_ERRORS = 3.0
"""Standard errors of its noise that a count of either class exceeds in a cell that is not empty."""

EMPTY_PART = 0.03
"""Largest part of both classes' pairs that cells may hold between them which count as empty, in
standard errors of a cell over the smaller class's size: about a quarter of the number's error."""

Rows = NDArray[np.int64]
"""Numbers of replicates."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What looks at the same cells say together, for some replicates.

    Parameters
    ----------
    scale : whose equal cells of positions were counted in.
    knots : its knots, where it was published; None for the protocol's scale.
    classes, cells : the means of the noisy counts, shape (R, 2) and (R, 2B).
    precisions : the inverse noise variances of a class size and of a cell.
    """

    scale: ScoreScale
    knots: Floats | None
    classes: Floats
    cells: Floats
    precisions: tuple[float, float]

    @property
    def straight(self) -> bool:
        """Whether functions are straight between edges (``StraightDistribution``)."""
        return self.knots is not None

    @property
    def cell_error(self) -> float:
        """The standard deviation of a cell's noise."""
        return math.sqrt(1 / self.precisions[1])

    def crowded(self, auc_error: Floats) -> NDArray[np.bool_]:
        """Which cells hide too much beside this error, and hold more than one double, (R, B)."""
        crowded = zoomed_cells.crowded_cells(self.counts, self.cell_error, auc_error, self.straight)
        return crowded & ~self.scale.single_doubles if self.straight else crowded

    @cached_property
    def lone_mass(self) -> Floats:
        """The AUC's variance by ties, for cells whose noise has the variance 1, shape (R,).

        In a cell whose p positives and n negatives all have one score, at the part u of the cell,
        noise moves the AUC by ``(1/2 - u) (p dn - n dp) / (P N)``, u taken as uniform
        (``lone_crowds``).
        """
        if not self.straight:
            return np.zeros(self.cells.shape[0])
        lone = zoomed_cells.lone_crowds(self.counts, self.cell_error)
        lone = np.where(self.scale.single_doubles, 0.0, lone)
        pairs = np.prod(self.sizes, axis=-1)
        return np.asarray(np.sum(lone**2, axis=(-2, -1)) / 12 / pairs**2)

    @property
    def height(self) -> int:
        """There are ``2**height`` cells."""
        return int(self.cells.shape[-1]).bit_length() - 2

    @property
    def noise(self) -> trees.TreeNoise:
        """Their errors, as those of a tree with two levels."""
        variances = np.full(self.height + 2, np.inf)
        variances[1], variances[-1] = (1 / precision for precision in self.precisions)
        return trees.TreeNoise(variances)

    @cached_property
    def leaves(self) -> Floats:
        """The consistent cells, shape (R, 2B)."""
        levels: list[Floats | None] = [None] * (self.height + 2)
        levels[1], levels[-1] = self.classes, self.cells
        return trees.consistent_leaves(levels, self.noise.variances)

    @cached_property
    def counts(self) -> Floats:
        """The consistent cells by class, shape (R, 2, B)."""
        return self.leaves.reshape(self.cells.shape[0], 2, -1)

    @cached_property
    def sizes(self) -> Floats:
        """Of both classes, at least 1, shape (R, 2)."""
        return np.maximum(self.counts.sum(axis=-1), 1.0)

    @cached_property
    def smaller(self) -> Floats:
        """The smaller size, shape (R,)."""
        return self.sizes.min(axis=-1)

    @cached_property
    def filled(self) -> NDArray[np.bool_]:
        """Which cells hold clearly more than nothing of either class, shape (R, B).

        The others count as empty in the functions where all of them together hold next to nothing:
        the number cancels what is lost of either class, and leaves the product of both. It is taken
        as large as their sums and the noise of these allow, and must be less than ``EMPTY_PART``.
        Most of few records lie in such cells. All count as filled between published knots, where a
        look has less noise.
        """
        clear = np.any(self.counts > FILLED_ERRORS * self.cell_error, axis=-2)
        empty = ~clear[:, np.newaxis]
        sums = np.abs(np.sum(self.counts, axis=-1, where=empty))
        lost = sums + self.cell_error * np.sqrt(empty.sum(axis=-1))
        product = np.prod(lost / self.sizes, axis=-1)
        few = product < EMPTY_PART * self.cell_error / self.smaller
        if self.straight:
            few = np.zeros_like(few)
        return np.asarray(clear | ~few[:, np.newaxis])

    @cached_property
    def published(self) -> dict[str, Floats]:
        """Both functions at all inner edges, and the class sizes, of every replicate."""
        kept = np.where(self.filled[:, np.newaxis], self.counts, 0.0)
        functions = rising_fractions(kept)[..., 1:-1]
        return {POSITIVES: functions[:, 0], NEGATIVES: functions[:, 1], SIZES: self.sizes}

    @cached_property
    def linear_variance(self) -> Floats:
        """The variance of the AUC of these cells in first order, shape (R,)."""
        weights = influence_weights(self.counts) * np.tile(self.filled, 2)
        return self.noise.variance_of(weights, self.leaves)

    def of(self, rows: Rows) -> Seen:
        """The same for some of the replicates."""
        return replace(self, classes=self.classes[rows], cells=self.cells[rows])

    def with_look(self, look: Seen) -> Seen:
        """Averaged with another look at the same cells, by inverse variances."""
        first, second = np.array(self.precisions), np.array(look.precisions)
        by_class, by_cell = first / (first + second)
        return replace(
            self,
            classes=by_class * self.classes + (1 - by_class) * look.classes,
            cells=by_cell * self.cells + (1 - by_cell) * look.cells,
            precisions=tuple((first + second).tolist()),
        )


REPLICATES_AT_ONCE = 16
"""Number of replicates whose errors at all edges are held at a time, in a processor's cache."""


def product_variance(seen: Seen) -> Floats:
    """The variance of the product of both functions' errors by noise, shape (R,).

    The one number cancels what is linear in the errors e- and e+ of the functions, and leaves the
    integral of ``e- d(e+)``. The classes have independent noise, so with S- and S+ the covariances
    of the errors at the edges, A the means and D the differences of neighbours, its variance is
    ``trace(A S- A' D S+ D')``.
    """
    products, published = np.empty(seen.smaller.shape), seen.published
    for start in range(0, products.size, REPLICATES_AT_ONCE):
        rows = slice(start, start + REPLICATES_AT_ONCE)
        positive, negative = (
            _errors_at_edges(
                published[name][rows], published[SIZES][rows, row], seen, seen.filled[rows]
            )
            for row, name in enumerate((POSITIVES, NEGATIVES))
        )
        means = (negative[:, 1:] + negative[:, :-1]) / 2
        steps = np.diff(positive, axis=1)
        # the trace of (M M')(T T') is the sum of the squares of M' T
        crossed = np.matmul(np.swapaxes(means, 1, 2), steps)
        products[rows] = np.sum(crossed**2, axis=(1, 2))
    return products + seen.lone_mass / seen.precisions[1]


def hidden_variance(seen: Seen, auc_error: Floats) -> Floats:
    """What cells hide where scores are exact and functions are interpolated, shape (R,).

    Of records placed at random in a cell of p positives and n negatives, ``p n / 12`` pairs are
    left open (``estimate``); smooth densities add ``hidden_in_cells``. Where a cell is still
    crowded, the fraction of its pairs that positives win is taken as uniform on [0, 1].
    """
    crowded = seen.crowded(auc_error)
    if seen.straight:
        return zoomed_cells.lines_variance(seen.counts, crowded, seen.scale.single_doubles)
    shares = np.prod(zoomed_cells.shares_of(seen.counts), axis=-2)
    pairs = np.prod(seen.sizes, axis=-1)
    placed = np.sum(shares, axis=-1) / 12 / pairs
    smooth = np.sum(np.where(crowded, 0.0, zoomed_cells.hidden_in_cells(seen.counts)), axis=-1)
    in_crowds = np.sum(np.where(crowded, shares, 0.0) ** 2, axis=-1) / 12
    return placed + curves.HIDDEN_TIES**2 + smooth**2 + in_crowds


def _errors_at_edges(
    values: Floats, sizes: Floats, seen: Seen, filled: NDArray[np.bool_]
) -> Floats:
    """How the function at every edge moves with a standard error of each count, (R, B+1, B+1).

    A consistent cell is its count, plus an equal part of what the class size adds to their sum: w
    times their difference, w the weight of the counted size. The function at edge k is the sum of
    the first k cells, over the sum of all. Cells that count as empty move nothing.
    """
    count = 1 << seen.height
    by_class, by_cell = (1 / precision for precision in seen.precisions)
    weight = count * by_cell / (count * by_cell + by_class)
    edges = np.arange(count + 1)
    ends = np.zeros((values.shape[0], 1))
    function = np.concatenate([ends, values, ends + 1], axis=-1)[..., np.newaxis]
    summed = (edges[:, np.newaxis] > np.arange(count)).astype(np.float64)
    even = edges[:, np.newaxis] / count
    by_counts = summed - even * weight - function * (1 - weight)
    by_size = even * weight - function * weight
    by_counts = np.where(filled[:, np.newaxis], by_counts, 0.0)
    moves = np.concatenate([by_counts * np.sqrt(by_cell), by_size * np.sqrt(by_class)], axis=-1)
    return np.asarray(moves / sizes[:, np.newaxis, np.newaxis])
