"""The server's result from a consistent tree of both classes' scores: the AUC with its errors, the
histogram, and warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.counts.cell_areas import COARSE_CELLS, signal_warnings
from tacit.counts.noisy_areas import Areas, areas, noise_products, sampling_variance
from tacit.data.errors import check_classes
from tacit.metrics import trees
from tacit.metrics.cells.score_scale import EvenScale
from tacit.privacy.cost import Cost
from tacit.results.curves.histogram import Histogram
from tacit.results.curves.score_axis import EVEN_AXIS, ScoreAxis
from tacit.results.server_result import ServerResult

MIN_BUCKET_IN_ERRORS = 5.0
"""Least count of a supported bucket, in standard deviations of its noise."""

MAX_BUCKETS = 200
"""Largest number of buckets of curves and calibration by default."""


@dataclass(frozen=True, eq=False)
class KnownArea:
    """An AUC with its variances, for one replicate or several, shape (...).

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
    if noise.exact:
        # forecasts have parts of records
        check_classes(*(int(np.ceil(np.min(each))) for each in classes))
    counted = class_variance(cells, noise)
    if known is None:
        made = area_from_tree(cells, noise, axis)
        known, sampling = known_by_cells(made, cells, noise), made.sampling_variance
    else:
        sampling = sampling_variance(cells, known.value, noise.exact)
    value, variance, cell_variance = known.value, known.variance, known.by_cells
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
        laplace_error=np.sqrt(known.by_draw),
        roc=histogram.roc() if histogram is not None else None,
        histogram=histogram,
        protection=protection,
        warnings=warnings,
    )


def area_from_tree(cells: Floats, noise: trees.TreeNoise, axis: ScoreAxis) -> Areas:
    """The AUC of a consistent tree of both classes (``areas``), for cells of shape (..., 2, B)."""
    by_level = trees.node_variances(noise.weighting)[1:]
    return areas(cells, (by_level, by_level), isinstance(axis.scale, EvenScale))


def known_by_cells(made: Areas, cells: Floats, noise: trees.TreeNoise) -> KnownArea:
    """An area with all its noise: in first order, and by products."""
    flat = (*cells.shape[:-2], -1)
    variance = (
        noise.variance_of(made.weights.reshape(flat), cells.reshape(flat)) + made.other_variance
    )
    known = np.where(np.isfinite(made.value), variance, np.nan)
    return KnownArea(made.value, known, np.zeros_like(known), made.cell_variance)


def tree_products(noise: trees.TreeNoise) -> Floats:
    """The variance of products of both classes' noises, at every depth (``noise_products``)."""
    classes = trees.node_variances(noise.weighting)[1:]
    return noise_products(classes, classes)


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
