"""Several classes: the trees of every class against the rest, their AUCs, and the result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.counts import noisy_areas
from tacit.data import units
from tacit.metrics import calibration
from tacit.metrics.cells.binning import Buckets, bucket_means
from tacit.metrics.trees import TreeNoise, node_variances
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.estimate import Estimate
from tacit.results.figure import class_too_small, is_class_too_small
from tacit.results.parts import Breakdown, Part
from tacit.results.server_result import ServerResult


@dataclass(frozen=True, eq=False)
class Forest:
    """A block's consistent trees, with the errors of their counts.

    Parameters
    ----------
    leaves : the cells' counts, shape (..., trees, 2**height).
    noise : the errors of one tree; all trees have the same, and independent noise.
    """

    leaves: Floats
    noise: TreeNoise

    def totals(self) -> tuple[Floats, Floats]:
        """The records of every tree and the variance of that number, shape (..., trees) each."""
        ones = np.ones_like(self.leaves)
        return self.leaves.sum(axis=-1), self.noise.variance_of(ones, self.leaves)


Forests = Mapping[str, Forest]
"""The forests of all blocks, by name."""


def both_classes(positives: Forest, negatives: Forest) -> Floats:
    """The cells of pairs of trees, shape (..., T, 2, B)."""
    return np.stack([positives.leaves, negatives.leaves], axis=-2)


def variances_of(positives: Forest, negatives: Forest) -> noisy_areas.NodeVariances:
    """The variances of a node's count in a tree of either class."""
    return (node_variances(positives.noise.weighting), node_variances(negatives.noise.weighting))


def forest_areas(positives: Forest, negatives: Forest, even: bool) -> noisy_areas.Areas:
    """The AUC of every pair of trees of one height, shape (..., T) (``areas``)."""
    return noisy_areas.areas(
        both_classes(positives, negatives), variances_of(positives, negatives), even
    )


@dataclass(frozen=True, eq=False)
class ClassForests:
    """The trees of all classes, and the AUCs that follow from them or from both rounds.

    Parameters
    ----------
    positives, negatives : the trees of every class's records (block ``own``), and of all others'
        (block ``other``).
    hits : wrong and right top-1 predictions by class, two trees of one cell each.
    even : whether scores are their own positions.
    areas : the AUCs, shape (..., C).
    """

    positives: Forest
    negatives: Forest
    hits: Forest
    even: bool
    areas: noisy_areas.Areas

    def sizes(self) -> tuple[Floats, Floats]:
        """The records of every class and of all others, and the variances, shape (..., C, 2) each.

        A class is counted twice, in its own tree and among the hits: the mean by inverse variances.
        The others are the sum of the other classes.
        """
        first, first_variance = self.positives.totals()
        second, variance = self.hits.totals()
        second = second.reshape(*second.shape[:-1], -1, 2).sum(axis=-1)
        second_variance = variance.reshape(*variance.shape[:-1], -1, 2).sum(axis=-1)
        weight = second_variance / np.maximum(first_variance + second_variance, math.ulp(1.0))
        size = weight * first + (1 - weight) * second
        error = first_variance * weight
        return tuple(
            np.stack([each, each.sum(axis=-1, keepdims=True) - each], axis=-1)
            for each in (size, error)
        )


def area_variance(made: noisy_areas.Areas, positives: Forest, negatives: Forest) -> Floats:
    """The variance of every area by privacy noise, shape (..., T)."""
    first = positives.noise.variance_of(made.weights[..., 0, :], positives.leaves)
    second = negatives.noise.variance_of(made.weights[..., 1, :], negatives.leaves)
    return first + second + made.other_variance


def area_estimates(made: noisy_areas.Areas, positives: Forest, negatives: Forest) -> list[Estimate]:
    """The AUC of every pair of trees of a single run, with its errors."""
    variance = area_variance(made, positives, negatives)
    draws = np.broadcast_to(made.one_draw, made.value.shape)
    by_error = [variance, made.sampling_variance, made.cell_variance, draws]
    errors = np.sqrt(np.stack(by_error, axis=-1)).tolist()
    return [
        Estimate(value, privacy, sampling, cells, laplace_error=draw).within((0.0, 1.0))
        for value, (privacy, sampling, cells, draw) in zip(made.value.tolist(), errors, strict=True)
    ]


CALIBRATION_DEPTH = 4
"""Depth of the cells in which calibration is measured."""

UNIT = (0.0, 1.0)

