"""The trees of a score histogram: consistent cells of noisy sums and of unary reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import consistent_leaves
from tacit.privacy.local.unary import SET_BIT_VARIANCE, unary_counts, unary_variance
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.protocol.conversation import Reply
from tacit.protocols.histogram.steps import FIRST_CELLS, level_name, set_bits
from tacit.protocols.shared.trees.tree_budget import CHOICE_UNITS

if TYPE_CHECKING:
    from tacit.protocols.histogram.protocol import ScoreHistogram


def summed_tree(
    protocol: ScoreHistogram, reply: Reply, height: int, inflation: float
) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of the summed trees, and their noise."""
    scales = protocol.level_scales(height)
    variances = np.full(height + 2, np.inf)
    for level, scale in scales.items():
        variances[level] = inflation * discrete_laplace_variance(scale) if scale else 0.0
    sums = {level: np.asarray(reply[level_name(level)], dtype=np.float64) for level in scales}
    if protocol.budget == "split":
        levels = [sums.get(level) for level in range(height + 2)]
        return consistent_leaves(levels, variances), TreeNoise(variances)
    factors = np.zeros(height + 2)
    factors[FIRST_CELLS:] = CHOICE_UNITS / np.array(protocol.level_units(height), dtype=np.float64)
    variances[FIRST_CELLS:] *= factors[FIRST_CELLS:] ** 2
    scaled = {level: factors[level] * counts for level, counts in sums.items()}
    records = max(float(np.mean([counts.sum(axis=-1) for counts in scaled.values()])), 1.0)
    noise = sampled_noise(variances, factors, records, centred=False)
    levels = [scaled.get(level) for level in range(height + 2)]
    return consistent_leaves(levels, noise.weighting), noise


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
