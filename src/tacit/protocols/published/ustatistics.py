"""U-statistics and the AUC in the local model as published: Bell, Bellet, Gascon and Kulkarni 2020.

Section 3, Algorithm 1: every record reports its bin by k-ary randomised response, and the server
takes the kernel's mean over all pairs of debiased reports. Section 4: every record answers one
question about its score's cell on a level of a tree, and the server traverses the trees of both
classes. ``UStatistic`` and ``HierarchicalAUC`` make more of the same reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Flags, Floats
from tacit.local.hierarchical.estimate import LevelArea, LevelCounts
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.local.pair_kernels import PairTables, SymbolSpace
from tacit.local.ustatistic import kernels
from tacit.local.ustatistic.protocol import UStatistic
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol import audits


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
    def of(cls, open_nodes: Flags, stopped: Flags, lowest: bool) -> Forms:
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
        return squares - 2 * lines.sum(axis=-1) / size + (total / size) ** 2


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
        squares = trees.pair_sums(children) ** 2 - 2 * levels.variances[..., level, np.newaxis]
        cell_variance = cell_variance + np.sum(
            np.where(stopped, squares.prod(axis=-2), 0.0), axis=-1
        )
        active = np.repeat(open_nodes, 2, axis=-1)
    cell_variance = np.maximum(cell_variance, 0.0) / 12 / pairs**2
    return LevelArea(value, influences, product, cell_variance)


def _large(counts: Floats, bound: Floats, factor: float) -> Flags:
    """Whether nodes are looked into: ``h~+ h~- >= tau`` with ``h~ = max(h, sqrt(a v) / 2)``."""
    least = np.sqrt(factor * bound)[:, np.newaxis] / 2
    raised: Floats = np.maximum(counts, least).prod(axis=-2)
    return raised >= factor * math.sqrt(bound.prod())


@dataclass(frozen=True)
class PublishedUStatistic(UStatistic):
    """The mean of a kernel over all pairs of records (Bell et al. 2020, Algorithm 1).

    A record's input is rounded to one of k bins, k by Corollary 1 where the domain leaves it open.
    Its report is that bin with probability ``1 - beta + beta / k``, and any other with ``beta /
    k``, ``beta = k / (k + exp(epsilon) - 1)`` (Eq. 9). The estimate is the U-statistic of the
    reports with the kernel ``(e_x - b)' A (e_x' - b) / (1 - beta)^2``, b having ``beta / k``
    everywhere, and A the kernel's means over pairs of two bins on which values are uniform
    (section 3). What bins hide of the density is left as it is, and enters the error.

    Parameters
    ----------
    kernel : ``Gini()``, ``Collision(values)`` or ``Kendall()``, or their words; or ``Own(function,
        values)``; each with its domain, as in ``UStatistic``. The paper's AUC is
        ``PublishedHierarchicalAUC``.
    epsilon : the privacy budget of every record.

    Raises
    ------
    ValueError : as ``UStatistic``.

    Examples
    --------
    >>> PublishedUStatistic("gini", 1.0).bins_for(10_000)
    10
    """

    kernel: kernels.Gini | kernels.Collision | kernels.Kendall | kernels.Own | str = tp.setting(
        help="the function of two records, with the public domain of its values in brackets"
    )
    epsilon: float = tp.setting(help=tp.EPSILON)

    name = "published-ustatistic"
    planning_module, trusts = "", ()
    audit_settings = ({"kernel": "gini"}, {"kernel": "gini(domain=range(bins=4))"})
    law_settings: ClassVar[audits.Configurations] = {
        "published-gini": {"kernel": "gini(domain=range(bins=4))"}
    }

    def tables(self, space: SymbolSpace) -> PairTables:
        """The kernel's means over pairs of two bins, as they are."""
        return replace(super().tables(space), means=self.function.pair.plain(space))


@dataclass(frozen=True)
class PublishedHierarchicalAUC(HierarchicalAUC):
    """The AUC of private scores with public classes (Bell et al. 2020, section 4).

    Scores are in a domain of ``2**height`` cells. Frequencies on every level of both classes' trees
    come from one bit a record, by a row of the Hadamard matrix (B.2): on one level drawn at random,
    at epsilon, or on every level, at (epsilon, delta) (Theorem 4). The server walks the trees from
    the root, adds ``h_p1^+ h_p0^-`` and goes on below nodes with many pairs (Eq. 10).

    Parameters
    ----------
    epsilon, height, levels : as in ``HierarchicalAUC``.
    scale : the map of scores to positions, of which equal cells are counted; ``"even"``, the
        scores themselves, by default.

    Raises
    ------
    ValueError : as ``HierarchicalAUC``.

    Examples
    --------
    >>> PublishedHierarchicalAUC(epsilon=1.0, height=8).settings["scale"]
    'even'
    """

    scale: str = tp.scale_setting(EVEN)

    name = "published-hierarchical"
    planning_module, trusts = "", ()
    law_settings: ClassVar[audits.Configurations] = {
        "local-hierarchical-traversal": {"epsilon": 6.0, "height": 1}
    }

    def area(self, levels: LevelCounts, leaves: Floats) -> LevelArea:
        """The area by the traversal."""
        return traversal_area(levels)
