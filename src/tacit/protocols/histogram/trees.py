"""The trees of a score histogram: consistent cells of noisy sums and of unary reports.

Cells of a summed tree placed where both classes score: a first count with little of epsilon.

A ROC curve errs in a cell by where its p positives and n negatives lie: by ``p n / 6`` records
squared for either class, so that of B cells those of equal ``sqrt(p n)`` leave the least error
(Lagrange: minimise ``sum p n / b`` over the numbers b of cells that a place is cut into). Equal
cells of a fixed scale spend most of their number on tails without records.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import ScoreScale
from tacit.metrics.trees import TreeNoise, consistent_leaves
from tacit.privacy.local.unary import SET_BIT_VARIANCE, unary_counts, unary_variance
from tacit.protocol import releases
from tacit.protocol.conversation import Query, Reply
from tacit.protocols.histogram.local_rounds import placed_knots
from tacit.protocols.histogram.steps import FIRST_CELLS, level_name, set_bits
from tacit.protocols.shared.cells import even_cell_counts


def tree_noise(fields: releases.Fields, height: int, noises: float = 1.0) -> TreeNoise:
    """The errors of a summed tree, with this multiple of the noise that the guarantee needs."""
    variances = np.full(height + 2, np.inf)
    for level in range(height + 2):
        if level_name(level) in fields:
            variances[level] = fields[level_name(level)].variance(noises)
    return TreeNoise(variances)


def summed_tree(sums: releases.Sums, height: int) -> tuple[Floats, TreeNoise]:
    """The consistent leaves of the summed trees, and their noise."""
    noise = tree_noise(sums.fields, height, float(sums.noises))
    levels = [sums.sums.get(level_name(level)) for level in range(height + 2)]
    return consistent_leaves(levels, noise.variances), noise


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


PLACING_FRACTION = 1 / 32
"""Fraction of epsilon of the first count; a power of two, so that both parts add up exactly."""

PLACING_CELLS = 2**7
"""Number of cells of the protocol's scale in which the first count looks for records."""

NOISE_ERRORS = 1.0
"""Standard errors that are taken off every noisy count, so that noise draws no cells to tails."""

CLASS_PART = 0.3
"""Part of the cells that follows the records of either class, for rates where the other is rare."""

FIXED_PART = 0.02
"""Part of the cells that lies evenly on the protocol's scale, whatever the counts say."""


def placing_field(protocol: Any) -> releases.Released:
    """The first count, of which a neighbour changes ``distance`` numbers by one."""
    part = protocol.known_epsilon * PLACING_FRACTION
    return releases.Released((2 * PLACING_CELLS,), protocol.distance, part)


@releases.release(lambda query: {"cells": placing_field(query.protocol)})
def placing_counts(clients: Clients, query: Query) -> dict[str, Integers]:
    """Send both classes' counts in the cells of the protocol's scale.

    A record counts in one cell: adding or removing it changes one number by one, replacing it two.
    That costs the part ``PLACING_FRACTION`` of epsilon (``tacit.protocol.releases``); the tree has
    the rest.

    The server learns the noisy sum of the counts, and how many clients answered.
    """
    return {"cells": even_cell_counts(query.protocol.on_scale(clients), PLACING_CELLS)}


def knots_of(protocol: Any, counts: Floats, height: int, noises: float = 1.0) -> Floats:
    """The inner edges of ``2**height`` cells placed by noisy counts, shape (2**height - 1,).

    Parameters
    ----------
    counts : positives, then negatives, in ``PLACING_CELLS`` cells, shape (2 * PLACING_CELLS,).
    height : of the tree.
    noises : the noise that arrived, as a multiple of what the guarantee needs.
    """
    error = math.sqrt(placing_field(protocol).variance(noises))
    return balanced_knots(protocol.score_scale, counts.reshape(2, -1), error, height)


def balanced_knots(scale: ScoreScale, counts: Floats, error: float, height: int) -> Floats:
    """Inner edges of cells of equal ``sqrt(p n)``, a part of them following either class alone.

    Parameters
    ----------
    scale : of whose equal cells the counts are.
    counts : positives and negatives, shape (2, B).
    error : the standard error of a count.
    height : there are ``2**height`` new cells.

    Examples
    --------
    >>> from tacit.metrics.cells.score_scale import named_scale
    >>> counts = np.array([[0.0, 100.0, 100.0, 0.0] * 16] * 2)
    >>> balanced_knots(named_scale("even"), counts, 0.0, 2).round(2).tolist()
    [0.25, 0.5, 0.75]
    """
    clear = np.maximum(counts - NOISE_ERRORS * error, 0.0)
    both, alone = (_normalised(each) for each in (np.sqrt(np.prod(clear, axis=0)), clear.sum(0)))
    mixed = (1 - CLASS_PART) * both + CLASS_PART * alone
    return placed_knots(scale, mixed, height, FIXED_PART)


def _normalised(masses: Floats) -> Floats:
    """The same adding up to 1; even where there is nothing."""
    total = float(masses.sum())
    return masses / total if total > 0 else np.full(masses.size, 1 / masses.size)