SAMPLING_NOTE = (
    "the sampling error of an average over classes is an upper bound: histograms by class do not "
    "tell how the classes' errors depend on each other"
)


def result_from_forests(
    classes: tuple[str, ...], made: ClassForests, axis: ScoreAxis
) -> ServerResult:
    """The macro AUC with its errors, and, of a single run, all figures by class.

    The classes' noises are independent, so the variance of their mean is the mean of their
    variances over C. What cells hide, and chance, are bounded: the error of a mean is at most the
    mean of the errors.

    Parameters
    ----------
    classes : their names.
    made : the forests, with the AUCs of one round or of both.
    axis : the scores of the cells.
    """
    count = len(classes)
    variance = area_variance(made.areas, made.positives, made.negatives)
    single = made.areas.value.ndim == 1
    breakdown, withheld = None, ""
    if single:
        aucs = area_estimates(made.areas, made.positives, made.negatives)
        parts = tuple(
            _part(made, number, name, auc, axis)
            for number, (name, auc) in enumerate(zip(classes, aucs, strict=True))
        )
        missing = (f"{part.name} has no AUC, {part.reason}" for part in parts if part.reason)
        withheld = next((f"no figure: class {each}" for each in missing), "")
        breakdown = Breakdown("class", parts, {} if withheld else _overall(made))
    return ServerResult(
        value=made.areas.value.mean(axis=-1),
        privacy_error=np.sqrt(variance.sum(axis=-1)) / count,
        sampling_error=np.sqrt(made.areas.sampling_variance).mean(axis=-1),
        approximation_error=np.sqrt(made.areas.cell_variance).mean(axis=-1),
        warnings=(SAMPLING_NOTE,) if single else (),
        breakdown=breakdown,
        withheld=withheld,
    )


def _smallest(made: ClassForests, number: int) -> tuple[float, float]:
    """The size of a class or of all others, whichever is less in its errors, and its error."""
    sizes, variances = made.sizes()
    errors = np.sqrt(variances[number])
    least = int(np.argmin(sizes[number] / np.maximum(errors, math.ulp(1.0))))
    return float(sizes[number, least]), float(errors[least])


def _part(made: ClassForests, number: int, name: str, auc: Estimate, axis: ScoreAxis) -> Part:
    """One class's figures against the rest; none where a side is too small."""
    positives = float(made.positives.leaves[number].sum())
    negatives = float(made.negatives.leaves[number].sum())
    size, error = _smallest(made, number)
    least = min(positives, negatives)
    if least <= 0:  # figures divide by these; a client that lies makes them differ from the size
        size = min(size, least)
    if size <= 0 or is_class_too_small(size, error):
        return Part(name, positives, negatives, {}, class_too_small(size, error))
    figures = {"AUC": auc, "top-1 recall": _recall(made, number)}
    if axis.unit == units.PROBABILITY:
        figures |= _calibration(made, number, axis)
    return Part(name, positives, negatives, figures)


def _recall(made: ClassForests, number: int) -> Estimate:
    """The fraction of a class's records whose score of it is the largest."""
    both = slice(2 * number, 2 * number + 2)
    return _fraction(made.hits.leaves[both, 0], made.hits.totals()[1][both])


def _fraction(counts: Floats, variances: Floats) -> Estimate:
    """``right / (right + wrong)``, wrong first; with the variance ``((1-f)^2 v + f^2 w) / n^2``."""
    (wrong, right), (wrong_variance, right_variance) = counts.tolist(), variances.tolist()
    total = right + wrong
    if total <= 0:
        return Estimate(math.nan, math.nan, math.nan)
    part = min(max(right / total, 0.0), 1.0)
    variance = (1 - part) ** 2 * right_variance + part**2 * wrong_variance
    return Estimate(
        right / total, math.sqrt(variance) / total, math.sqrt(part * (1 - part) / total)
    ).within(UNIT)


def _overall(made: ClassForests) -> dict[str, Estimate]:
    """The average AUC by the classes' sizes, and top-1 accuracy."""
    counts = made.hits.leaves.reshape(-1, 2).sum(axis=0)
    errors = made.hits.totals()[1].reshape(-1, 2).sum(axis=0)
    return {"weighted AUC": _weighted(made), "top-1 accuracy": _fraction(counts, errors)}


