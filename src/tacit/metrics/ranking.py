"""Mid-ranks, the AUC and its sampling error; the covariance of two models' AUCs on one sample."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats

AT_ONCE = 2**20
"""So many records, or groups of tied ones, are looked at at a time: it bounds the memory."""


def doubled_mid_ranks(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the mid-rank of every score; ranks count from 0, tied scores have their mean rank.

    A mid-rank is a half-integer, so its double is an integer and sums of it are exact.

    Parameters
    ----------
    scores : float64, shape (M,), finite.

    Returns
    -------
    int64, shape (M,), values in 0..2(M-1).

    Examples
    --------
    >>> import numpy as np
    >>> doubled_mid_ranks(np.array([0.2, 0.9, 0.2, 0.5]))
    array([1, 6, 1, 4])
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    ranks = np.empty(scores.size, dtype=np.int64)
    new_value = ordered[1:] != ordered[:-1]
    del ordered
    ranks[order] = np.arange(0, 2 * scores.size, 2, dtype=np.int64)
    if not new_value.all():
        first, lengths = _tied_groups(new_value)
        for start in range(0, first.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            size = lengths[part]
            # the places of all members: their group's first one, and how far they are behind it
            before = np.cumsum(size) - size
            members = np.repeat(first[part] - before, size)
            members += np.arange(members.size)
            ranks[order[members]] = np.repeat(2 * first[part] + size - 1, size)
    return ranks


def _tied_groups(new_value: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where groups of at least two equal values begin in ascending values, and their lengths.

    Parameters
    ----------
    new_value : whether each value but the first differs from the one before, shape (M-1,).
    """
    begins, ends = ~new_value, ~new_value
    begins[1:] &= new_value[:-1]
    ends[:-1] &= new_value[1:]
    first = np.flatnonzero(begins)
    return first, np.flatnonzero(ends) - first + 2


def _check_classes(positives: int, negatives: int) -> None:
    if positives <= 0 or negatives <= 0:
        raise ValueError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {negatives} negative records"
        )


