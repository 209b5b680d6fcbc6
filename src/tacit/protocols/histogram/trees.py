"""The trees of a score histogram: consistent cells of noisy sums and of unary reports."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.privacy.local.unary import SET_BIT_VARIANCE, unary_counts, unary_variance
from tacit.protocol import releases
from tacit.protocol.conversation import Reply
from tacit.protocols.histogram.steps import FIRST_CELLS, level_name, level_of, set_bits


def tree_noise(fields: releases.Fields, height: int, noises: float = 1.0) -> TreeNoise:
    """The errors of a summed tree, with this multiple of the noise that the guarantee needs."""
    variances = np.full(height + 2, np.inf)
    for level in range(height + 2):
        if level_name(level) in fields:
            variances[level] = fields[level_name(level)].variance(noises)
    return TreeNoise(variances)


def stratum_levels(sums: releases.Sums) -> dict[int, Floats]:
    """The summed counts by level, of every stratum, shape (..., S, 2**level)."""
    counts = {level_of(name): sums[name] for name in sums.fields}
    return {level: each.reshape(*each.shape[:-1], -1, 1 << level) for level, each in counts.items()}


def summed_tree(sums: releases.Sums, height: int) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of every stratum's summed tree, shape (..., S, 2B), and their noise."""
    noise, counts = tree_noise(sums.fields, height, float(sums.noises)), stratum_levels(sums)
    levels = [counts.get(level) for level in range(height + 2)]
    return consistent_leaves(levels, noise.variances), noise


def pooled(noise: TreeNoise, strata: int) -> TreeNoise:
    """The noise of the sum of so many trees, each of which has this noise."""
    return TreeNoise(noise.variances * strata)


def local_tree(
    epsilon: float, reply: Reply, height: int, records: int | None = None
) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of unary reports, on the deepest level that was reported on.

    They are about all ``records``, of which those that report are a random part; None takes
    those that report for all. Where none reports, the tree is even, and as uncertain as that of
    a single report.
    """
    by_level = {level: set_bits(reply, level) for level in range(FIRST_CELLS, height + FIRST_CELLS)}
    records = sum(sent for _, sent in by_level.values()) if records is None else records
    if not any(reports for _, reports in by_level.values()):
        return unknown_tree(by_level[FIRST_CELLS][0].shape, records, epsilon)
    deepest = max(level for level, (_, reports) in by_level.items() if reports)
    variances, factors = np.full(deepest + 1, np.inf), np.zeros(deepest + 1)
    levels: list[Floats | None] = [np.array([float(records)]), None]
    variances[0] = 0.0
    for level in range(FIRST_CELLS, deepest + 1):
        bits, reports = by_level[level]
        if not reports:
            levels.append(None)
            continue
        factors[level] = records / reports
        variances[level] = factors[level] ** 2 * reports * unary_variance(epsilon)
        levels.append(factors[level] * unary_counts(bits, reports, epsilon))
    noise = sampled_noise(variances, factors, records, centred=True)
    return consistent_leaves(levels, noise.weighting), noise


def unknown_tree(shape: tuple[int, ...], records: int, epsilon: float) -> tuple[Floats, TreeNoise]:
    """An even tree of the first cells, shape (..., 4), with the noise of one report about all."""
    factors = np.zeros(FIRST_CELLS + 1)
    variances = np.array([0.0, np.inf, records**2 * unary_variance(epsilon)])
    factors[FIRST_CELLS] = records
    noise = sampled_noise(variances, factors, records, centred=True)
    return np.full(shape, records / shape[-1]), noise


def sampled_noise(variances: Floats, factors: Floats, records: float, centred: bool) -> TreeNoise:
    """The noise of a tree whose records reported on one level each.

    Consistency weighs a level by its noise and by what sampling adds to an average node.
    """
    extra = SET_BIT_VARIANCE if centred else 0.0
    nodes = 2.0 ** np.arange(variances.size)
    assumed = variances + factors * (1 + extra) * records / nodes
    return TreeNoise(variances, assumed, factors, extra, centred)
