"""The AUC of two trees of noisy counts, made consistent over their levels by least squares."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.curves import (
    cell_area,
    cell_influences,
    coarse_variance,
    density_correction,
    density_correction_variance,
)
from tacit.metrics.trees import (
    consistent_leaves,
    levels_of,
    observation_weights,
    subtree_variances,
)
from tacit.protocols.hierarchical.level_counts import LevelArea, LevelCounts, ReportNoise

MIN_CROWDING = 4.0
"""Least ratio at which pairs within cells count as crowded: the mean of their squared numbers over
the square of their mean. Smooth densities have a smaller ratio."""

CORRECTION_ERRORS = 2.0
"""Number of its standard errors that are added to the estimated bias of cells. In low trees noise
moves that estimate and the area in the same direction (correlation 0.9): where the area is too low,
the bias is underestimated."""

SMOOTH_HEIGHT = 5
"""Largest height at which the slopes of the densities are estimated: below it noise is small."""


def consistent_counts(levels: LevelCounts) -> Floats:
    """The lowest level's counts by weighted least squares over all levels, shape (..., 2, 2**h).

    The weights are those of the expected numbers of reports, so they are public, and the same for
    both classes; the root is exact.
    """
    return consistent_leaves(levels.counts, levels.noise.record_variances)


def consistent_area(levels: LevelCounts, leaves: Floats) -> LevelArea:
    """The area of the leaves, pairs within a leaf counted one half."""
    negatives, positives = leaves[..., 0, :], leaves[..., 1, :]
    by_positive, by_negative = cell_influences(positives, negatives)
    weights = np.stack([by_negative, by_positive], axis=-2)
    variances = levels.noise.record_variances
    value = cell_area(positives, negatives)
    return LevelArea(
        value=value,
        influences=observation_weights(weights, variances)[1:],
        product=np.full(value.shape, product_variance(variances) / levels.pairs),
        cell_variance=np.zeros(value.shape),
    )


def product_variance(variances: Floats) -> float:
    """The variance of the cell area's products of errors, times the number of pairs.

    A consistent tree's errors are independent differences between siblings, of variance
    ``D_a = 2 u_{a+1}`` below level a, with u the ``subtree_variances`` of one record. In
    the area the product of two differences, one above the other on levels a < b, has the weight
    ``2**(a-b) / 4``; all other products have the weight 0. There are ``2**b`` such pairs of nodes,
    with either class above: ``sum_{a<b} 2**(2a-b) D_a D_b / 8``.
    """
    differences = 2 * subtree_variances(variances)[1:]
    depth = np.arange(differences.size)
    above, below = np.triu_indices(differences.size, 1)
    weights = 2.0 ** (2 * depth[above] - depth[below]) / 8
    return float(np.sum(weights * differences[above] * differences[below]))


def within_leaf_variance(levels: LevelCounts, leaves: Floats) -> Floats:
    """The error of counting pairs within a leaf one half, as a variance of the AUC.

    Densities that are linear inside cells change the area by ``density_correction``, in proportion
    to the squared width. It is estimated on at most ``2**SMOOTH_HEIGHT`` cells, where noise is
    small beside it, and scaled to the leaves' width; ``CORRECTION_ERRORS`` of its standard errors
    are added. Scores that crowd into few leaves, or leaves that are few, add a further error. The
    correction is not added to the estimate: at useful heights it adds more noise than it removes
    bias.
    """
    height = min(levels.noise.height, SMOOTH_HEIGHT)
    negatives, positives = np.moveaxis(levels_of(leaves)[height], -2, 0)
    noise = levels.classes * leaf_variance(levels.noise.record_variances[: height + 1])
    error = np.sqrt(density_correction_variance(positives, negatives, noise[1], noise[0]))
    correction = np.abs(density_correction(positives, negatives)) + CORRECTION_ERRORS * error
    scale = 4.0 ** (height - levels.noise.height)
    shares = leaves / levels.classes[:, np.newaxis]
    crowds = np.maximum(crowded_variance(levels, leaves), coarse_variance(shares))
    return (scale * correction) ** 2 + crowds


def crowded_variance(levels: LevelCounts, leaves: Floats) -> Floats:
    """The error of cells that hold far more pairs than others, as a variance of the AUC.

    The fraction of a cell's pairs that positives win is taken as uniform on [0, 1], of variance
    1/12, for squared numbers of pairs beyond ``MIN_CROWDING`` times those of equal cells. A squared
    count is too large by its noise variance on average, which is subtracted first.
    """
    variance = levels.classes[:, np.newaxis] * leaf_variance(levels.noise.record_variances)
    squares = np.prod(leaves**2 - variance, axis=-2).sum(axis=-1)
    uniform = np.prod(leaves, axis=-2).sum(axis=-1) ** 2 / leaves.shape[-1]
    return np.maximum(squares - MIN_CROWDING * uniform, 0.0) / 12 / levels.pairs**2


def leaf_variance(variances: Floats) -> float:
    """The variance of a consistent leaf by one record: a difference on level a enters it halved for
    every level from there down, ``sum_a D_a 4**(a-h)``."""
    differences = 2 * subtree_variances(variances)[1:]
    return float(np.sum(differences * 4.0 ** (np.arange(differences.size) - differences.size)))


def planned_variance(noise: ReportNoise, records: int) -> float:
    """The AUC's variance for so many records, half of them positive, uniform.

    The influences then fall evenly from 1/2 to -1/2 over a class's n records: half the difference
    of the halves' means below a node of level a is ``2**-(a+2) / n``, and there are ``2**a`` such
    nodes. The variance of products of errors is added.
    """
    variances = noise.record_variances
    differences = 2 * subtree_variances(variances)[1:]
    one_class = np.sum(differences * 2.0 ** -(np.arange(differences.size) + 4))
    return float(4 * one_class / records) + 4 * product_variance(variances) / records**2
