"""Predictions for the expected calibration error, which is no smooth function of the counts."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.calibrating.calibration import debiased_ece
from tacit.metrics.cells.binning import Buckets
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import consistent_leaves
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.results.curves.histogram import Histogram

IMITATIONS = 200
"""Number of simulated histograms whose calibration errors are compared with the shape's."""

FINE_CELLS = 2**12
"""Number of cells in which the shape's own calibration error is computed."""


def ece_of(shape: Shape, scenario: Scenario) -> float:
    """The population's expected calibration error: the mean distance of score and probability.

    Examples
    --------
    >>> scenario = Scenario(1000, 100, 10, 1.0)
    >>> round(ece_of(Shape(0.8, "calibrated"), scenario), 5)
    0.0
    """
    positives, negatives = scenario.counts(shape, FINE_CELLS)
    middles = (np.arange(FINE_CELLS) + 0.5) / FINE_CELLS
    return float(np.sum(np.abs(positives * (1 - middles) - negatives * middles))) / scenario.records


def ece_error(histogram: Histogram, noise: TreeNoise, exact: float) -> tuple[float, float]:
    """The standard error and the bias of ``Histogram.debiased_ece`` about an exact value.

    From imitations, always of one seed: the tree is made consistent from normal noise of the
    levels' variances, and each bucket's counts vary by sampling as Poisson counts do. The buckets
    stay where the expected counts put them.

    Parameters
    ----------
    histogram : of expected counts.
    noise : the errors of the tree.
    exact : the population's calibration error.
    """
    cells, starts = histogram.cells, histogram.starts
    rng = np.random.default_rng(0)
    counts = np.maximum(np.stack([cells.positives, cells.negatives]), 0.0)
    drawn = rng.standard_normal((IMITATIONS, *counts.shape)) * np.sqrt(counts)
    leaves = imitated_leaves(noise, rng).reshape(IMITATIONS, 2, -1)
    imitated = counts + drawn + np.add.reduceat(leaves, starts, axis=-1)
    errors = [_debiased(cells.predicted, cells.variance, imitation) for imitation in imitated]
    return float(np.std(errors)), float(np.mean(errors)) - exact


def imitated_leaves(noise: TreeNoise, rng: np.random.Generator) -> Floats:
    """The consistent leaves of trees of noise alone, shape (IMITATIONS, leaves)."""
    variances = noise.weighting
    levels = [
        rng.standard_normal((IMITATIONS, 1 << level)) * np.sqrt(variance)
        if np.isfinite(variance)
        else None
        for level, variance in enumerate(variances)
    ]
    return consistent_leaves(levels, variances)


def _debiased(predicted: Floats, privacy: Floats, counts: Floats) -> float:
    """The debiased error of imitated buckets, as a histogram takes it."""
    positives, negatives = np.maximum(counts, 0.0)
    variance = privacy + positives * negatives / np.maximum(positives + negatives, 1.0)
    buckets = Buckets(predicted, counts[0], counts.sum(axis=0), variance, 2 * variance)
    return float(debiased_ece(buckets).value)
