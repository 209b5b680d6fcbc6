"""Counts of the levels of trees, of sums over clients, with their noise.

A field ``name-level`` carries one level of so many trees of one name: all nodes of the first tree,
then those of the next. The roots are level 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.protocol import releases

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


def counts_at(leaves: Integers, size: int, query: tp.Query, clients: tp.Clients) -> Integers:
    """How often each leaf occurs, of all clients or of each as the query asks.

    Parameters
    ----------
    leaves : of every record, shape (M, ...).
    size : how many leaves there are, for a result of shape (size,) or (size, K).
    query : its view says whose counts are asked for.
    clients : K of them.
    """
    if query.view is not tp.View.EACH:
        return np.bincount(leaves.ravel(), minlength=size)
    places = leaves.T * clients.count + clients.client_of_record
    counts = np.bincount(places.ravel(), minlength=size * clients.count)
    return counts.reshape(size, clients.count)


def level_counts(
    name: str, leaves: Integers, height: int, levels: Iterable[int], query: tp.Query
) -> dict[str, Integers]:
    """The counts of these levels by field, from those of the leaves of trees of this height."""
    axis = -2 if query.view is tp.View.EACH else -1
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
