"""Estimates from clients' noisy counts and rank sums: totals, the AUC, its errors, warnings."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.counts import allocating
from tacit.counts.rank_noise import RankNoise
from tacit.data.ragged import doubled_ranks
from tacit.data.scales import ScaleDifference, clients_apart
from tacit.metrics import errors
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.mechanisms.response import flip_probability
from tacit.protocol.fields import ragged_of
from tacit.protocols.fedauc.steps import noisy_rank_sums, share_scores


def totals_of_pairs(
    geometry: allocating.RankGeometry,
    noise: RankNoise,
    allocation: allocating.Allocation,
    reply: tp.Reply,
) -> tuple[Floats, Floats]:
    """Unbiased totals of the positives and of ``(rank - (M-1)/2) * label``.

    The pooled form of both estimators: for flipped labels it equals the debiasing of the AUC in
    docs, section 1a: ``(AUC_noisy - (alpha+beta)/2) / (1-alpha-beta)``, term by term.
    """
    positives, residuals = np.asarray(reply["positives"]), np.asarray(reply["residuals"])
    if allocation.respond.any():
        flip = flip_probability(noise.epsilon)
        doubled_mean = 2 * geometry.mean - allocation.doubled_pivot
        scale = 1 - 2 * flip
        unflipped_positives = (positives - flip * geometry.sizes) / scale
        unflipped_residuals = (residuals - flip * geometry.sizes * doubled_mean) / scale
        positives = np.where(allocation.respond, unflipped_positives, positives)
        residuals = np.where(allocation.respond, unflipped_residuals, residuals)
    shift = allocation.doubled_pivot - (geometry.records - 1)
    centred = (residuals + shift * positives) / 2
    return positives.sum(axis=-1, dtype=np.float64), centred.sum(axis=-1, dtype=np.float64)


def result_from_pairs(
    records: int,
    positives: Floats,
    value: Floats,
    numerator: Floats,
    count: Floats,
    laplace: Floats | float = 0.0,
    law: errors.ErrorLaw | None = None,
) -> tp.ServerResult:
    """The AUC with its errors, from the noisy totals and the variances of their noise.

    The part ``laplace`` of the numerator's variance is by one draw of Laplace noise; ``law`` is
    that of the AUC's error by few draws.

    """
    inside = np.clip(positives, 1.0, records - 1.0)
    negatives = records - inside
    pairs = inside * negatives
    area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    error = error_of_ratio(numerator, count, area - 0.5, inside, negatives)
    warnings: tuple[str, ...] = ()
    if np.ndim(value) == 0 and np.isnan(value):
        warnings = (
            "not enough signal at this epsilon: the noisy number of positives is "
            f"{float(positives):.1f} of {records} records, with a standard error of "
            f"{math.sqrt(count):.1f}; predicted error of the AUC about {float(error):.2g}",
        )
    return tp.ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.sqrt(plug_in_variance(value, inside, negatives)),
        positives=positives,
        negatives=records - positives,
        positives_error=np.sqrt(count),
        laplace_error=np.sqrt(laplace) / pairs,
        law=law,
        warnings=warnings,
    )


def error_of_ratio(
    numerator: Floats, count: Floats, ratio: Floats, positives: Floats, negatives: Floats
) -> Floats:
    """The standard error of a numerator over ``P N``, from the variances of it and of the count.

    The first-order variance is ``Var(numerator) / (P N)^2``. The second order adds the variance of
    the squared count error, ``2 ratio^2 Var(count)^2``, and the product of both errors,
    ``Var(numerator) Var(count) ((N - P) / (P N))^2``, each over ``(P N)^2``.
    """
    pairs = positives * negatives
    second = 2 * (ratio * count) ** 2
    second = second + numerator * count * ((negatives - positives) / pairs) ** 2
    return np.asarray(np.sqrt(numerator + second) / pairs)


def area_of_sums(records: int, positives: Floats, centred: Floats) -> Floats:
    """The AUC: ``1/2 + centred rank sum / (P (M - P))``; NaN without both classes."""
    pairs = positives * (records - positives)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pairs > 0, 0.5 + centred / pairs, np.nan)


FEW_CLIENTS = 32
"""Largest number of clients whose noise is not taken as normal."""


def ranked_scores(
    protocol: Any,
) -> Generator[tp.Query, tp.Reply, tuple[tp.Ragged[np.int64], ScaleDifference | None]]:
    """Scores up: their doubled ranks, and which clients' scores are of another scale.

    Raises
    ------
    ValueError : for fewer than two records.
    """
    sent = ragged_of((yield tp.Query(share_scores, protocol))["scores"], "scores")
    ranks, records = doubled_ranks(sent), int(sent.offsets[-1])
    if records < 2:
        raise ValueError(f"an AUC needs at least two records, got {records}")
    return ranks, clients_apart(sent)


def divided_by_influence(
    protocol: Any, ranks: tp.Ragged[np.int64], geometry: allocating.RankGeometry
) -> Generator[tp.Query, tp.Reply, tuple[RankNoise, allocating.Allocation]]:
    """Noise and allocation of the main round, after a first round if one is worth its price."""
    whole: RankNoise = protocol.rank_noise
    fraction = allocating.first_round_fraction(geometry, whole)
    prior = allocating.vague_prior(geometry.records)
    if fraction:
        first = whole.part(fraction)
        sums = yield from asked_sums(
            protocol, ranks, geometry, first, allocating.adaptive_allocation(geometry, first)
        )
        area = np.nan_to_num(area_of_sums(geometry.records, *sums), nan=0.5)
        prior = allocating.prior_from(geometry, first, sums[0], area)
    noise = whole.rest(fraction)
    return noise, allocating.influence_allocation(geometry, noise, prior)


def asked_sums(
    protocol: Any,
    ranks: tp.Ragged[np.int64],
    geometry: allocating.RankGeometry,
    noise: RankNoise,
    allocation: allocating.Allocation,
) -> Generator[tp.Query, tp.Reply, tuple[Floats, Floats]]:
    """Noisy totals of the positives and of their ranks, measured from the middle rank."""
    reply = yield tp.Query(
        noisy_rank_sums,
        protocol,
        broadcast={"noise": noise, "sensitivity": allocation.sensitivity},
        per_client={
            "ranks": ranks,
            "pivot": allocation.doubled_pivot,
            "share": allocation.fraction,
            "respond": allocation.respond,
        },
    )
    return totals_of_pairs(geometry, noise, allocation, reply)


def result_of_sums(
    geometry: allocating.RankGeometry,
    noise: RankNoise,
    allocation: allocating.Allocation,
    sums: tuple[Floats, Floats],
) -> tp.ServerResult:
    """The AUC of the totals; the ends of the geometry bound the ranks that the noise hides."""
    positives, value = sums[0], area_of_sums(geometry.records, *sums)
    inside = np.clip(positives, 1.0, geometry.records - 1.0)
    area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    pairs = np.asarray(inside * (geometry.records - inside))[..., np.newaxis]
    # where a label's influence changes sign
    centre = np.asarray(allocating.influence_centre(geometry.records, inside, area))[
        ..., np.newaxis
    ]
    numerator, count, _ = allocating.predicted_variance(geometry, noise, allocation, centre)
    law: errors.ErrorLaw | None = None
    if geometry.sizes.size <= FEW_CLIENTS:
        law = allocating.numerator_law(geometry, noise, allocation, centre, pairs)
    variances = numerator.sum(axis=-1), count.sum(axis=-1)
    return result_from_pairs(geometry.records, positives, value, *variances, law=law)
