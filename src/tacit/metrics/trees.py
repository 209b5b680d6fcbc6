"""Trees of counts: consistent estimates by weighted least squares, and their weights.

A tree over two classes has its total at level 0, the classes at level 1, and the classes' cells
below: level ``l`` has ``2**l`` nodes, the first half of them of positives. Levels may be observed
with noise of the same variance at every node of a level, exactly (variance 0), or not at all
(variance infinity). The consistent estimate is the weighted least-squares one (Hay et al. 2010,
section 4, for levels of one variance): a node's observed count and its children's sum are averaged
by their inverse variances on the way up. On the way down, the difference between a parent's
estimate and its children's sum is divided equally between the children.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats


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


def observation_fractions(variances: Floats) -> Floats:
    """The weight of a node's observed count against its children's sum, by level; 1 for leaves.

    Raises
    ------
    ValueError : when the leaves are not observed.
    """
    *inner, below = variances.tolist()
    if not math.isfinite(below):
        raise ValueError("the leaves of a tree must be observed")
    fractions = [1.0]
    for variance in reversed(inner):
        children = 2 * below
        if not math.isfinite(variance):
            fraction, below = 0.0, children
        elif variance == 0:
            fraction, below = 1.0, 0.0
        else:
            fraction = children / (variance + children)
            below = variance * fraction
        fractions.append(fraction)
    return np.array(fractions[::-1])


def subtree_variances(variances: Floats) -> Floats:
    """The variance of a node's count, estimated from its subtree alone, by level."""
    *inner, leaf = variances.tolist()
    upward = [leaf]
    fractions = observation_fractions(variances)[-2::-1].tolist()
    for variance, fraction in zip(reversed(inner), fractions, strict=True):
        upward.append(2 * upward[-1] if fraction == 0 else variance * fraction)
    return np.array(upward[::-1])


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
    fractions = observation_fractions(variances)
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
    fractions = observation_fractions(variances)
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