def _weighted(made: ClassForests) -> Estimate:
    """The mean of the AUCs A_c by class size n_c, ``sum n_c A_c / M``.

    Its derivative by a count of class c's own tree is ``n_c / M`` times that of A_c, plus
    ``(A_c - mean) / M``; by one of the other tree the first alone.
    """
    sizes = made.positives.leaves.sum(axis=-1)
    total, values = sizes.sum(), made.areas.value
    parts = sizes / total
    mean = float(parts @ values)
    scale = parts[:, np.newaxis]
    by_size = ((values - mean) / total)[:, np.newaxis]
    by_positives = made.positives.noise.variance_of(
        scale * made.areas.weights[:, 0] + by_size, made.positives.leaves
    )
    by_negatives = made.negatives.noise.variance_of(
        scale * made.areas.weights[:, 1], made.negatives.leaves
    )
    variance = float(np.sum(by_positives + by_negatives + parts**2 * made.areas.other_variance))
    return Estimate(
        mean,
        math.sqrt(variance),
        float(np.abs(parts) @ np.sqrt(made.areas.sampling_variance)),
        float(np.abs(parts) @ np.sqrt(made.areas.cell_variance)),
    ).within(UNIT)


def _calibration(made: ClassForests, number: int, axis: ScoreAxis) -> dict[str, Estimate]:
    """Calibration in the large, and the expected calibration error in ``2**CALIBRATION_DEPTH``
    cells."""
    positives, negatives = made.positives.leaves[number], made.negatives.leaves[number]
    return {
        "observed less expected": _in_the_large(made, positives, negatives, axis),
        "calibration error": _expected_error(made, positives, negatives, axis),
    }


def _in_the_large(
    made: ClassForests, positives: Floats, negatives: Floats, axis: ScoreAxis
) -> Estimate:
    """The fraction of positives less the mean score, ``(sum p - sum e (p + n)) / M``.

    Its derivative by a positive at the score e is ``(1 - e - d) / M``, and by a negative
    ``(-e - d) / M``, with d the figure.
    """
    scores = axis.middles(positives.size)
    total = float(positives.sum() + negatives.sum())
    value = float(positives.sum() - scores @ (positives + negatives)) / total
    first = made.positives.noise.variance_of((1 - scores - value) / total, positives)
    second = made.negatives.noise.variance_of((-scores - value) / total, negatives)
    squares = float(positives @ (1 - scores - value) ** 2 + negatives @ (-scores - value) ** 2)
    return Estimate(
        value,
        math.sqrt(float(first + second)),
        math.sqrt(max(squares, 0.0)) / total,
        _hidden_mean(positives + negatives, axis),
    )


def _hidden_mean(totals: Floats, axis: ScoreAxis) -> float:
    """How far the mean score may be off because cells hide where in them records lie.

    Records placed at random in cells of width w have a mean of variance ``sum t w^2 / 12 / M^2``.
    What the densities add is at most about the change of the mean when cells of twice the width
    take the place of these: smooth densities are off by the square of the width.
    """
    total = float(totals.sum())
    widths = np.diff(axis.edges(totals.size))
    placed = math.sqrt(float(np.maximum(totals, 0.0) @ widths**2) / 12) / total
    coarse = totals.reshape(-1, 2).sum(axis=-1) @ axis.middles(totals.size // 2)
    return math.hypot(placed, float(totals @ axis.middles(totals.size) - coarse) / total)


def _expected_error(
    made: ClassForests, positives: Floats, negatives: Floats, axis: ScoreAxis
) -> Estimate:
    """The calibration error debiased for noise, and its error by sampling (``debiased_ece``)."""
    cells = min(1 << CALIBRATION_DEPTH, positives.size)
    weights = np.repeat(np.eye(cells), positives.size // cells, axis=1)
    variance = made.positives.noise.variance_of(weights, positives)
    both = variance + made.negatives.noise.variance_of(weights, negatives)
    bucket_positives, bucket_negatives = weights @ positives, weights @ negatives
    totals = bucket_positives + bucket_negatives
    starts = np.arange(0, positives.size, positives.size // cells)
    scores = bucket_means(positives + negatives, axis.middles(positives.size), starts)
    buckets = Buckets(scores, bucket_positives, totals, variance, both)
    noisy, whole = map(calibration.debiased_ece, (buckets, buckets.sampled()))
    hidden = _hidden_mean(positives + negatives, axis)
    sampling = math.sqrt(max(whole.standard_error**2 - noisy.standard_error**2, 0.0))
    return Estimate(noisy.value, noisy.standard_error, sampling, hidden).within(UNIT)
