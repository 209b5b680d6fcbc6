"""The server's result about private groups, from their trees."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats
from tacit.metrics.tree_noise import TreeNoise
from tacit.protocols.shared.site_figures import ClientCells, sites_of
from tacit.protocols.shared.trees.forest_areas import (
    Areas,
    area_variance,
    areas,
    smallest_in_errors,
)
from tacit.protocols.shared.trees.forests import Forest
from tacit.results.class_sizes import class_too_small, is_class_too_small
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.estimate import Estimate
from tacit.results.parts.breakdown import Breakdown, Difference, Part, difference
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

UNIT = (0.0, 1.0)

TRUE_POSITIVES, FALSE_POSITIVES = "true positive rate", "false positive rate"
PRECISION = "positive predictive value"

CALLED = {
    "AUC": "AUC gap",
    TRUE_POSITIVES: "equal opportunity",
    FALSE_POSITIVES: "false positive gap",
    PRECISION: "predictive parity",
}
"""What a difference of each figure is called."""


@dataclass(frozen=True)
class Cut:
    """A border of cells that divides predicted negatives from positives.

    Parameters
    ----------
    first : the first cell of predicted positives.
    score : the border.
    """

    first: int
    score: float


def result_from_groups(
    groups: tuple[str, ...], records: Forest, cut: Cut, even: bool
) -> ServerResult:
    """The AUC of all records with its errors, and, of a single run, the figures of every group.

    Parameters
    ----------
    groups : their names.
    records : the trees of all groups' positives, then of their negatives.
    cut : where records begin to be predicted positive.
    even : whether scores are their own positions.
    """
    positives, negatives = _by_class(records, len(groups))
    result = _of_all(positives, negatives, even)
    if records.leaves.ndim > 2:
        return result
    return replace(result, breakdown=_breakdown(groups, positives, negatives, cut, even))


def sites_from_groups(count: int, records: Forest, axis: ScoreAxis, even: bool) -> Sites:
    """The figures of every client's records of all groups, from trees of shape (K, 2 count, B)."""
    positives, negatives = _by_class(records, count)
    pooled = _pooled(positives), _pooled(negatives)

    def variance(weights: Floats) -> float:
        return float(pooled[0].noise.variance_of(weights, weights))

    cells = ClientCells(pooled[0].leaves[:, 0], pooled[1].leaves[:, 0], variance)
    return sites_of(_of_all(positives, negatives, even), cells, axis)


def _by_class(records: Forest, count: int) -> tuple[Forest, Forest]:
    """The groups' trees of positives, and those of negatives."""
    return (
        Forest(records.leaves[..., :count, :], records.noise),
        Forest(records.leaves[..., count:, :], records.noise),
    )


def _of_all(positives: Forest, negatives: Forest, even: bool) -> ServerResult:
    """The AUC of all groups' records with its errors, shape (...)."""
    pooled = _pooled(positives), _pooled(negatives)
    pooled_areas = areas(pooled[0], pooled[1], even)
    class_sizes = [forest.totals() for forest in pooled]
    return ServerResult(
        value=pooled_areas.value[..., 0],
        privacy_error=np.sqrt(area_variance(pooled_areas, *pooled)[..., 0]),
        sampling_error=np.sqrt(pooled_areas.sampling_variance[..., 0]),
        positives=class_sizes[0][0][..., 0],
        negatives=class_sizes[1][0][..., 0],
        positives_error=np.sqrt(class_sizes[0][1][..., 0]),
        approximation_error=np.sqrt(pooled_areas.cell_variance[..., 0]),
    )


def _pooled(forest: Forest) -> Forest:
    """One tree of all groups' records, whose noise is the sum of theirs."""
    noise = TreeNoise(forest.noise.variances * forest.leaves.shape[-2])
    return Forest(forest.leaves.sum(axis=-2, keepdims=True), noise)


def _breakdown(
    groups: tuple[str, ...], positives: Forest, negatives: Forest, cut: Cut, even: bool
) -> Breakdown:
    group_areas = areas(positives, negatives, even)
    variance = area_variance(group_areas, positives, negatives)
    sizes, errors = smallest_in_errors((positives, negatives))
    parts = []
    for number, name in enumerate(groups):
        leaves = [forest.leaves[number] for forest in (positives, negatives)]
        size, error = float(sizes[number]), float(errors[number])
        totals = float(leaves[0].sum()), float(leaves[1].sum())
        if size <= 0 or is_class_too_small(size, error):
            parts.append(Part(name, *totals, {}, class_too_small(size, error)))
            continue
        figures = {"AUC": _auc(group_areas, variance, number), **_rates(leaves, positives, cut)}
        parts.append(Part(name, *totals, figures))
    thresholds = dict.fromkeys((TRUE_POSITIVES, FALSE_POSITIVES, PRECISION), cut.score)
    return Breakdown("group", tuple(parts), {}, _differences(parts), thresholds)


def _auc(group_areas: Areas, variance: Floats, number: int) -> Estimate:
    return Estimate(
        float(group_areas.value[number]),
        math.sqrt(variance[number]),
        math.sqrt(group_areas.sampling_variance[number]),
        math.sqrt(group_areas.cell_variance[number]),
    ).within(UNIT)


def _rates(leaves: list[Floats], forest: Forest, cut: Cut) -> dict[str, Estimate]:
    """The rates of a group at the cut.

    A rate ``a / (a + b)`` of two disjoint sums of cells has the derivative ``(1 - r) / (a + b)`` by
    a count of the first and ``-r / (a + b)`` by one of the second.
    """
    reached = (np.arange(leaves[0].size) >= cut.first).astype(np.float64)
    both, weights = np.concatenate(leaves), np.concatenate([reached, 0 * reached])
    of_positives = np.concatenate([np.ones_like(reached), 0 * reached])
    made = {
        TRUE_POSITIVES: (weights, of_positives - weights),
        FALSE_POSITIVES: (
            np.roll(weights, reached.size),
            np.roll(of_positives - weights, reached.size),
        ),
        PRECISION: (weights, np.roll(weights, reached.size)),
    }
    return {name: _rate(both, forest, *each) for name, each in made.items()}


def _rate(both: Floats, forest: Forest, first: Floats, second: Floats) -> Estimate:
    """``a / (a + b)`` for sums of a group's cells with these weights, shape (2B,) each."""
    a, b = float(first @ both), float(second @ both)
    total = a + b
    halves = both.reshape(2, -1)
    size = (first + second).reshape(2, -1)
    error = math.sqrt(float(forest.noise.variance_of(size, halves).sum()))
    if total <= 0 or is_class_too_small(total, error):
        return Estimate(math.nan, math.nan, math.nan)
    rate = a / total
    weights = ((1 - rate) * first - rate * second).reshape(2, -1) / total
    variance = float(forest.noise.variance_of(weights, halves).sum())
    inside = min(max(rate, 0.0), 1.0)
    return Estimate(rate, math.sqrt(variance), math.sqrt(inside * (1 - inside) / total)).within(
        UNIT
    )


def _differences(parts: list[Part]) -> tuple[Difference, ...]:
    """Every group's figures less those of the first group that has some."""
    known = [part for part in parts if part.figures]
    made = []
    for other in known[1:]:
        for figure, called in CALLED.items():
            between = difference(other.figures[figure], known[0].figures[figure])
            made.append(Difference(figure, other.name, known[0].name, between, called))
    return tuple(made)
