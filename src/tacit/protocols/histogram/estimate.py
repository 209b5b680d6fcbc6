"""The server's result from a consistent tree of both classes' scores: the AUC with its errors, the
histogram, and warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.data.errors import DataError
from tacit.metrics import curves, trees
from tacit.metrics.cells.score_scale import EvenScale
from tacit.privacy.cost import Cost
from tacit.protocols.shared.cells import COARSE_CELLS, signal_warnings
from tacit.protocols.shared.trees.tree_budget import CELL_BIAS
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import EVEN_AXIS, ScoreAxis
from tacit.results.server_result import ServerResult

MIN_BUCKET_IN_ERRORS = 5.0
"""Least count of a supported bucket, in standard deviations of its noise."""

CROWDING_DEPTH = 6
"""Largest depth of the cells in which crowding is measured: noise hardly shows in so few."""

MAX_BUCKETS = 200
"""Largest number of buckets of curves and calibration by default."""


@dataclass(frozen=True, eq=False)
class KnownArea:
    """An AUC that looks and one number give, for one replicate or several, shape (...).

    Parameters
    ----------
    value : the AUC; NaN where a class does not show.
    variance : by all noise.
    by_draw : the part of it that is one draw of Laplace noise.
    by_cells : the variance by what cells hide.
    """

    value: Floats
    variance: Floats
    by_draw: Floats
    by_cells: Floats

    def of(self, row: int) -> KnownArea:
        """That of one replicate."""
        return KnownArea(self.value[row], self.variance[row], self.by_draw[row], self.by_cells[row])


def result_from_tree(
    leaves: Floats,
    noise: trees.TreeNoise,
    buckets: int | None,
    protection: Cost | None = None,
    known: KnownArea | None = None,
    axis: ScoreAxis = EVEN_AXIS,
) -> ServerResult:
    """The AUC of the leaves with its errors, or of the second round; and the histogram.

    Parameters
    ----------
    leaves : positives, then negatives, shape (..., 2B).
    noise : the errors of the tree that they come from.
    buckets : how many buckets curves and calibration have; None takes what the counts support.
    protection : what the noise supports, where clients vanished.
    known : the AUC where it does not follow from the leaves alone.
    axis : the scores of the cells.
    """
    cells = leaves.reshape(*leaves.shape[:-1], 2, -1)
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    classes = positives.sum(axis=-1), negatives.sum(axis=-1)
    if noise.exact and min(np.min(classes[0]), np.min(classes[1])) <= 0:
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {int(classes[0])} positive and {int(classes[1])} negative records"
        )
    counted = class_variance(cells, noise)
    if known is None:
        coarse = _at_depth(cells, best_depth(cells, noise, crowding(cells, axis)))
        value, variance = _area(coarse, cells, noise)
        cell_variance = _cell_variance(coarse[..., 0, :], coarse[..., 1, :], axis)
    else:
        value, variance, cell_variance = known.value, known.variance, known.by_cells
    sampling = curves.cell_sampling_variance(positives, negatives)
    if not noise.exact:
        sampling = curves.noisy_sampling_variance(positives, negatives, value)
    single = np.ndim(value) == 0
    supported = _supported(float(classes[0] + classes[1]), noise) if single else 0
    bucket_count = min(supported, MAX_BUCKETS) if buckets is None else buckets
    shown = single and bool(np.isfinite(value))
    histogram = Histogram(cells, noise, supported, bucket_count, axis) if shown else None
    warnings: tuple[str, ...] = ()
    if single:
        warnings = signal_warnings(value, classes, math.sqrt(float(counted)))
        warnings += _tree_warnings(
            float(cell_variance), float(variance), bucket_count, supported, protection
        )
    return ServerResult(
        value=value,
        privacy_error=np.sqrt(variance),
        sampling_error=np.sqrt(sampling),
        positives=classes[0],
        negatives=classes[1],
        positives_error=np.sqrt(counted),
        approximation_error=np.sqrt(cell_variance),
        laplace_error=0.0 if known is None else np.sqrt(known.by_draw),
        roc=histogram.roc() if histogram is not None else None,
        histogram=histogram,
        protection=protection,
        warnings=warnings,
    )


def crowding(cells: Floats, axis: ScoreAxis) -> float:
    """How many times as crowded the records are as if they filled all cells evenly, at least 1.

    Both classes' share of pairs in one cell, ``sum p n / (P N)`` over ``2**CROWDING_DEPTH`` cells
    at most, times the number of cells. Where scores are their own positions it is taken to be 1,
    as in the papers. Of several replicates the mean counts.
    """
    if isinstance(axis.scale, EvenScale):
        return 1.0
    depth = min(CROWDING_DEPTH, cells.shape[-1].bit_length() - 1)
    coarse = _at_depth(cells, depth)
    inside = float(np.mean(np.sum(np.prod(coarse, axis=-2), axis=-1)))
    pairs = max(float(np.mean(np.prod(cells.sum(axis=-1), axis=-1))), 1.0)
    return float(np.clip(inside / pairs, 2.0**-depth, 1.0)) * 2.0**depth


def best_depth(cells: Floats, noise: trees.TreeNoise, crowded: float = 1.0) -> int:
    """The depth at which the area is computed: deeper cells have less bias and more noise.

    The least sum of ``_products`` and of the squared bias of cells; the first-order variance grows
    so slowly with the depth that it is left out. Of several replicates the mean size counts.

    Parameters
    ----------
    cells, noise : the counts and their errors.
    crowded : how many times as crowded the records are as if they filled all cells evenly; cells
        as fine as those of ``CELL_BIAS`` are then as many times more.
    """
    products = _products(noise)
    if not products.any():
        return products.size - 1
    pairs = np.mean(np.prod(cells.sum(axis=-1), axis=-1))
    cell_variance = (CELL_BIAS * crowded**2 / 4.0 ** np.arange(products.size)) ** 2
    return int(np.argmin(products / max(float(pairs), 1.0) ** 2 + cell_variance))


def _at_depth(cells: Floats, depth: int) -> Floats:
    """The counts in ``2**depth`` cells."""
    return cells.reshape(*cells.shape[:-1], 1 << depth, -1).sum(axis=-1)


def _cell_variance(positives: Floats, negatives: Floats, axis: ScoreAxis) -> Floats:
    """The error of cells: records' positions, crowding, and the curvature of densities."""
    crowds = (
        curves.crowding_variance
        if isinstance(axis.scale, EvenScale)
        else curves.lone_crowd_variance
    )
    variance = curves.placement_variance(positives, negatives) + crowds(positives, negatives)
    return variance + curves.curvature_error(positives, negatives) ** 2


