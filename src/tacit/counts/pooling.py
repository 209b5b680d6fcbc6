"""What rounds with the same cells say together, and the variances of an AUC of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.counts import zoomed_cells
from tacit.counts.influence import NEGATIVES, POSITIVES, SIZES, influences_of
from tacit.counts.noisy_areas import CELL_BIAS, areas, influence_weights
from tacit.counts.tree_budget import CLASSES, MAX_FLAT_HEIGHT
from tacit.counts.tree_results import KnownArea, class_variance, known_by_cells
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_distribution import below_edges, rising_fractions
from tacit.metrics.cells.score_scale import ScoreScale, single_doubles
from tacit.results.figure import MIN_CLASS_SIZE_IN_ERRORS

FILLED_ERRORS = 3.0
"""Standard errors of its noise that a count of either class exceeds in a cell that is not empty."""

EMPTY_PART = 0.03
"""Largest part of both classes' pairs that cells may hold between them which count as empty, in
standard errors of a cell over the smaller class's size: about a quarter of the number's error."""

Rows = NDArray[np.int64]
"""Numbers of replicates."""


@dataclass(frozen=True, eq=False)
class Pooled:
    """What rounds with the same cells say together, for some replicates.

    Parameters
    ----------
    scale : whose equal cells of positions were counted in; of the first replicate where each has
        its own.
    borders : its inner edges where they were published, shape (B-1,), or (R, B-1) where every
        replicate has its own; None for the protocol's scale.
    levels : the means of the noisy counts by level, shape (R, 2**level) each.
    variances : of these by noise, shape (h+2,); infinity at levels that were not counted.
    """

    scale: ScoreScale
    borders: Floats | None
    levels: Mapping[int, Floats]
    variances: Floats

    @property
    def height(self) -> int:
        """There are ``2**height`` cells."""
        return self.variances.size - 2

    @property
    def depth(self) -> int:
        """There are ``2**depth`` cells in which functions of both classes are published."""
        return min(self.height, MAX_FLAT_HEIGHT)

    @property
    def is_linear(self) -> bool:
        """Whether functions are linear between edges (``StraightDistribution``)."""
        return self.borders is not None

    @property
    def noise(self) -> trees.TreeNoise:
        """The errors of the counts."""
        return trees.TreeNoise(self.variances)

    @property
    def cell_variance(self) -> float:
        """The variance of a cell's noise, by the cell and all below it alone."""
        return float(trees.subtree_variances(self.variances)[self.depth + 1])

    @property
    def class_variance(self) -> float:
        """The variance of a counted class size's noise."""
        return float(self.variances[CLASSES])

    @property
    def cell_error(self) -> float:
        """The standard deviation of a cell's noise."""
        return math.sqrt(self.cell_variance)

    @cached_property
    def leaves(self) -> Floats:
        """The consistent leaves, shape (R, 2**(height + 1))."""
        levels = [self.levels.get(level) for level in range(self.variances.size)]
        return trees.consistent_leaves(levels, self.variances)

    @property
    def both_classes(self) -> Floats:
        """The leaves of both classes, shape (R, 2, 2**height)."""
        return self.leaves.reshape(self.leaves.shape[0], 2, -1)

    @cached_property
    def ends(self) -> Integers:
        """Where the cells of the published functions end, in leaves, shape (R, 2**depth).

        Of more leaves than cells every so many end one, but for those where a leaf of a single
        double begins or ends: such a concentration keeps its edges.
        """
        leaves, cells = 1 << self.height, 1 << self.depth
        even = np.arange(1, cells + 1) * (leaves // cells)
        rows = self.leaves.shape[0]
        if leaves == cells or self.borders is None:
            return np.broadcast_to(even, (rows, cells))
        single = np.broadcast_to(self.single_leaves, (rows, leaves))
        return np.stack([_kept_ends(each, even) for each in single])

    @property
    def single_leaves(self) -> NDArray[np.bool_]:
        """Which leaves hold one double, shape (2**height,), or (R, 2**height)."""
        if self.borders is None:
            return np.zeros(1 << self.height, dtype=np.bool_)
        return single_doubles(self.borders, self.scale.low, self.scale.high)

    @cached_property
    def counts(self) -> Floats:
        """The consistent counts by class in the cells of the published functions, (R, 2, B)."""
        if self.height == self.depth:
            return self.both_classes
        below = np.cumsum(self.both_classes, axis=-1)
        below = np.take_along_axis(below, self.ends[:, np.newaxis] - 1, -1)
        return np.diff(below, axis=-1, prepend=0.0)

    @property
    def cell_borders(self) -> Floats | None:
        """The inner edges of those cells, shape (B-1,) or (R, B-1)."""
        if self.borders is None or self.height == self.depth:
            return self.borders
        inner = np.broadcast_to(self.borders, (self.leaves.shape[0], self.borders.shape[-1]))
        return np.take_along_axis(inner, self.ends[:, :-1] - 1, axis=-1)

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Which of those cells hold one double, shape (B,) or (R, B)."""
        if self.cell_borders is None:
            return np.zeros(1 << self.depth, dtype=np.bool_)
        return single_doubles(self.cell_borders, self.scale.low, self.scale.high)

    def concentrated(self, auc_error: Floats) -> NDArray[np.bool_]:
        """Which cells hide too much compared with this error, and hold more than one double, (R,
        B)."""
        concentrated = zoomed_cells.concentrated_cells(
            self.counts, self.cell_error, auc_error, self.is_linear
        )
        return concentrated & ~self.single

    @cached_property
    def lone_mass(self) -> Floats:
        """The AUC's variance by ties, for cells whose noise has the variance 1, shape (R,).

        In a cell whose p positives and n negatives all have one score, at the part u of the cell,
        noise moves the AUC by ``(1/2 - u) (p dn - n dp) / (P N)``, u taken as uniform
        (``lone_concentrations``).
        """
        if not self.is_linear:
            return np.zeros(self.leaves.shape[0])
        lone = zoomed_cells.lone_concentrations(self.counts, self.cell_error)
        lone = np.where(self.single[..., np.newaxis, :], 0.0, lone)
        pairs = np.prod(self.sizes, axis=-1)
        return np.asarray(np.sum(lone**2, axis=(-2, -1)) / 12 / pairs**2)

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
        Most of few records lie in such cells. All count as filled between published cell edges,
        where a round has less noise.
        """
        clear = np.any(self.counts > FILLED_ERRORS * self.cell_error, axis=-2)
        if self.is_linear:
            return np.ones_like(clear)
        empty = ~clear[:, np.newaxis]
        sums = np.abs(np.sum(self.counts, axis=-1, where=empty))
        lost = sums + self.cell_error * np.sqrt(empty.sum(axis=-1))
        product = np.prod(lost / self.sizes, axis=-1)
        few = product < EMPTY_PART * self.cell_error / self.smaller
        return np.asarray(clear | ~few[:, np.newaxis])

    @cached_property
    def published(self) -> dict[str, Floats]:
        """Both functions at all inner edges, and the class sizes, of every replicate."""
        kept = np.where(self.filled[:, np.newaxis], self.counts, 0.0)
        functions = (below_edges if self.is_linear else rising_fractions)(kept)[..., 1:-1]
        return {POSITIVES: functions[:, 0], NEGATIVES: functions[:, 1], SIZES: self.sizes}

    @cached_property
    def area(self) -> Floats:
        """The AUC of the published functions, shape (R,)."""
        return influences_of(self.published, self.is_linear).area

    @cached_property
    def linear_variance(self) -> Floats:
        """The variance of the AUC of these cells in first order, shape (R,)."""
        by_class = influence_weights(self.counts) * self.filled[:, np.newaxis]
        leaves = np.arange(1 << self.height)
        cells = np.stack([np.searchsorted(ends, leaves, side="right") for ends in self.ends])
        finer = np.take_along_axis(by_class, cells[:, np.newaxis], axis=-1)
        return self.noise.variance_of(finer.reshape(self.leaves.shape), self.leaves)

    def of(self, rows: Rows) -> Pooled:
        """The same for some of the replicates."""
        borders = self.borders
        if borders is not None and borders.ndim > 1:
            borders = borders[rows]
        levels = {level: counts[rows] for level, counts in self.levels.items()}
        return replace(self, borders=borders, levels=levels)

    def with_round(self, further: Pooled, same_cells: bool) -> Pooled:
        """A further round with what is known already, averaged by inverse variances.

        Parameters
        ----------
        further : the further round.
        same_cells : whether it counts in the same cells; else class sizes alone are the same.
        """
        variances, levels = further.variances.copy(), dict(further.levels)
        for level in self.levels if same_cells else self.levels.keys() & {CLASSES}:
            if level in further.levels:
                first, second = self.variances[level], further.variances[level]
                weight = second / (first + second)
                levels[level] = weight * self.levels[level] + (1 - weight) * further.levels[level]
                variances[level] = first * weight
        return replace(further, levels=levels, variances=variances)


def tree_area(pool: Pooled) -> KnownArea:
    """The AUC of a placed tree alone, of every replicate; leaves of one double are ties."""
    by_level = trees.node_variances(pool.noise.weighting)[1:]
    made = areas(pool.both_classes, (by_level, by_level), even=False, tied=pool.single_leaves)
    return _shown(pool, known_by_cells(made, pool.both_classes, pool.noise))


def number_area(pool: Pooled, area: Floats, by_number: Floats, one_draw: bool) -> KnownArea:
    """The AUC by rounds and one number, of every replicate.

    The errors of the published functions cancel to first order (docs, section 5b). What remains is
    the noise of the sum, the products of both functions' errors by noise and of one by noise with
    one by interpolation, and the product of a class size's relative error with a function's error.

    Parameters
    ----------
    pool : the rounds.
    area, by_number : the AUC by both, and its variance by the number's noise, shape (R,).
    one_draw : whether that noise is one draw of Laplace noise.
    """
    by_functions = product_variance(pool)
    hidden_product = (CELL_BIAS / 4.0**pool.depth) ** 2
    product = np.sqrt(by_functions)
    with_hidden = by_functions + 2 * product * hidden_product
    relative = class_variance(pool.both_classes, pool.noise) / pool.smaller**2
    variance = by_number + with_hidden + relative * pool.linear_variance
    hidden = hidden_variance(pool, np.sqrt(by_number + by_functions))
    drawn = by_number if one_draw else np.zeros_like(by_number)
    return _shown(pool, KnownArea(area, variance, drawn, hidden))


def average_area(number: KnownArea, tree: KnownArea) -> KnownArea:
    """Both by their inverse variances.

    The number's error, the noise of a sum and products of the functions' errors, is uncorrelated
    with what is linear in these errors, which is that of the tree.
    """
    weight = tree.variance / (tree.variance + number.variance)
    return KnownArea(
        weight * number.value + (1 - weight) * tree.value,
        weight * number.variance,
        weight**2 * number.by_draw,
        np.maximum(number.by_cells, tree.by_cells),
    )


def _shown(pool: Pooled, area: KnownArea) -> KnownArea:
    """The same without a value where a class does not show."""
    error = np.sqrt(class_variance(pool.both_classes, pool.noise))
    shown = pool.both_classes.sum(axis=-1).min(axis=-1) > MIN_CLASS_SIZE_IN_ERRORS * error
    return replace(
        area,
        value=np.where(shown, area.value, np.nan),
        variance=np.where(shown, area.variance, np.nan),
    )


def _kept_ends(single: NDArray[np.bool_], even: Integers) -> Integers:
    """The ends of cells that keep the edges of single leaves, as many as the even ones.

    Parameters
    ----------
    single : which leaves hold one double, shape (leaves,).
    even : ends at equal distances, the last of which is the number of leaves, shape (B,).
    """
    tied = np.flatnonzero(single)
    tied_ends = np.unique(np.concatenate([tied, tied + 1]))
    tied_ends = tied_ends[(tied_ends > 0) & (tied_ends < single.size)]
    if not tied_ends.size or tied_ends.size >= even.size - 1:
        return even
    others = np.setdiff1d(even[:-1], tied_ends)
    left_out = tied_ends.size - (even.size - 1 - others.size)
    if left_out:
        dropped = np.unique(np.linspace(0, others.size - 1, left_out).round().astype(np.int64))
        others = np.delete(others, dropped)
    return np.concatenate([np.union1d(tied_ends, others), even[-1:]])


def product_variance(pool: Pooled) -> Floats:
    """The variance of the product of both functions' errors by noise, shape (R,).

    The one number cancels what is linear in the errors e- and e+ of the functions, and leaves the
    integral of ``e- d(e+)``. The classes have independent noise, so with S- and S+ the covariances
    of the errors at the edges, A the means and D the differences of neighbours, its variance is
    ``trace(A S- A' D S+ D')``.
    """
    products, published = np.empty(pool.smaller.shape), pool.published
    cumulative: dict[bytes, Floats] = {}
    for row in range(products.size):
        filled, ends = pool.filled[row], pool.ends[row]
        key = filled.tobytes() + ends.tobytes()
        if key not in cumulative:
            cumulative[key] = _edge_covariance(pool, filled, ends)
        positive, negative = (
            _function_covariance(
                cumulative[key], published[name][row], float(published[SIZES][row, index])
            )
            for index, name in enumerate((POSITIVES, NEGATIVES))
        )
        # sums and differences of neighbours along both axes
        means = negative[1:] + negative[:-1]
        means = (means[:, 1:] + means[:, :-1]) / 4
        steps = np.diff(np.diff(positive, axis=0), axis=1)
        products[row] = np.sum(means * steps)
    return products + pool.lone_mass * pool.cell_variance


def _edge_covariance(pool: Pooled, filled: NDArray[np.bool_], ends: Integers) -> Floats:
    """The covariance of a class's counts below every edge, shape (B+1, B+1); filled cells count."""
    cells = pool.noise.cell_covariance(np.concatenate([[0], ends])) * np.outer(filled, filled)
    summed = np.zeros((ends.size + 1, ends.size + 1))
    summed[1:, 1:] = np.cumsum(np.cumsum(cells, axis=0), axis=1)
    return summed


def _function_covariance(below: Floats, values: Floats, size: float) -> Floats:
    """The covariance of a distribution function's errors at the edges, shape (B+1, B+1).

    Of ``F_k = c_k / n``, with c_k the counts below edge k and n all of them, to first order
    ``n^2 Cov(F_k, F_j) = Cov(c_k, c_j) - F_k Cov(n, c_j) - F_j Cov(c_k, n) + F_k F_j Var(n)``.
    """
    function = np.concatenate([[0.0], values, [1.0]])
    crossed = np.outer(function, below[-1])
    return np.asarray(
        (below - crossed - crossed.T + np.outer(function, function) * below[-1, -1]) / size**2
    )


def hidden_variance(pool: Pooled, auc_error: Floats) -> Floats:
    """What cells hide of the AUC, shape (R,).

    Of records placed at random in a cell of p positives and n negatives, ``p n / 12`` pairs are
    left open (``estimate``); smooth densities add ``hidden_in_cells``, but in cells of one double.
    Where a cell is still concentrated, the fraction of its pairs that positives win is taken as
    uniform on [0, 1]. Ties between edges of linear functions add ``several_variance``.
    """
    concentrated, counts = pool.concentrated(auc_error), pool.counts
    shares = np.prod(zoomed_cells.shares_of(counts), axis=-2)
    placed = np.sum(shares, axis=-1) / 12 / np.prod(pool.sizes, axis=-1)
    left_out = concentrated | pool.single
    hidden = zoomed_cells.hidden_in_cells(counts, pool.is_linear)
    smooth = np.sum(np.where(left_out, 0.0, hidden), axis=-1)
    in_concentrations = np.sum(np.where(concentrated, shares, 0.0) ** 2, axis=-1) / 12
    by_ties: Floats | float = curves.HIDDEN_TIES**2
    if pool.is_linear:
        by_ties = zoomed_cells.several_variance(counts, pool.cell_error, left_out)
    return placed + by_ties + smooth**2 + in_concentrations
