"""The aggregator's side of the AUC with noise: what it publishes, and its result with errors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.privacy.cost import Adjacency
from tacit.privacy.sampling.distributions import discrete_laplace_variance
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocol.releases import answered_clients
from tacit.protocols.encrypted.private.steps import (
    NEGATIVES,
    POSITIVES,
    SIZES,
    PrivateSums,
    influences_of,
    noisy_counts,
    noisy_influences,
    product_variance,
    tied_variance,
)
from tacit.protocols.shared.cells import COARSE_CELLS, signal_warnings
from tacit.protocols.shared.influence_sum import FIXED_POINT, units_for
from tacit.protocols.shared.trees.tree_budget import CELL_BIAS
from tacit.results.figure import MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.server_result import ServerResult

NOBODY_COLLUDES = (
    "the part {part:g} of {parties} parties is less than one: epsilon holds where no party "
    "colludes with the aggregator; for one that does, agree on a part of {needed:.2g} or more"
)


def on_noisy_sums(protocol: Any, clients: int) -> Conversation:
    """Noisy counts of all parties; then one noisy number, for the functions that they give.

    Raises
    ------
    DataError : for a sum that not all parties are in: the noise was divided over all of them.
    """
    sums: PrivateSums = protocol.private_sums
    shared = {"clients": clients}
    counted = yield Query(noisy_counts, protocol, broadcast=shared, view=View.SUM)
    answered_clients(counted, clients)
    inflation = float(sums.share(clients, clients))
    cells, noise = counts_of(counted, sums, inflation)
    fields = published(cells)
    summed = yield Query(noisy_influences, protocol, broadcast={**shared, **fields}, view=View.SUM)
    answered_clients(summed, clients)
    total = np.asarray(summed["sum"], dtype=np.float64)
    result = result_of(cells, noise, fields, total, sums, inflation)
    return replace(result, warnings=(*result.warnings, *collusion_warnings(sums, clients)))


def collusion_warnings(sums: PrivateSums, parties: int) -> tuple[str, ...]:
    """A warning where the agreed part of so many parties is nobody, although it is above 0.

    Examples
    --------
    >>> collusion_warnings(PrivateSums(1.0, 1000, 0.2), 5)
    ()
    >>> collusion_warnings(PrivateSums(1.0, 1000, 0.2), 4)[0][:44]
    'the part 0.2 of 4 parties is less than one: '
    """
    if parties < 2 or not sums.colluding or sums.share(parties, parties) > 1:
        return ()
    # rounded up, so that one party is within the part
    needed = math.ceil(100 / parties) / 100
    return (NOBODY_COLLUDES.format(part=sums.colluding, parties=parties, needed=needed),)


def counts_of(reply: Reply, sums: PrivateSums, inflation: float) -> tuple[Floats, trees.TreeNoise]:
    """Both classes' counts in every cell, made to fit their totals, shape (..., 2, B); their noise.

    Parameters
    ----------
    reply : the first round's sums.
    sums : how they were made.
    inflation : the noise of all parties as a multiple of what epsilon needs.
    """
    depth = sums.cells.bit_length() - 1
    variances = np.full(depth + 2, np.inf)
    variances[1] = inflation * discrete_laplace_variance(1 / sums.class_epsilon)
    variances[-1] = inflation * discrete_laplace_variance(1 / sums.count_epsilon)
    levels: list[Floats | None] = [None] * (depth + 2)
    levels[1], levels[-1] = (
        np.asarray(reply[name], dtype=np.float64) for name in ("classes", "cells")
    )
    leaves = trees.consistent_leaves(levels, variances)
    return leaves.reshape(*leaves.shape[:-1], 2, -1), trees.TreeNoise(variances)


def published(cells: Floats) -> dict[str, Floats]:
    """What the aggregator publishes; a class that came out empty gets the size 1.

    Parameters
    ----------
    cells : positives, then negatives, shape (..., 2, B).
    """
    positives, negatives = (rising_fractions(cells[..., row, :])[..., 1:-1] for row in (0, 1))
    return {
        POSITIVES: positives,
        NEGATIVES: negatives,
        SIZES: np.maximum(cells.sum(axis=-1), 1.0),
    }


def result_of(
    cells: Floats,
    noise: trees.TreeNoise,
    fields: dict[str, Floats],
    summed: Floats,
    sums: PrivateSums,
    inflation: float,
) -> ServerResult:
    """The AUC by both rounds with its errors; NaN where a class does not show in the first.

    The errors of the published functions cancel to first order. What remains is the noise of the
    sum, the product of both functions' errors, and that of a class size's relative error with a
    function's error.
    """
    influences, epsilon = influences_of(fields), sums.influence_epsilon
    units, sizes = units_for(epsilon), cells.sum(axis=-1)
    smaller = fields[SIZES].min(axis=-1)
    unit = influences.sensitivity(Adjacency.RECORD) / FIXED_POINT / (units * smaller)
    of_sum = inflation * float(discrete_laplace_variance(units / epsilon)) * unit**2
    class_variance, first_variance = _first_round_variances(cells, noise)
    pairs = np.maximum(np.prod(sizes, axis=-1), 1.0)
    # functions are made to rise, which moves both alike: a bias as large as the product's deviation
    product = 2 * product_variance(float(noise.variances[-1]), sums.cells, pairs)
    of_cells = hidden_variance(cells)
    mixed = 2 * np.sqrt(product * of_cells)
    of_sizes = class_variance / smaller**2 * first_variance
    shown = sizes.min(axis=-1) > MIN_CLASS_SIZE_IN_ERRORS * np.sqrt(class_variance)
    variance = np.where(shown, of_sum + product + mixed + of_sizes, np.nan)
    value = np.where(shown, influences.area + summed * unit, np.nan)
    warnings: tuple[str, ...] = ()
    if np.ndim(value) == 0:
        totals = (sizes[..., 0], sizes[..., 1])
        warnings = signal_warnings(value, totals, math.sqrt(float(class_variance)))
        warnings += (COARSE_CELLS,) if float(of_cells) > float(variance) else ()
    sampling = curves.noisy_sampling_variance(cells[..., 0, :], cells[..., 1, :], value)
    return ServerResult(
        value=value,
        privacy_error=np.sqrt(variance),
        # where some may collude there are more shares: lighter tails than those of one draw
        laplace_error=np.where(shown, np.sqrt(of_sum), 0.0),
        sampling_error=np.sqrt(sampling),
        positives=sizes[..., 0],
        negatives=sizes[..., 1],
        positives_error=np.sqrt(class_variance),
        approximation_error=np.sqrt(of_cells),
        warnings=warnings,
    )


def _first_round_variances(cells: Floats, noise: trees.TreeNoise) -> tuple[Floats, Floats]:
    """The noise variance of a class's total, and that of the first round's AUC, shape (...)."""
    flat = (*cells.shape[:-2], 2 * cells.shape[-1])
    ones = np.broadcast_to(np.repeat([1.0, 0.0], cells.shape[-1]), flat)
    weights = np.concatenate(curves.cell_influences(cells[..., 0, :], cells[..., 1, :]), axis=-1)
    leaves = cells.reshape(flat)
    return noise.variance_of(ones, leaves), noise.variance_of(np.nan_to_num(weights), leaves)


def hidden_variance(cells: Floats) -> Floats:
    """What cells hide of the product of both functions' errors, as a variance, shape (...).

    Of records at random places in a cell of p positives and n negatives ``p n / 12`` is left of the
    variance of the pairs won, after both functions took their part. Smooth densities err by about
    ``CELL_BIAS`` times the squared width of the cells that hold the records, in each function. A
    cell much fuller than its neighbours is a crowd, of which nothing is known; rounded scores are
    never left out.

    Parameters
    ----------
    cells : positives, then negatives, shape (..., 2, B).
    """
    held = np.maximum(cells, 0.0)
    pairs = np.maximum(np.prod(held.sum(axis=-1), axis=-1), 1.0)
    together = np.sum(np.prod(held, axis=-2), axis=-1)
    # pairs that share a cell are as many as the records' part of the cells is narrow
    smooth = CELL_BIAS * (together / pairs) ** 2
    crowds = curves.lone_crowd_variance(held[..., 0, :], held[..., 1, :])
    tied = tied_variance(cells.shape[-1])
    return np.asarray(together / 12 / pairs**2 + crowds + tied + smooth**4)
