"""The warning of a run with looks about its division of epsilon between the AUC and the rest."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.tree_noise import TreeNoise
from tacit.protocols.histogram.estimate import influence_variance
from tacit.protocols.histogram.looking.looks import PARTS
from tacit.protocols.histogram.steps import tree_fields
from tacit.protocols.histogram.trees import tree_noise

MIN_RATE_ERROR = 1e-3
"""Standard error of a rate from which the division of epsilon is reported."""

MIN_ERROR_RATIO = 1.5
"""Least ratio of that error to the one with aim ``"all"`` at which the division is reported."""

OFF_EDGE = 1 / 3
"""Where the scale is cut for the error of a rate: no edge of a tree's upper levels is there."""


def division_warning(
    protocol: Any, counts: Floats, noise: TreeNoise, looks: int, auc_error: float
) -> tuple[str, ...]:
    """The errors of rates and of the AUC beside those of aim ``"all"``; nothing where alike.

    Parameters
    ----------
    counts : the consistent counts of positives and negatives, shape (2, B).
    noise : the errors of these counts.
    looks : the parts of epsilon of all looks.
    auc_error : the standard error of the AUC.
    """
    even = replace(protocol, aim="all", height=None)
    height = even.tree_height(0)
    tree = tree_noise(tree_fields(even, height), height)
    error, even_error = (rate_error(counts, each) for each in (noise, tree))
    if error < max(MIN_RATE_ERROR, MIN_ERROR_RATIO * even_error):
        return ()
    leaves = _finer(counts, tree)
    area = math.sqrt(float(influence_variance(leaves, leaves, tree)))
    return (
        f"rates, curves and calibration get {looks / PARTS:.3g} of epsilon, because the aim is the "
        f"AUC: a rate errs by {error:.2g} or less; with aim {even.aim!r} a rate would err by "
        f"{even_error:.2g}, and the AUC by {area:.2g} instead of {auc_error:.2g}",
    )


def rate_error(counts: Floats, noise: TreeNoise) -> float:
    """About the largest standard error of the smaller class's part above a threshold.

    A part of one half errs most. Its variance is that of ``(above - 1/2) / size`` summed over the
    cells' noise.
    """
    leaves = _finer(counts, noise)
    sizes = np.maximum(leaves.sum(axis=-1), 1.0)
    smaller, cells = int(np.argmin(sizes)), leaves.shape[-1]
    weights = np.zeros(leaves.shape)
    weights[smaller] = np.where(np.arange(cells) < OFF_EDGE * cells, -0.5, 0.5) / sizes[smaller]
    return math.sqrt(float(noise.variance_of(weights.ravel(), leaves.ravel())))


def _finer(counts: Floats, noise: TreeNoise) -> Floats:
    """The counts spread evenly over the cells of a tree that has as many or more."""
    times = (1 << noise.variances.size - 2) // counts.shape[-1]
    return np.repeat(counts, times, axis=-1) / times
