"""Trees of counts: consistent estimates by weighted least squares, and their weights.

A tree over two classes has its total at level 0, the classes at level 1, and the classes' cells
below: level ``l`` has ``2**l`` nodes, the first half of them of positives. Levels may be observed
with noise of the same variance at every node of a level, exactly (variance 0), or not at all
(variance infinity). The consistent estimate is the weighted least-squares one (Hay et al. 2010,
section 4, for levels of one variance): a node's observed count and its children's sum are averaged
by their inverse variances on the way up. On the way down, the difference between a parent's
estimate and its children's sum is divided equally between the children.

The errors of weighted sums of a noisy tree's leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers


def pair_sums(nodes: NDArray[np.float64]) -> Floats:
    """The parents of a level's nodes: sums of neighbours, shape (..., n/2)."""
    return nodes[..., 0::2] + nodes[..., 1::2]


def levels_of(leaves: Floats) -> list[Floats]:
    """All levels of a tree from its leaves, the root first.

    Examples
    --------
    >>> import numpy as np
    >>> [level.tolist() for level in levels_of(np.array([1.0, 2.0, 3.0, 4.0]))]
    [[10.0], [3.0, 7.0], [1.0, 2.0, 3.0, 4.0]]
    """
    levels = [leaves]
    while levels[0].shape[-1] > 1:
        levels.insert(0, pair_sums(levels[0]))
    return levels


def subtree_variances(variances: Floats) -> Floats:
    """The variance of a node's count, estimated from its subtree alone, by level."""
    return fractions_and_variances(variances)[1]


def fractions_and_variances(variances: Floats) -> tuple[Floats, Floats]:
    """By level, from the leaves up: the weight of a node's observed count against its children's
    sum, 1 for leaves, and the ``subtree_variances``.

    Raises
    ------
    ValueError : when the leaves are not observed.
    """
    *inner, below = variances.tolist()
    if not math.isfinite(below):
        raise ValueError("the leaves of a tree must be observed")
    made = [(1.0, below)]
    for variance in reversed(inner):
        children = 2 * made[-1][1]
        if not math.isfinite(variance):
            made.append((0.0, children))
        elif variance == 0:
            made.append((1.0, 0.0))
        else:
            fraction = children / (variance + children)
            made.append((fraction, variance * fraction))
    fractions, subtrees = np.array(made[::-1]).T
    return fractions, subtrees


def node_variances(variances: Floats) -> Floats:
    """The variance of a node's count in the consistent tree, by level.

    A child has half of its parent's count and half of the difference to its sibling, which is
    estimated from the two subtrees alone: ``v_{l+1} = v_l / 4 + s_{l+1} / 2``.
    """
    by_level = subtree_variances(variances)
    for level in range(1, by_level.size):
        by_level[level] = by_level[level - 1] / 4 + by_level[level] / 2
    return by_level


def consistent_leaves(levels: Sequence[Floats | None], variances: Floats) -> Floats:
    """The leaves of the consistent tree, shape (..., 2**h).

    Parameters
    ----------
    levels : the observed counts, the root first; None where a level was not observed.
    variances : the noise variance at each level's nodes, shape (h+1,).

    Examples
    --------
    >>> import numpy as np
    >>> root, leaves = np.array([10.0]), np.array([3.0, 4.0])
    >>> consistent_leaves([root, leaves], np.array([1.0, 1.0])).tolist()
    [4.0, 5.0]
    """
    fractions, _ = fractions_and_variances(variances)
    upward: list[Floats] = [np.asarray(levels[-1], dtype=np.float64)]
    # on the way up: inverse-variance means of a node's observation and its children's sum
    for level in range(len(levels) - 2, -1, -1):
        children, observed = pair_sums(upward[0]), levels[level]
        fraction = fractions[level]
        mean = children if observed is None else fraction * observed + (1 - fraction) * children
        upward.insert(0, mean)
    known = upward[0]
    # on the way down: half of the difference to the parent goes to each child
    for nodes in upward[1:]:
        known = _add_to_children(nodes, (known - pair_sums(nodes)) / 2)
    return known


