"""AUCs of pairs of noisy trees, whose two classes may carry noise of different scales."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.curves import (
    cell_area,
    cell_influences,
    cell_sampling_variance,
    crowding_variance,
    curvature_error,
    density_correction,
    density_influences,
    lone_crowd_variance,
    noisy_sampling_variance,
    placement_variance,
)
from tacit.metrics.tree_noise import TreeNoise
from tacit.metrics.trees import node_variances
from tacit.protocols.shared.trees.forests import Forest

CELL_BIAS = 0.3
"""Assumed cell bias of an AUC, in units of ``4**-depth``: about the bias of the uncorrected area of
linear densities. The depth is chosen with it; no error is stated by it."""

CROWDING_DEPTH = 6
"""Largest depth of the cells in which crowding is measured: noise hardly shows in so few."""


@dataclass(frozen=True, eq=False)
class Areas:
    """An AUC for every pair of trees, with its errors; all arrays of shape (..., T).

    Parameters
    ----------
    value : the areas.
    by_products : the variance by products of both classes' noises.
    cell_variance : of what cells hide.
    sampling_variance : DeLong's, or what Hanley and McNeil's is where noise hides that.
    positive_weights, negative_weights : the derivative of an area by the count of each cell, shape
        (..., T, 2**height).
    one_draw : the part of ``by_products`` that is one draw of Laplace noise.
    """

    value: Floats
    by_products: Floats
    cell_variance: Floats
    sampling_variance: Floats
    positive_weights: Floats
    negative_weights: Floats
    one_draw: Floats | float = 0.0


def areas(positives: Forest, negatives: Forest, even: bool) -> Areas:
    """The AUC of every pair of trees, at the depth that suits the noise.

    Deeper cells have less bias and more noise. With v and w the variances of a node's consistent
    count in either tree, products of both noises add ``n/2 v w`` for a level of n nodes and
    ``n/4 v w`` for the cells (the area is a sum over nodes of the right child's positives times the
    left child's negatives, and over cells of half their pairs). The depth with the least sum of
    that and the squared assumed bias of cells is taken.

    Parameters
    ----------
    positives, negatives : as many trees of one height.
    even : whether scores are their own positions, so that crowds are judged beside the mean cell.
    """
    depth, products = area_depth(positives, negatives, even)
    coarse = [_at_depth(forest.leaves, depth) for forest in (positives, negatives)]
    value = cell_area(*coarse) + _correction(coarse, positives.noise)
    pairs = np.maximum(np.abs(coarse[0].sum(axis=-1) * coarse[1].sum(axis=-1)), 1.0)
    weights = [
        np.repeat(np.nan_to_num(plain + bent), positives.leaves.shape[-1] >> depth, axis=-1)
        for plain, bent in zip(cell_influences(*coarse), density_influences(*coarse), strict=True)
    ]
    crowds = crowding_variance if even else lone_crowd_variance
    sampling = cell_sampling_variance(*coarse)
    if not positives.noise.exact:
        sampling = noisy_sampling_variance(coarse[0], coarse[1], value)
    return Areas(
        value,
        products / pairs**2,
        placement_variance(*coarse) + crowds(*coarse) + curvature_error(*coarse) ** 2,
        sampling,
        weights[0],
        weights[1],
    )


def _correction(coarse: list[Floats], noise: TreeNoise) -> Floats:
    """The density correction; of exact counts, no more than all pairs inside cells could make."""
    correction = density_correction(coarse[0], coarse[1])
    if not noise.exact:
        return correction
    inside = np.sum(coarse[0] * coarse[1], axis=-1) / 2
    reach = inside / np.maximum(coarse[0].sum(axis=-1) * coarse[1].sum(axis=-1), 1.0)
    return np.clip(correction, -reach, reach)


def area_depth(
    positives: Forest, negatives: Forest, even: bool, bias: tuple[float, int] = (CELL_BIAS, 2)
) -> tuple[int, float]:
    """The depth of the areas, and the variance of the pairs won by products of noises there.

    Parameters
    ----------
    positives, negatives, even : as ``areas`` takes them.
    bias : what cells of the width w hide of an AUC is taken as the first, times w to the power of
        the second; w is in units of the scores' spread.
    """
    height = positives.noise.variances.size - 1
    if positives.noise.exact and negatives.noise.exact:
        return height, 0.0
    squares = node_variances(positives.noise.weighting) * node_variances(negatives.noise.weighting)
    by_level = squares * 2.0 ** np.arange(height + 1)
    products = np.cumsum(by_level / 2) - by_level[0] / 2 + by_level / 4
    pairs = float(np.mean(positives.leaves.sum(axis=-1) * negatives.leaves.sum(axis=-1)))
    crowded = 1.0 if even else _crowding(positives, negatives, height)
    hidden = (bias[0] * (crowded / 2.0 ** np.arange(height + 1)) ** bias[1]) ** 2
    depth = int(np.argmin(products / max(pairs, 1.0) ** 2 + hidden))
    return depth, float(products[depth])


def _crowding(positives: Forest, negatives: Forest, height: int) -> float:
    """How many times as crowded the records are as if they filled all cells evenly, at least 1.

    Both classes' share of pairs in one cell, ``sum p n / (P N)`` over ``2**CROWDING_DEPTH`` cells
    at most, times the number of cells; of several trees and replicates the mean counts.
    """
    depth = min(CROWDING_DEPTH, height)
    coarse = [_at_depth(forest.leaves, depth) for forest in (positives, negatives)]
    inside = float(np.mean(np.sum(coarse[0] * coarse[1], axis=-1)))
    pairs = max(float(np.mean(coarse[0].sum(axis=-1) * coarse[1].sum(axis=-1))), 1.0)
    return float(np.clip(inside / pairs, 2.0**-depth, 1.0)) * 2.0**depth


def _at_depth(leaves: Floats, depth: int) -> Floats:
    """The counts in ``2**depth`` cells."""
    return leaves.reshape(*leaves.shape[:-1], 1 << depth, -1).sum(axis=-1)


def area_variance(forest_areas: Areas, positives: Forest, negatives: Forest) -> Floats:
    """The variance of every area by privacy noise, shape (..., T)."""
    first = positives.noise.variance_of(forest_areas.positive_weights, positives.leaves)
    second = negatives.noise.variance_of(forest_areas.negative_weights, negatives.leaves)
    return first + second + forest_areas.by_products


def smallest_in_errors(forests: tuple[Forest, ...]) -> tuple[Floats, Floats]:
    """The totals of the trees of both classes and their errors, the smaller class by its errors.

    Returns
    -------
    size and standard error, shape (..., T).
    """
    sizes = [forest.totals() for forest in forests]
    totals = np.stack([total for total, _ in sizes])
    errors = np.sqrt(np.stack([variance for _, variance in sizes]))
    ratio = totals / np.maximum(errors, math.ulp(1.0))
    least = np.argmin(ratio, axis=0)[np.newaxis]
    pick = (np.take_along_axis(each, least, axis=0)[0] for each in (totals, errors))
    size, error = pick
    return size, error
