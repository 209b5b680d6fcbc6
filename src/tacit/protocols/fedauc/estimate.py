"""Estimates from clients' noisy counts and rank sums: totals, the AUC, its errors, warnings."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import errors
from tacit.metrics.ranking import plug_in_variance
from tacit.privacy.mechanisms.response import flip_probability
from tacit.protocol.conversation import Reply
from tacit.protocols.fedauc.allocation import Allocation, RankGeometry
from tacit.protocols.shared.rank_noise import RankNoise
from tacit.results.server_result import ServerResult


def totals_of_pairs(
    geometry: RankGeometry, noise: RankNoise, allocation: Allocation, reply: Reply
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
) -> ServerResult:
    """The AUC with its errors, from the noisy totals and the variances of their noise.

    The part ``laplace`` of the numerator's variance is by one draw of Laplace noise; ``law`` is
    that of the AUC's error by few draws.

    The first-order variance is ``Var(numerator) / (P N)^2``. The second order adds the variance of
    the squared count error, ``2 (AUC - 1/2)^2 Var(count)^2``, and the product of both errors,
    ``Var(numerator) Var(count) ((N - P) / (P N))^2``, each over ``(P N)^2``.
    """
    inside = np.clip(positives, 1.0, records - 1.0)
    negatives = records - inside
    pairs = inside * negatives
    area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    second = 2 * ((area - 0.5) * count) ** 2
    second = second + numerator * count * ((negatives - inside) / pairs) ** 2
    error = np.sqrt(numerator + second) / pairs
    warnings: tuple[str, ...] = ()
    if np.ndim(value) == 0 and np.isnan(value):
        warnings = (
            "not enough signal at this epsilon: the noisy number of positives is "
            f"{float(positives):.1f} of {records} records, with a standard error of "
            f"{math.sqrt(count):.1f}; predicted error of the AUC about {float(error):.2g}",
        )
    return ServerResult(
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


def area_of_sums(records: int, positives: Floats, centred: Floats) -> Floats:
    """The AUC: ``1/2 + centred rank sum / (P (M - P))``; NaN without both classes."""
    pairs = positives * (records - positives)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pairs > 0, 0.5 + centred / pairs, np.nan)
