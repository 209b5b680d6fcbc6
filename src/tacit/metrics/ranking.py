"""Mid-ranks, the rank-sum AUC, its sampling error, and integers that compare as numbers do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


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
    if new_value.all():
        ranks[order] = np.arange(0, 2 * scores.size, 2, dtype=np.int64)
        return ranks
    starts = np.concatenate(([0], np.flatnonzero(new_value) + 1))
    lengths = np.diff(np.append(starts, scores.size))
    ranks[order] = np.repeat(2 * starts + lengths - 1, lengths)
    return ranks


def auc_from_rank_sum(doubled_rank_sum: int, positives: int, negatives: int) -> float:
    """The AUC from twice the rank sum of the positives (Sun et al. 2022a, Eq. 1).

    Equal to ``(sum of ranks - P(P-1)/2) / (P N)``, in exact integer arithmetic up to one division.

    Raises
    ------
    ValueError : when a class is absent; the AUC is then undefined.

    Examples
    --------
    >>> auc_from_rank_sum(2 * (1 + 3), 2, 2)
    0.75
    """
    if positives <= 0 or negatives <= 0:
        raise ValueError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {negatives} negative records"
        )
    pairs_won_twice = int(doubled_rank_sum) - int(positives) * (int(positives) - 1)
    return pairs_won_twice / (2 * int(positives) * int(negatives))


def auc(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> float:
    """The area under the ROC curve of scores against 0/1 labels, ties counted one half.

    Examples
    --------
    >>> import numpy as np
    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1], dtype=np.int8))
    0.75
    """
    positive = labels == 1
    rank_sum = int(doubled_mid_ranks(scores)[positive].sum())
    positives = int(np.count_nonzero(positive))
    return auc_from_rank_sum(rank_sum, positives, scores.size - positives)


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


def delong_variance(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> float:
    """The sampling variance of the AUC by DeLong et al. 1988, through mid-ranks (Sun and Xu 2014).

    Each positive's placement is the fraction of negatives below it, each negative's the fraction of
    positives above it; the variance is the sum over the classes of the placements' variance divided
    by the class size.

    Raises
    ------
    ValueError : with fewer than two records of a class.
    """
    positive = labels == 1
    positive_scores, negative_scores = scores[positive], scores[~positive]
    if min(positive_scores.size, negative_scores.size) < 2:
        raise ValueError(
            "DeLong's variance needs at least two records of each class, "
            f"got {positive_scores.size} positive and {negative_scores.size} negative"
        )
    pooled = doubled_mid_ranks(scores)
    won = (pooled[positive] - doubled_mid_ranks(positive_scores)) / (2 * negative_scores.size)
    negative_ranks = doubled_mid_ranks(negative_scores)
    lost = 1 - (pooled[~positive] - negative_ranks) / (2 * positive_scores.size)
    return float(won.var(ddof=1) / positive_scores.size + lost.var(ddof=1) / negative_scores.size)


def plug_in_variance(auc: float, positives: float, negatives: float) -> float:
    """The AUC's sampling variance when only the AUC and the class sizes are known.

    Hanley and McNeil 1982, with their exponential-model values ``Q1 = A/(2-A)`` and
    ``Q2 = 2A^2/(1+A)``. Used where a protocol shows sums only, so that DeLong's cannot be computed.

    Examples
    --------
    >>> round(plug_in_variance(0.75, 100, 100) ** 0.5, 4)
    0.0344
    """
    area = min(max(auc, 0.0), 1.0)
    first = area / (2 - area)
    second = 2 * area * area / (1 + area)
    variance = (
        area * (1 - area)
        + (positives - 1) * (first - area * area)
        + (negatives - 1) * (second - area * area)
    )
    return max(variance, 0.0) / (positives * negatives)


def ordered_codes(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integers that compare exactly as these finite numbers do, also where they are equal.

    Numbers in [0, 1] have codes from 0 to below ``2**62``, so that differences of codes, and of
    codes doubled, stay within 64 bits.

    Examples
    --------
    >>> codes = ordered_codes(np.array([-1.0, -0.0, 0.0, 0.5, 1.0]))
    >>> np.diff(codes).tolist()[1], bool(np.all(np.diff(codes) >= 0)), int(codes[-1]) < 2**62
    (0, True, True)
    """
    bits = np.abs(values).view(np.int64)
    return np.where(values < 0, -bits, bits)
