"""Trees of counts from reports by single records, with their noise.

A record that reports alone does so on one level, which does not depend on what it holds: the
reports on a level are about a random part of all records, and its counts are scaled up.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.privacy import unary

FIRST_CELLS = 2
"""Index of the first level with cells of a tree over both classes, after the total and them."""


CHOICE_UNITS = 2**20
"""Records choose their level with probabilities that are whole multiples of one in so many."""


def sampled_noise(
    variances: Floats,
    factors: Floats,
    records: float,
    extra: float = unary.SET_BIT_VARIANCE,
    centred: bool = True,
    trees: int = 1,
) -> TreeNoise:
    """The noise of a tree whose records reported on one level each.

    Consistency weighs a level by its noise and by what sampling adds to an average node.

    Parameters
    ----------
    variances, factors, extra, centred : as ``TreeNoise`` has them.
    records : in all trees.
    trees : how many there are.
    """
    nodes = trees * 2.0 ** np.arange(variances.size)
    assumed = variances + factors * (1 + extra) * records / nodes
    return TreeNoise(variances, assumed, factors, extra, centred)


def expected_noise(
    records: float, epsilon: float, units: tuple[int, ...], reporting: float = 1.0
) -> TreeNoise:
    """The noise of unary reports of so many records in a tree over both classes.

    Parameters
    ----------
    records : that the tree is about.
    epsilon : of a report.
    units : of ``CHOICE_UNITS`` records, how many report on each level.
    reporting : the fraction of the records that report on any.
    """
    variances, factors = np.full(len(units) + 2, np.inf), np.zeros(len(units) + 2)
    # the number of records is known; on each level counts of the records that choose it are scaled
    # up, by which their variance grows once more than their number falls
    variances[0] = 0.0
    factors[FIRST_CELLS:] = CHOICE_UNITS / np.array(units, dtype=np.float64) / reporting
    variances[FIRST_CELLS:] = factors[FIRST_CELLS:] * records * unary.unary_variance(epsilon)
    return sampled_noise(variances, factors, records)


def trees_of_reports(
    counted: Mapping[int, tuple[Integers, int]],
    records: float,
    epsilon: float,
    trees: int = 1,
    total_known: bool = True,
) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of unary reports, shape (..., trees, 2**height), and a tree's noise.

    A level on which no record reported is taken as even, and as uncertain as one report about all.

    Parameters
    ----------
    counted : of every level how many reports have each bit set, shape (..., trees * 2**level), and
        how many reports there are.
    records : that all trees are about.
    epsilon : of one report.
    trees : how many there are.
    total_known : whether a tree is about a known number of records.
    """
    height = max(counted)
    variances, factors = np.full(height + 1, np.inf), np.zeros(height + 1)
    levels: list[Floats | None] = [None] * (height + 1)
    if total_known:
        variances[0], levels[0] = 0.0, np.array([float(records)])
    for level, (bits, reports) in counted.items():
        factors[level] = records / max(reports, 1)
        # f^2 r v
        variances[level] = factors[level] ** 2 * max(reports, 1) * unary.unary_variance(epsilon)
        counts = np.full(bits.shape, records / (trees << level))
        if reports:
            counts = factors[level] * unary.unary_counts(bits, reports, epsilon)
        levels[level] = counts.reshape(*bits.shape[:-1], trees, 1 << level)
    noise = sampled_noise(variances, factors, records, centred=total_known, trees=trees)
    return consistent_leaves(levels, noise.weighting), noise