def _area(cells: Floats, leaves: Floats, noise: trees.TreeNoise) -> tuple[Floats, Floats]:
    """The area of the cells with its variance: that of the influences' sum, and of products."""
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    value = curves.cell_area(positives, negatives) + within_cells(positives, negatives, noise)
    variance = influence_variance(cells, leaves, noise) + _product_variance(cells, noise)
    return value, np.where(np.isfinite(value), variance, np.nan)


def influence_weights(cells: Floats) -> Floats:
    """How the area moves with every count, shape (..., 2B) for cells of shape (..., 2, B)."""
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    plain, bent = (
        curves.cell_influences(positives, negatives),
        curves.density_influences(positives, negatives),
    )
    return np.nan_to_num(np.concatenate([plain[0] + bent[0], plain[1] + bent[1]], axis=-1))


def influence_variance(cells: Floats, leaves: Floats, noise: trees.TreeNoise) -> Floats:
    """The variance of the area of these cells in first order."""
    weights = influence_weights(cells)
    finer = np.repeat(weights, leaves.shape[-1] // cells.shape[-1], axis=-1)
    return noise.variance_of(finer, leaves.reshape(finer.shape))


def within_cells(positives: Floats, negatives: Floats, noise: trees.TreeNoise) -> Floats:
    """The density correction; of exact counts, no more than all pairs inside cells could make."""
    correction = curves.density_correction(positives, negatives)
    if not noise.exact:
        return correction
    inside = np.sum(positives * negatives, axis=-1) / 2
    reach = inside / (positives.sum(axis=-1) * negatives.sum(axis=-1))
    return np.clip(correction, -reach, reach)


def _products(noise: trees.TreeNoise) -> Floats:
    """The variance of products of both classes' noises, for an area at every depth, shape (h+1,).

    The area is a sum over the tree's nodes of the right child's positives times the left child's
    negatives, and over the cells of half their pairs: a level of n nodes a class adds
    ``n/2 v**2``, the cells ``n/4 v**2``, with v the variance of a node's consistent count.
    """
    squares = trees.node_variances(noise.weighting)[1:] ** 2 * 2.0 ** np.arange(
        noise.variances.size - 1
    )
    inner = np.cumsum(squares / 2) - squares[0] / 2
    return inner + squares / 4


def _product_variance(cells: Floats, noise: trees.TreeNoise) -> Floats:
    """The variance of those products in the area of these cells."""
    pairs = np.prod(cells.sum(axis=-1), axis=-1)
    products = _products(noise)[cells.shape[-1].bit_length() - 1]
    return products / np.maximum(np.abs(pairs), 1.0) ** 2


def class_variance(cells: Floats, noise: trees.TreeNoise) -> Floats:
    """The variance of the number of positives."""
    size = cells.shape[-1]
    weights = np.broadcast_to(np.repeat([1.0, 0.0], size), (*cells.shape[:-2], 2 * size))
    return noise.variance_of(weights, cells.reshape(weights.shape))


def _supported(records: float, noise: trees.TreeNoise) -> int:
    """How many equi-depth buckets hold ``MIN_BUCKET_IN_ERRORS`` standard deviations of their error.

    A bucket of n records, a subtree of each class, has the noise variance 2v of both and the
    sampling variance n: ``n = MIN_BUCKET_IN_ERRORS sqrt(2v + n)`` is the least that it may hold.
    """
    subtrees = trees.subtree_variances(noise.weighting)[1:]
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
    return (*warnings, *dropout_warnings(protection))


def dropout_warnings(protection: Cost | None) -> tuple[str, ...]:
    """The warning where clients dropped out with more of the noise than was planned."""
    if protection is None:
        return ()
    return (
        "clients vanished with their share of the noise: what arrived supports epsilon "
        f"{protection.epsilon:.4g}; a higher dropouts setting would have covered it",
    )
