"""Both classes' curves from private quantiles, as in FedCurve (arXiv 2510.04979): a reference.

Written from the paper. Each class has one binary tree over equal cells of [0, 1], of height
``ceil(log2 Q) + 2``; epsilon is divided evenly over its levels, and every count has discrete
Laplace noise, the sum of all clients' shares. Weighted averaging up and mean consistency down (Hay
et al. 2010) give the cells, ``Q - 1`` evenly spaced quantiles of each class are read off, and a
monotone cubic goes through them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import PchipInterpolator

from tacit.metrics.cells.score_distribution import rising_fractions
from tacit.metrics.trees import consistent_leaves
from tacit.privacy.distributions import discrete_laplace_variance
from tacit_studies.references.smooth_curves import SmoothCurves
from tacit_studies.sources import Floats, Labels

QUANTILES = (16, 32, 64, 128, 256, 512)
"""Numbers of quantiles; the best is chosen after the fact, which no user could."""


def fedcurve(
    scores: Floats,
    labels: Labels,
    epsilon: float,
    quantiles: int,
    thresholds: Floats,
    rng: np.random.Generator,
) -> SmoothCurves:
    """The curves of one run, computed at these ascending thresholds from 0 to 1.

    Parameters
    ----------
    scores, labels : the records of all clients, scores from 0 to 1.
    epsilon : the budget of a record, which is in one tree only.
    quantiles : Q.
    thresholds : where the curves are computed.
    rng : draws the noise.
    """
    height = math.ceil(math.log2(quantiles)) + 2
    below, sizes = [], []
    for label in (1, 0):
        leaves = _noisy_leaves(scores[labels == label], height, epsilon, rng)
        below.append(_distribution(leaves, quantiles)(thresholds))
        sizes.append(max(float(leaves.sum()), 0.0))
    above = [1 - np.clip(each, 0.0, 1.0) for each in below]
    return SmoothCurves(thresholds, above[1], above[0], sizes[0], sizes[1])


def _noisy_leaves(scores: Floats, height: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """A class's consistent counts in ``2**height`` cells."""
    cells = 1 << height
    counts = np.bincount(np.minimum((scores * cells).astype(np.int64), cells - 1), minlength=cells)
    scale = (height + 1) / epsilon
    levels: list[Floats | None] = []
    for level in range(height + 1):
        nodes = counts.reshape(1 << level, -1).sum(axis=-1)
        levels.append(nodes + _discrete_laplace(scale, nodes.size, rng))
    return consistent_leaves(levels, np.full(height + 1, float(discrete_laplace_variance(scale))))


def _discrete_laplace(scale: float, size: int, rng: np.random.Generator) -> Floats:
    """The sum of all clients' shares: the difference of two geometric draws."""
    stop = -math.expm1(-1 / scale)
    return (rng.geometric(stop, size) - rng.geometric(stop, size)).astype(np.float64)


def _distribution(leaves: Floats, quantiles: int) -> PchipInterpolator:
    """The monotone cubic through the quantiles; those that coincide count once."""
    rising = rising_fractions(leaves)
    fractions = np.arange(quantiles + 1) / quantiles
    borders = np.linspace(0.0, 1.0, leaves.size + 1)
    climbs = np.append(True, np.diff(rising) > 0)
    places = np.interp(fractions, rising[climbs], borders[climbs])
    places[0], places[-1] = 0.0, 1.0
    apart = np.append(np.diff(places) > LEAST_DISTANCE, True)
    apart[0] = True
    return PchipInterpolator(places[apart], fractions[apart])


LEAST_DISTANCE = 1e-12
"""Least distance of two quantiles that are kept apart."""