def observation_weights(weights: Floats, variances: Floats) -> list[Floats]:
    """The weight of every observed count in a weighted sum of consistent leaves, by level.

    The adjoint of ``consistent_leaves``: the sum over levels of these weights times the observed
    counts is the sum of ``weights`` times the consistent leaves. Shape (..., 2**l) at level l.

    Examples
    --------
    >>> import numpy as np
    >>> by_level = observation_weights(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    >>> [np.round(level, 4).tolist() for level in by_level]
    [[0.3333], [0.6667, -0.3333]]
    """
    fractions, _ = fractions_and_variances(variances)
    downward = [weights]
    deviations: list[Floats] = []
    for _ in range(variances.size - 1):
        half = pair_sums(downward[0]) / 2
        deviations.insert(0, _add_to_children(downward[0], -half))
        downward.insert(0, half)
    by_level = []
    passed: Floats = downward[0]
    for level, fraction in enumerate(fractions):
        by_level.append(fraction * passed)
        if level < len(deviations):
            passed = _add_to_children(deviations[level], (1 - fraction) * passed)
    return by_level


def _add_to_children(nodes: Floats, added: Floats) -> Floats:
    """A level's nodes plus what each parent hands to both of its children."""
    pairs = nodes.reshape(*added.shape, 2) + added[..., np.newaxis]
    return pairs.reshape(nodes.shape)


WEIGHTS_AT_ONCE = 2**23
"""Number of weights that are processed at a time, about."""

Product = Callable[[Floats, Floats], Floats]
"""A product of weights: of each row with itself, shape (T,), or of all pairs of rows, (D, D)."""


