"""The server's result from a consistent tree of both classes' scores: the AUC with its errors, the
histogram, and warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.errors import DataError
from tacit.metrics.curves import (
    cell_area,
    cell_influences,
    cell_sampling_variance,
    crowding_variance,
    curvature_error,
    density_correction,
    density_influences,
    placement_variance,
)
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import node_variances, subtree_variances
from tacit.privacy.cost import Cost
from tacit.protocols.histogram.budget import CELL_BIAS
from tacit.protocols.histogram.steps import RANK_UNITS
from tacit.protocols.shared.cells import COARSE_CELLS, signal_warnings
from tacit.results.histogram import Histogram
from tacit.results.server_result import ServerResult

MIN_BUCKET_IN_ERRORS = 5.0
"""Least count of a supported bucket, in standard deviations of its noise."""

MAX_BUCKETS = 200
"""Largest number of buckets of curves and calibration by default."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """The values that the server publishes for a second round.

    Parameters
    ----------
    values : a whole number for every leaf, shape (..., 2B): see ``summed_ranks``.
    pivot : the number subtracted from every rank, in the same units.
    area : the AUC of the published distributions, shape (...), with what rounding the ranks adds.
    """

    values: NDArray[np.int64]
    pivot: int
    area: Floats


@dataclass(frozen=True, eq=False)
class RankRound:
    """The second round's answers: noisy sums of ranks, shape (..., 2), and their noise variance."""

    ranks: Ranks
    sums: Floats
    variance: float


