"""Estimates from noisy rank sums of two models: AUCs, their difference, errors, warnings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.paired_ranking import paired_plug_in_variance
from tacit.privacy.local.response import flip_probability
from tacit.protocol.conversation import Reply
from tacit.protocols.fedauc.allocation import influence_centre
from tacit.protocols.fedauc.comparing.noise import CentredVariance, DifferenceVariances, RankPairs
from tacit.protocols.fedauc.estimate import area_of_sums, result_from_pairs
from tacit.results.server_result import ComparisonResult, ServerResult


@dataclass(frozen=True, eq=False)
class NoisySums:
    """Unbiased totals over all clients, in ranks, shape () or (R,).

    Parameters
    ----------
    positives : the number of positive records.
    first, second : the sums of ``(rank - (M-1)/2) * label``.
    """

    positives: Floats
    first: Floats
    second: Floats


def totals_of_sums(
    ranks: RankPairs,
    pivot: NDArray[np.int64],
    responding: NDArray[np.bool_],
    epsilon: float,
    reply: Reply,
) -> NoisySums:
    """Totals from the clients' six numbers: flipped labels debiased, pivots taken off.

    Parameters
    ----------
    ranks : both models' ranks.
    pivot : of every client's level, shape (K,).
    responding : which records answered by randomised response, shape (M,).
    epsilon : the epsilon of that response.
    reply : the clients' sums.
    """
    flip = flip_probability(epsilon)
    starts = ranks.first.offsets[:-1]
    levels = ranks.level.values - np.repeat(pivot, ranks.level.sizes)
    totals = []
    for name, weights in (
        ("positives", np.ones(ranks.records, dtype=np.int64)),
        ("differences", ranks.difference.values),
        ("levels", levels),
    ):
        answered = np.asarray(reply[f"answered_{name}"])
        expected = flip * np.add.reduceat(weights * responding, starts)
        totals.append(np.asarray(reply[name]) + (answered - expected) / (1 - 2 * flip))
    count, difference, level = totals
    centred = level + (pivot - 2 * (ranks.records - 1)) * count
    return NoisySums(
        count.sum(axis=-1, dtype=np.float64),
        (centred + difference).sum(axis=-1, dtype=np.float64) / 4,
        (centred - difference).sum(axis=-1, dtype=np.float64) / 4,
    )


def result_from_sums(
    records: int, sums: NoisySums, variances: DifferenceVariances, correlation: float
) -> ComparisonResult:
    """Both AUCs and their difference, with their errors.

    The variance of the difference is ``Var(sum (d - c) y) / (P N)^2`` with d a record's difference
    of ranks and ``c = difference (N - P)``; the second order adds ``2 difference^2 Var(count)^2``
    and ``Var(numerator) Var(count) ((N - P) / (P N))^2``, as for one AUC.

    Parameters
    ----------
    records : M.
    sums : the noisy totals.
    variances : the variances that the noise causes.
    correlation : Spearman's correlation of the two models' ranks.
    """
    count = np.full_like(sums.positives, variances.difference.quadratic)
    first, second = (
        _one_auc(records, sums.positives, rank_sum, variance, count)
        for rank_sum, variance in ((sums.first, variances.first), (sums.second, variances.second))
    )
    inside = np.clip(sums.positives, 1.0, records - 1.0)
    negatives = records - inside
    value = first.value - second.value
    difference = np.clip(np.nan_to_num(value, nan=0.0), -1.0, 1.0)
    first_order = variances.difference.about(difference * (negatives - inside))
    second_order = 2 * (difference * count) ** 2
    second_order = (
        second_order + first_order * count * ((negatives - inside) / (inside * negatives)) ** 2
    )
    areas = [np.nan_to_num(model.value, nan=0.5) for model in (first, second)]
    sampling = np.sqrt(paired_plug_in_variance(areas[0], areas[1], correlation, inside, negatives))
    return ComparisonResult(
        value=value,
        privacy_error=np.sqrt(first_order + second_order) / (inside * negatives),
        sampling_error=np.where(np.isnan(value), np.nan, sampling),
        positives=sums.positives,
        negatives=records - sums.positives,
        positives_error=np.sqrt(count),
        warnings=first.warnings,
        limits=(-1.0, 1.0),
        first=first,
        second=second,
    )


def _one_auc(
    records: int, positives: Floats, centred: Floats, variance: CentredVariance, count: Floats
) -> ServerResult:
    """One model's AUC from its centred rank sum."""
    _, value = area_of_sums(records, positives, centred)
    inside = np.clip(positives, 1.0, records - 1.0)
    known = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    centre = np.asarray(influence_centre(records, inside, known))
    return result_from_pairs(records, positives, value, variance.about(centre), count)