@dataclass(frozen=True, eq=False)
class TreeNoise:
    """The errors of a tree's observed counts.

    Parameters
    ----------
    variances : the noise variance of a level's nodes, the root first, shape (h+1,); infinity where
        the level was not observed, 0 where it is exact.
    assumed : the variances with which the tree was made consistent, same shape; None takes
        ``variances``.
    factors : where every record was counted on one level only, the ratio of all records to those
        counted, by level, shape (h+1,), and 0 at levels that no record reported on; None where
        every record was counted on every level.
    extra : the variance that a counted record adds to the count of its node, as in unary encoding.
    centred : whether a level's counts were scaled by the known number of its reports, which removes
        the error of the total.
    """

    variances: Floats
    assumed: Floats | None = None
    factors: Floats | None = None
    extra: float = 0.0
    centred: bool = False

    @property
    def weighting(self) -> Floats:
        """The variances by which observed counts are averaged."""
        return self.variances if self.assumed is None else self.assumed

    @property
    def exact(self) -> bool:
        """Whether every observed count is exact and about all records."""
        return self.factors is None and not self.variances[np.isfinite(self.variances)].any()

    def drawn(self, source: np.random.Generator, draws: int) -> Floats:
        """The consistent leaves of trees of normal noise alone, shape (draws, leaves)."""
        levels = [
            source.standard_normal((draws, 1 << level)) * np.sqrt(variance)
            if np.isfinite(variance)
            else None
            for level, variance in enumerate(self.weighting)
        ]
        return consistent_leaves(levels, self.weighting)

    def variance_of(self, weights: Floats, leaves: Floats) -> Floats:
        """The variance of the sum of ``weights`` times the consistent leaves, shape (...).

        Parameters
        ----------
        weights : shape (..., 2**h).
        leaves : the estimated leaves, shape (2**h,), or (..., 2**h) with the weights' axes; needed
            where records were sampled. Negative ones are used as they are: the variance is linear
            in them, and noise clipped at zero would look like records.

        With ``g`` the weights of observed counts, ``c`` the expected ones, ``v`` a level's noise
        and ``f`` its factor: ``sum_l v sum g**2``, and where records are assigned to levels
        ``sum_l f ((1 + extra) sum c g**2 - m_g) - (sum c w**2 - m_w)``, the variance of the mean of
        a random partition's parts; ``m_g = (sum c g)**2 / M`` and ``m_w`` alike, both 0 unless
        centred.
        """
        if self.exact:
            return np.zeros(weights.shape[:-1])
        flat = weights.reshape(-1, weights.shape[-1])
        broad = np.broadcast_to(leaves, weights.shape).reshape(flat.shape)
        group = max(1, WEIGHTS_AT_ONCE // flat.shape[-1])
        variances_by_group = [
            self._variance(flat[start : start + group], broad[start : start + group])
            for start in range(0, flat.shape[0], group)
        ]
        return np.concatenate(variances_by_group).reshape(weights.shape[:-1])

    def covariance_of(self, weights: Floats, leaves: Floats) -> Floats:
        """The covariance of several such sums, shape (D, D).

        The bilinear form of ``variance_of``: each square of weights becomes a product of two rows.

        Parameters
        ----------
        weights : shape (D, 2**h).
        leaves : shape (2**h,), as for ``variance_of``.
        """
        if self.exact:
            return np.zeros((weights.shape[0], weights.shape[0]))
        made = self._form(weights, leaves, lambda one, other: one @ other.T)
        np.fill_diagonal(made, np.maximum(np.diag(made), 0.0))
        return made

    def _variance(self, weights: Floats, leaves: Floats) -> Floats:
        if self._own_variances:
            return self._by_contrasts(weights)
        made = self._form(weights, leaves, lambda one, other: np.sum(one * other, axis=-1))
        return np.maximum(made, 0.0)

    def _form(self, weights: Floats, leaves: Floats, product: Product) -> Floats:
        """The formula of ``variance_of``, with this product of two rows of weights."""
        observed = observation_weights(weights, self.weighting)
        made = np.zeros_like(product(weights[:, :1], weights[:, :1]))
        for level_weights, variance in zip(observed, self.variances, strict=True):
            if np.isfinite(variance) and variance > 0:
                made += variance * product(level_weights, level_weights)
        if self.factors is None:
            return made
        counts = levels_of(leaves)
        total = np.maximum(counts[0], 1.0)

        def of_means(level_weights: Floats, count: Floats) -> Floats:
            """What the known total takes out of the products, 0 unless centred."""
            sums = np.sum(count * level_weights, axis=-1, keepdims=True)
            return product(sums / total, sums) * float(self.centred)

        for level_weights, count, factor in zip(observed, counts, self.factors, strict=True):
            if factor > 0:
                squares = (1 + self.extra) * product(count * level_weights, level_weights)
                made += factor * (squares - of_means(level_weights, count))
        return made - product(leaves * weights, weights) + of_means(weights, leaves)

    def _by_contrasts(self, weights: Floats) -> Floats:
        """The variance where counts were averaged by their own variances, shape (T,).

        The least-squares estimates of a node's count and of the differences of siblings below it
        are uncorrelated. With s the variance of a node's count from its subtree alone, and m the
        mean weight of a node's leaves, the root adds ``s m**2`` and two siblings
        ``s (m_left - m_right)**2 / 2``.
        """
        root, *below = self._subtrees.tolist()
        means, variance = weights, np.zeros(weights.shape[0])
        for subtree in reversed(below):
            left, right = means[:, 0::2], means[:, 1::2]
            apart = left - right
            variance += subtree / 2 * np.einsum("ij,ij->i", apart, apart)
            means = (left + right) / 2
        return np.asarray(variance + root * means[:, 0] ** 2)

    def cell_covariance(self, edges: Integers) -> Floats:
        """The covariance of the consistent counts between neighbouring edges, shape (B, B).

        In time that does not depend on the number of leaves. With s_l the variance of a node's
        count from its subtree alone and z_l the number of leaves below a node of level l, the
        variance of ``_by_contrasts`` is a sum over pairs of leaves: siblings of level l add
        ``s_l (m - m')**2 / 2 = s_l (m**2 + m'**2) - s_l (m + m')**2 / 2``, where m is the sum of
        weights over z_l. The first part is about two leaves below one node of level l, the second
        about two below one parent. So a node of level l that holds both leaves adds
        ``s_l / z_l**2 - s_{l+1} / (2 z_{l+1}**2)`` to their covariance. Of the leaves below the
        edges ``e <= f``, a level's nodes hold ``q z**2 + r min(z, f - q z)`` pairs, with
        ``e = q z + r``.

        Parameters
        ----------
        edges : ascending numbers of leaves, shape (B+1,).

        Raises
        ------
        ValueError : for levels that are averaged by other variances, or on which not every record
            was counted.
        """
        if not self._own_variances:
            raise ValueError("the covariance between edges needs levels with their own variances")
        # the lower edge by row, the upper one by column; pairs the other way round are mirrored
        sizes = 2 ** np.arange(self.variances.size)[::-1]
        spreads = self._subtrees / sizes.astype(np.float64) ** 2
        below = np.zeros((edges.size, edges.size))
        for size, added in zip(sizes, spreads - np.append(spreads[1:], 0.0) / 2, strict=True):
            full = edges // size * size
            pairs = np.minimum(size, edges - full[:, np.newaxis])
            pairs *= (edges - full)[:, np.newaxis]
            pairs += (full * size)[:, np.newaxis]
            below += added * pairs
        below = np.where(np.tri(edges.size, dtype=np.bool_), below.T, below)
        return np.diff(np.diff(below, axis=0), axis=1)

    @property
    def _own_variances(self) -> bool:
        """Whether every record was counted on every level, and levels have their own weights."""
        return self.assumed is None and self.factors is None

    @cached_property
    def _subtrees(self) -> Floats:
        """The variance of a node's count from its subtree alone, by level."""
        return subtree_variances(self.variances)