def auc(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> float:
    """The area under the ROC curve of scores against 0/1 labels, ties counted one half.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], dtype=np.int8))
    0.75
    """
    positives, negatives = sorted_classes(scores, labels)
    _check_classes(positives.size, negatives.size)
    won = int(doubled_placements(positives, negatives).sum())
    return won / (2 * positives.size * negatives.size)


def auc_with_variance(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> tuple[float, float]:
    """``auc``, and DeLong's variance of it where both classes have two records, else NaN.

    Raises
    ------
    ValueError : when a class is absent.
    """
    positives, negatives = sorted_classes(scores, labels)
    _check_classes(positives.size, negatives.size)
    won = doubled_placements(positives, negatives)
    value = int(won.sum()) / (2 * positives.size * negatives.size)
    if min(positives.size, negatives.size) < 2:
        return value, np.nan
    variance = _variance_of_placements(won, negatives.size)
    del won
    # a negative's share of positives above it is 1 less that below it: of the same variance
    below = doubled_placements(negatives, positives)
    return value, variance + _variance_of_placements(below, positives.size)


def sorted_classes(
    scores: NDArray[np.float64], labels: NDArray[np.int8]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The scores of positives and of negatives, ascending."""
    positive = labels == 1
    classes = scores[positive], scores[~positive]
    _each(np.ndarray.sort, classes, scores.size)
    return classes


def doubled_placements(
    scores: NDArray[np.float64], others: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Twice the number of other scores below each score, a tie counted one half, shape (m,).

    Parameters
    ----------
    scores, others : ascending, shapes (m,) and (n,).

    Examples
    --------
    >>> doubled_placements(np.array([0.2, 0.5]), np.array([0.1, 0.2, 0.2])).tolist()
    [4, 6]
    """
    placements = np.empty(scores.size, dtype=np.int64)

    def fill(start: int) -> None:
        chunk = scores[start : start + AT_ONCE]
        below = np.searchsorted(others, chunk, side="left")
        placements[start : start + AT_ONCE] = 2 * below
        # few scores are tied: only those are searched again
        tied = np.flatnonzero(others[np.minimum(below, others.size - 1)] == chunk)
        if tied.size:
            upto = np.searchsorted(others, chunk[tied], side="right")
            placements[start + tied] += upto - below[tied]

    _each(fill, range(0, scores.size, AT_ONCE), scores.size)
    return placements


def _each(work: Callable[[Any], None], parts: Iterable[Any], records: int) -> None:
    """Do the work of all parts, in threads for many records: NumPy sorts without the lock."""
    if records <= AT_ONCE:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(work, parts))


def _variance_of_placements(doubled: NDArray[np.int64], others: int) -> float:
    """The variance of the placements as shares of the other class, over the class's size."""
    return float((doubled / (2 * others)).var(ddof=1)) / doubled.size


def top_hits(
    scores: NDArray[np.float64], labels: NDArray[np.int8], sizes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many of the k highest-scored records are positive, for each k (Sun et al. 2022a, Table
    8).

    Parameters
    ----------
    scores, labels : shape (M,); tied scores are in the order of the records.
    sizes : every k, from 1 to M, shape (n,).

    Examples
    --------
    >>> top_hits(np.array([0.9, 0.1, 0.8, 0.4]), np.array([1, 0, 0, 1]), np.array([1, 3]))
    array([1, 2])
    """
    order = np.argsort(-scores, kind="stable")
    positives = np.cumsum(labels[order], dtype=np.int64)
    return np.asarray(positives[np.asarray(sizes) - 1])


def plug_in_variance(
    auc: Floats | float, positives: Floats | float, negatives: Floats | float
) -> Floats:
    """The AUC's sampling variance when only the AUC and the class sizes are known, shape (...).

    Hanley and McNeil 1982, with their exponential-model values ``Q1 = A/(2-A)`` and
    ``Q2 = 2A^2/(1+A)``. Used where a protocol shows sums only, so that DeLong's cannot be computed.

    Examples
    --------
    >>> round(float(plug_in_variance(0.75, 100, 100)) ** 0.5, 4)
    0.0344
    """
    area = np.clip(auc, 0.0, 1.0)
    first, second, square = area / (2 - area), 2 * area * area / (1 + area), area * area
    beyond = (positives - 1) * (first - square) + (negatives - 1) * (second - square)
    variance = area * (1 - area) + beyond
    return np.asarray(np.maximum(variance, 0.0) / (positives * negatives))


QUADRATURE_POINTS = 24
"""Number of quadrature points."""

MIN_AREA = 1e-4
"""Least distance from 0 and 1 at which an area is used."""


def rank_correlation(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Spearman's correlation of two models' ranks, 0 where the ranks of one are all equal.

    Parameters
    ----------
    first, second : (doubled) mid-ranks of the same records, shape (M,).

    Examples
    --------
    >>> import numpy as np
    >>> rank_correlation(np.array([0, 2, 4]), np.array([4, 2, 0]))
    -1.0
    """
    first_centred, second_centred = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(first_centred @ first_centred) * float(second_centred @ second_centred))
    return float(first_centred @ second_centred) / scale if scale > 0 else 0.0


def paired_plug_in_variance(
    first: ArrayLike,
    second: ArrayLike,
    correlation: float,
    positives: ArrayLike,
    negatives: ArrayLike,
) -> Floats:
    """The sampling variance of the difference of two models' AUCs, from sums alone.

    DeLong's placements need every label; a model of the data replaces them: within a class the
    latent scores of both models are jointly normal, with unit variances. The covariance of two
    placements is then the excess of a bivariate normal probability over the product of its margins
    (Plackett 1954),

        I(g, h, t) = 1/(2 pi) int_0^arcsin(t) exp(-(g^2 + h^2 - 2 g h sin u) / (2 cos^2 u)) du

    at ``g = quantile(first)``, ``h = quantile(second)`` and half the latent correlation, and the
    variance ``(I(g,g,1/2) + I(h,h,1/2) - 2 I(g,h,r/2)) (1/P + 1/N)``. The correlation within the
    classes, r, follows from that of all records' ranks, after the part that the classes' distance
    adds to it is subtracted.

    Parameters
    ----------
    first, second : the AUCs, shape () or (R,).
    correlation : Spearman's, of all records' ranks.
    positives, negatives : the class sizes, each at least 1, shape () or (R,).

    Examples
    --------
    Models with equal ranks do not differ; without correlation within the classes, both vary
    independently, as on two samples:

    >>> round(float(paired_plug_in_variance(0.8, 0.8, 1.0, 100, 300)), 12)
    0.0
    >>> apart = float(paired_plug_in_variance(0.75, 0.75, 0.177, 100, 100))
    >>> round(apart**0.5, 3), round((2 * 0.0344**2) ** 0.5, 3)
    (0.048, 0.049)
    """
    areas = [np.clip(a, MIN_AREA, 1 - MIN_AREA) for a in (first, second)]
    first_quantile, second_quantile = (
        np.asarray(scipy.special.ndtri(area), dtype=np.float64) for area in areas
    )
    positive_count = np.asarray(positives, np.float64)
    negative_count = np.asarray(negatives, np.float64)
    positive_fraction = positive_count / (positive_count + negative_count)
    within = _within_classes(first_quantile, second_quantile, correlation, positive_fraction)
    half = np.full_like(within, 0.5)
    variance = (
        _excess(first_quantile, first_quantile, half)
        + _excess(second_quantile, second_quantile, half)
        - 2 * _excess(first_quantile, second_quantile, within / 2)
    )
    inverse_sizes = 1 / positive_count + 1 / negative_count
    return np.asarray(np.clip(variance, 0.0, None) * inverse_sizes, dtype=np.float64)


def _within_classes(first: Floats, second: Floats, correlation: float, rate: Floats) -> Floats:
    """The latent correlation within a class; the classes' means are ``sqrt(2) quantile`` apart."""
    overall = 2 * math.sin(math.pi * correlation / 6)
    between = 2 * rate * (1 - rate)
    deviations = np.sqrt((1 + between * first**2) * (1 + between * second**2))
    return np.asarray(np.clip(overall * deviations - between * first * second, -1.0, 1.0))


def _excess(first: Floats, second: Floats, correlation: Floats) -> Floats:
    """``P(X <= first, Y <= second)`` less the product of the two, by Gauss-Legendre quadrature."""
    nodes, weights = scipy.special.roots_legendre(QUADRATURE_POINTS)
    end = np.arcsin(correlation)[..., np.newaxis] / 2
    angles = end * (nodes + 1)
    first_limit, second_limit = first[..., np.newaxis], second[..., np.newaxis]
    crossed = 2 * first_limit * second_limit * np.sin(angles)
    exponent = (first_limit**2 + second_limit**2 - crossed) / (2 * np.cos(angles) ** 2)
    return np.asarray((end * weights * np.exp(-exponent)).sum(axis=-1) / (2 * math.pi))
