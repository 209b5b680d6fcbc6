"""Counts of the levels of trees, of reports by single records and of sums, with their noise.

A record that reports alone does so on one level, which does not depend on what it holds: the
reports on a level are about a random part of all records, and its counts are scaled up. Of sums, a
field ``name-level`` carries one level of so many trees of one name: all nodes of the first tree,
then those of the next. The roots are level 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.privacy.unary import SET_BIT_VARIANCE, unary_counts, unary_variance
from tacit.protocol import releases
from tacit.protocol.conversation import Query, View

FIRST_CELLS = 2
"""Index of the first level with cells of a tree over both classes, after the total and them."""

CHOICE_UNITS = 2**20
"""Records choose their level with probabilities that are whole multiples of one in so many."""


def sampled_noise(
    variances: Floats,
    factors: Floats,
    records: float,
    extra: float = SET_BIT_VARIANCE,
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
    variances[FIRST_CELLS:] = factors[FIRST_CELLS:] * records * unary_variance(epsilon)
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
        variances[level] = factors[level] ** 2 * max(reports, 1) * unary_variance(epsilon)
        counts = np.full(bits.shape, records / (trees << level))
        if reports:
            counts = factors[level] * unary_counts(bits, reports, epsilon)
        levels[level] = counts.reshape(*bits.shape[:-1], trees, 1 << level)
    noise = sampled_noise(variances, factors, records, centred=total_known, trees=trees)
    return consistent_leaves(levels, noise.weighting), noise


LEVEL = "level"
"""The name of the trees, where all have the same."""


def level_fields(
    name: str, trees: int, reach: int, parts: Mapping[int, float]
) -> dict[str, releases.Released]:
    """The counts of some levels.

    Parameters
    ----------
    name : of the trees.
    trees : how many there are.
    reach : by how much a neighbour changes the counts of one level, all together.
    parts : the epsilon of each level.
    """
    return {
        f"{name}-{level}": releases.Released((trees << level,), reach, part)
        for level, part in parts.items()
    }


def counts_at(leaves: Integers, size: int, query: Query, clients: Clients) -> Integers:
    """How often each leaf occurs, of all clients or of each as the query asks.

    Parameters
    ----------
    leaves : of every record, shape (M, ...).
    size : how many leaves there are, for a result of shape (size,) or (size, K).
    query : its view says whose counts are asked for.
    clients : K of them.
    """
    if query.view is not View.EACH:
        return np.bincount(leaves.ravel(), minlength=size)
    places = leaves.T * clients.count + clients.client_of_record
    counts = np.bincount(places.ravel(), minlength=size * clients.count)
    return counts.reshape(size, clients.count)


def level_counts(
    name: str, leaves: Integers, height: int, levels: Iterable[int], query: Query
) -> dict[str, Integers]:
    """The counts of these levels by field, from those of the leaves of trees of this height."""
    axis = -2 if query.view is View.EACH else -1
    by_level = {}
    for level in levels:
        below = (1 << height) >> level
        nodes = leaves.shape[axis] // below
        shape = (*leaves.shape[:axis], nodes, below, *leaves.shape[leaves.ndim + axis + 1 :])
        by_level[f"{name}-{level}"] = leaves.reshape(shape).sum(axis=axis)
    return by_level


def summed_levels(sums: releases.Sums, name: str = LEVEL) -> dict[int, Floats]:
    """The summed counts by level, shape (..., trees, 2**level)."""
    counts = {level: sums[f"{name}-{level}"] for level in _by_level(sums.fields, name)}
    return {level: each.reshape(*each.shape[:-1], -1, 1 << level) for level, each in counts.items()}


def tree_noise(fields: releases.Fields, noises: float = 1.0, name: str = LEVEL) -> TreeNoise:
    """The errors of a summed tree, with this multiple of the noise that the guarantee needs."""
    released = _by_level(fields, name)
    variances = np.full(max(released) + 1, np.inf)
    for level, each in released.items():
        variances[level] = each.variance(noises)
    return TreeNoise(variances)


def pooled(noise: TreeNoise, strata: int) -> TreeNoise:
    """The noise of the sum of so many trees, each of which has this noise."""
    return TreeNoise(noise.variances * strata)


def consistent_trees(sums: releases.Sums, name: str = LEVEL) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of all trees, shape (..., trees, 2**height), and a tree's noise."""
    noise, counts = tree_noise(sums.fields, float(sums.noises), name), summed_levels(sums, name)
    levels = [counts.get(level) for level in range(noise.variances.size)]
    return consistent_leaves(levels, noise.variances), noise


def _by_level(fields: releases.Fields, name: str) -> dict[int, releases.Released]:
    prefix = f"{name}-"
    return {
        int(field.removeprefix(prefix)): each
        for field, each in fields.items()
        if field.startswith(prefix)
    }