def published_ranks(leaves: Floats, noise: TreeNoise) -> Ranks:
    """The mid-distributions of each class at the other's leaves, less the estimated AUC.

    With the AUC as the pivot an error in a class's size changes nothing to first order. Of several
    replicates the mean is taken. Inside a cell of the area's depth distributions rise evenly.
    """
    cells = leaves.reshape(*leaves.shape[:-1], 2, -1)
    finest = cells.shape[-1]
    coarse = _at_depth(cells, best_depth(cells, noise))
    positive_distribution, negative_distribution = (
        _distribution(np.repeat(coarse[..., row, :], finest // coarse.shape[-1], axis=-1))
        for row in (0, 1)
    )
    fraction_below, fraction_above = (
        _middles(negative_distribution),
        1 - _middles(positive_distribution),
    )
    area = np.sum(fraction_below * np.diff(positive_distribution, axis=-1), axis=-1)
    pivot = round(RANK_UNITS * float(np.mean(area)))
    whole = np.rint(RANK_UNITS * np.concatenate([fraction_below, fraction_above], axis=-1)).astype(
        np.int64
    )
    masses = np.concatenate(
        [np.diff(positive_distribution, axis=-1), np.diff(negative_distribution, axis=-1)], axis=-1
    )
    return Ranks(whole - pivot, pivot, np.sum(masses * whole, axis=-1) / RANK_UNITS - area)


def result_from_tree(
    leaves: Floats,
    noise: TreeNoise,
    buckets: int | None,
    protection: Cost | None = None,
    second: RankRound | None = None,
) -> ServerResult:
    """The AUC of the leaves with its errors, or of the second round; and the histogram.

    Parameters
    ----------
    leaves : positives, then negatives, shape (..., 2B).
    noise : the errors of the tree that they come from.
    buckets : how many buckets curves and calibration have; None takes what the counts support.
    protection : what the noise supports, where clients vanished.
    second : the answers of a second round.
    """
    cells = leaves.reshape(*leaves.shape[:-1], 2, -1)
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    classes = positives.sum(axis=-1), negatives.sum(axis=-1)
    if noise.exact and min(np.min(classes[0]), np.min(classes[1])) <= 0:
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {int(classes[0])} positive and {int(classes[1])} negative records"
        )
    depth = best_depth(cells, noise)
    coarse = _at_depth(cells, depth)
    value, variance = (
        _area(coarse, cells, noise) if second is None else _ranked(coarse, noise, second)
    )
    cell_variance = _cell_variance(coarse[..., 0, :], coarse[..., 1, :])
    if second is not None:
        cell_variance = _leaf_variance(coarse, cells.shape[-1])
    class_variance = _class_variance(cells, noise)
    single = np.ndim(value) == 0
    supported = _supported(float(classes[0] + classes[1]), noise) if single else 0
    bucket_count = min(supported, MAX_BUCKETS) if buckets is None else buckets
    known = single and bool(np.isfinite(value))
    histogram = Histogram(cells, noise, supported, bucket_count) if known else None
    warnings: tuple[str, ...] = ()
    if single:
        warnings = signal_warnings(value, classes, math.sqrt(float(class_variance)))
        warnings += _tree_warnings(
            float(cell_variance), float(variance), bucket_count, supported, protection
        )
    return ServerResult(
        value=value,
        privacy_error=np.sqrt(variance),
        sampling_error=np.sqrt(cell_sampling_variance(positives, negatives)),
        positives=classes[0],
        negatives=classes[1],
        positives_error=np.sqrt(class_variance),
        approximation_error=np.sqrt(cell_variance),
        roc=histogram.roc() if histogram is not None else None,
        histogram=histogram,
        protection=protection,
        warnings=warnings,
    )


def best_depth(cells: Floats, noise: TreeNoise) -> int:
    """The depth at which the area is computed: deeper cells have less bias and more noise.

    The least sum of ``_products`` and of the squared bias of cells (``CELL_BIAS``); the first-order
    variance grows so slowly with the depth that it is left out. Of several replicates the mean size
    counts.
    """
    products = _products(noise)
    if not products.any():
        return products.size - 1
    pairs = np.mean(np.prod(cells.sum(axis=-1), axis=-1))
    cell_variance = (CELL_BIAS / 4.0 ** np.arange(products.size)) ** 2
    return int(np.argmin(products / max(float(pairs), 1.0) ** 2 + cell_variance))


def _at_depth(cells: Floats, depth: int) -> Floats:
    """The counts in ``2**depth`` cells."""
    return cells.reshape(*cells.shape[:-1], 1 << depth, -1).sum(axis=-1)


def _cell_variance(positives: Floats, negatives: Floats) -> Floats:
    """The error of cells: records' positions, crowding, and the curvature of densities."""
    variance = placement_variance(positives, negatives) + crowding_variance(positives, negatives)
    return variance + curvature_error(positives, negatives) ** 2


def _leaf_variance(coarse: Floats, leaves: int) -> Floats:
    """The error of leaves, where records were ranked by them and crowding is known coarsely.

    Records placed at random inside cells of a ``1/r`` of the width matter ``1/r**2`` as much.
    """
    positives, negatives = coarse[..., 0, :], coarse[..., 1, :]
    finer = (leaves // coarse.shape[-1]) ** 2
    variance = (
        crowding_variance(positives, negatives) + placement_variance(positives, negatives) / finer
    )
    return variance + (CELL_BIAS / leaves**2) ** 2


def _area(cells: Floats, leaves: Floats, noise: TreeNoise) -> tuple[Floats, Floats]:
    """The area of the cells with its variance: that of the influences' sum, and of products."""
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    value = cell_area(positives, negatives) + _correction(positives, negatives, noise)
    plain, bent = cell_influences(positives, negatives), density_influences(positives, negatives)
    weights = np.nan_to_num(np.concatenate([plain[0] + bent[0], plain[1] + bent[1]], axis=-1))
    finer = np.repeat(weights, leaves.shape[-1] // cells.shape[-1], axis=-1)
    class_variance = noise.variance_of(finer, leaves.reshape(finer.shape))
    variance = class_variance + _product_variance(cells, noise)
    return value, np.where(np.isfinite(value), variance, np.nan)


def _correction(positives: Floats, negatives: Floats, noise: TreeNoise) -> Floats:
    """The density correction; of exact counts, no more than all pairs inside cells could make."""
    correction = density_correction(positives, negatives)
    if not noise.exact:
        return correction
    inside = np.sum(positives * negatives, axis=-1) / 2
    reach = inside / (positives.sum(axis=-1) * negatives.sum(axis=-1))
    return np.clip(correction, -reach, reach)


def _ranked(cells: Floats, noise: TreeNoise, second: RankRound) -> tuple[Floats, Floats]:
    """The second round's AUC: both classes' mean ranks less the published area.

    ``a + b - area`` with a and b the mean fractions of the other class that positives beat and that
    beat negatives: the errors of the published distributions cancel to first order (docs, section
    4d). What remains is the noise of the sums, and the product of both distributions' errors.
    """
    sizes = np.stack([cells[..., 0, :].sum(axis=-1), cells[..., 1, :].sum(axis=-1)], axis=-1)
    known = np.where(sizes > 0, sizes, np.nan)
    means = second.sums / known / RANK_UNITS + second.ranks.pivot / RANK_UNITS
    noise_variance = np.sum(second.variance / (RANK_UNITS * known) ** 2, axis=-1)
    value = means.sum(axis=-1) - second.ranks.area
    return value, noise_variance + _product_variance(cells, noise)


def _products(noise: TreeNoise) -> Floats:
    """The variance of products of both classes' noises, for an area at every depth, shape (h+1,).

    The area is a sum over the tree's nodes of the right child's positives times the left child's
    negatives, and over the cells of half their pairs: a level of n nodes a class adds
    ``n/2 v**2``, the cells ``n/4 v**2``, with v the variance of a node's consistent count.
    """
    squares = node_variances(noise.weighting)[1:] ** 2 * 2.0 ** np.arange(noise.variances.size - 1)
    inner = np.cumsum(squares / 2) - squares[0] / 2
    return inner + squares / 4


def _product_variance(cells: Floats, noise: TreeNoise) -> Floats:
    """The variance of those products in the area of these cells."""
    pairs = np.prod(cells.sum(axis=-1), axis=-1)
    products = _products(noise)[cells.shape[-1].bit_length() - 1]
    return products / np.maximum(np.abs(pairs), 1.0) ** 2


def _class_variance(cells: Floats, noise: TreeNoise) -> Floats:
    """The variance of the number of positives."""
    size = cells.shape[-1]
    weights = np.broadcast_to(np.repeat([1.0, 0.0], size), (*cells.shape[:-2], 2 * size))
    return noise.variance_of(weights, cells.reshape(weights.shape))


def _supported(records: float, noise: TreeNoise) -> int:
    """How many equi-depth buckets hold ``MIN_BUCKET_IN_ERRORS`` standard deviations of their error.

    A bucket of n records, a subtree of each class, has the noise variance 2v of both and the
    sampling variance n: ``n = MIN_BUCKET_IN_ERRORS sqrt(2v + n)`` is the least that it may hold.
    """
    subtrees = subtree_variances(noise.weighting)[1:]
    least = (
        MIN_BUCKET_IN_ERRORS**2
        + np.sqrt(MIN_BUCKET_IN_ERRORS**4 + 8 * MIN_BUCKET_IN_ERRORS**2 * subtrees)
    ) / 2
    fitting = np.minimum(2.0 ** np.arange(subtrees.size), max(records, 0.0) / least)
    return max(int(fitting.max()), 1)


def _tree_warnings(
    cell_variance: float, variance: float, buckets: int, supported: int, protection: Cost | None
) -> tuple[str, ...]:
    warnings = []
    if variance > 0 and cell_variance > variance:
        warnings.append(COARSE_CELLS)
    if buckets > supported:
        warnings.append(
            f"{buckets} buckets are more than these counts support: with {supported} each holds "
            f"{MIN_BUCKET_IN_ERRORS:g} standard deviations of its own error"
        )
    if protection is not None:
        warnings.append(
            "clients vanished with their share of the noise: what arrived supports epsilon "
            f"{protection.epsilon:.4g}; a higher dropouts setting would have covered it"
        )
    return tuple(warnings)


def _distribution(counts: Floats) -> Floats:
    """A distribution function at the cells' borders, shape (..., B+1), from noisy counts.

    The mean of the smallest rising sequence above the cumulative counts and the largest below.
    """
    cumulative = np.cumsum(counts, axis=-1)
    total = np.where(cumulative[..., -1:] > 0, cumulative[..., -1:], 1.0)
    fractions = np.clip(cumulative / total, 0.0, 1.0)
    over = np.maximum.accumulate(fractions, axis=-1)
    under = np.flip(np.minimum.accumulate(np.flip(fractions, axis=-1), axis=-1), axis=-1)
    inner = (over + under)[..., :-1] / 2
    edge = np.zeros_like(fractions[..., :1])
    return np.concatenate([edge, inner, edge + 1], axis=-1)


def _middles(distribution: Floats) -> Floats:
    """The distribution function in the middle of every cell."""
    return (distribution[..., :-1] + distribution[..., 1:]) / 2
