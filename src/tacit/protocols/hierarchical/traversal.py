"""The traversal of two trees of noisy counts (Bell et al. 2020, section 4): the AUC by its large
nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.trees import pair_sums
from tacit.protocols.hierarchical.level_counts import LevelArea, LevelCounts

Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Forms:
    """What pairs below nodes count, each of shape (..., n).

    Parameters
    ----------
    within : pairs in the same child.
    won : a positive in the upper child and a negative in the lower one.
    lost : the other way round.
    """

    within: Floats
    won: Floats
    lost: Floats

    @classmethod
    def of(cls, open_nodes: Bits, stopped: Bits, lowest: bool) -> Forms:
        """Below a node that is looked into, pairs in one child are counted further down.

        Among leaves there is no further down: they count one half, as tied scores do. Below a node
        where the walk stops all pairs count one half.
        """
        half = stopped / 2.0
        return cls(half + open_nodes / 2.0 if lowest else half, half + open_nodes, half)

    def influences(self, children: Floats) -> Floats:
        """The area's change with every child's count, before division by the number of pairs.

        Parameters
        ----------
        children : the counts of negatives and positives, shape (..., 2, 2n).
        """
        changes = np.empty_like(children)
        negatives, positives = children[..., 0, :], children[..., 1, :]
        low, high = slice(0, None, 2), slice(1, None, 2)
        changes[..., 1, low] = self.within * negatives[..., low] + self.lost * negatives[..., high]
        changes[..., 1, high] = self.won * negatives[..., low] + self.within * negatives[..., high]
        changes[..., 0, low] = self.within * positives[..., low] + self.won * positives[..., high]
        changes[..., 0, high] = self.lost * positives[..., low] + self.within * positives[..., high]
        return changes

    def norm(self) -> Floats:
        """The squared norm of the level's bilinear form on errors that add up to zero.

        The form B is block-diagonal. Taking the mean out of both sides leaves ``|B|**2`` less the
        squared sums of its rows and of its columns over d, plus the squared sum of all over
        ``d**2``.
        """
        size = 2 * self.won.shape[-1]
        squares = np.sum(2 * self.within**2 + self.won**2 + self.lost**2, axis=-1)
        lines = (self.within + self.won) ** 2 + (self.within + self.lost) ** 2
        total = np.sum(2 * self.within + self.won + self.lost, axis=-1)
        norm: Floats = squares - 2 * lines.sum(axis=-1) / size + (total / size) ** 2
        return norm


def threshold_factor(classes: Floats, gain: float) -> float:
    """The factor ``a > 1`` of the stopping threshold that makes Theorem 3's bound least.

    Of the bound, ``4 a m + 21 sqrt(2 n C a) / (sqrt(a) - 1)`` depends on a, with m the smaller
    class, n all records and C the squared gain. With ``x = sqrt(a)`` its derivative is zero where
    ``x (x-1)**2 = 21 sqrt(2 n C) / (8 m)``, which has one solution above 1.

    Examples
    --------
    >>> import numpy as np
    >>> round(threshold_factor(np.array([340000.0, 117000.0]), 2.164), 2)
    1.43
    """
    right = 21 * math.sqrt(2 * float(classes.sum())) * gain / (8 * float(classes.min()))
    roots = np.roots([1.0, -2.0, 1.0, -right])
    return float(roots[np.abs(roots.imag) < 1e-9].real.max()) ** 2


def traversal_area(levels: LevelCounts) -> LevelArea:
    """The paper's estimate, walked level by level for all nodes and replicates at once.

    A node whose counts, raised to at least half of ``sqrt(a v)``, have a product below ``tau =
    a sqrt(v- v+)`` is not looked into: half its pairs count as won (Bell et al. 2020, before Eq.
    10). Here ``v = C n h`` bounds a count's variance; the root is exact, and always looked into.
    Pairs within a leaf count one half; in the paper, whose AUC counts ties as lost, they count 0.
    Whether a node is looked into follows from levels above those whose counts are multiplied, so
    given the choices the estimate is bilinear and without bias, but for what stopped nodes hide.
    """
    height, pairs = levels.noise.height, levels.pairs
    bound = levels.classes * levels.noise.record_variances[-1] / (1 - 2.0**-height)
    factor = threshold_factor(levels.classes, levels.noise.gain)
    active = np.ones((*levels.counts[1].shape[:-2], 1), dtype=np.bool_)
    value, product, cell_variance = (np.zeros(active.shape[:-1]) for _ in range(3))
    influences = []
    for level in range(height):
        large = _large(levels.counts[level], bound, factor) if level else active
        open_nodes, stopped = active & large, active & ~large
        children = levels.counts[level + 1]
        forms = Forms.of(open_nodes, stopped, level == height - 1)
        influence = forms.influences(children) / pairs
        influences.append(influence)
        value = value + np.sum(influence[..., 1, :] * children[..., 1, :], axis=-1)
        product = product + levels.variances[..., level].prod(axis=-1) * forms.norm() / pairs**2
        squares = pair_sums(children) ** 2 - 2 * levels.variances[..., level, np.newaxis]
        cell_variance = cell_variance + np.sum(
            np.where(stopped, squares.prod(axis=-2), 0.0), axis=-1
        )
        active = np.repeat(open_nodes, 2, axis=-1)
    cell_variance = np.maximum(cell_variance, 0.0) / 12 / pairs**2
    return LevelArea(value, influences, product, cell_variance)


def _large(counts: Floats, bound: Floats, factor: float) -> Bits:
    """Whether nodes are looked into: ``h~+ h~- >= tau`` with ``h~ = max(h, sqrt(a v) / 2)``."""
    least = np.sqrt(factor * bound)[:, np.newaxis] / 2
    raised: Floats = np.maximum(counts, least).prod(axis=-2)
    return raised >= factor * math.sqrt(bound.prod())
