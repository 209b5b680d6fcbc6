"""Estimates from noisy values of matched pairs: a mean over pairs, or an AUC, with errors."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.protocols.paired.moments import (
    MatchedSample,
    all_pairs_variance,
    area_shared_covariance,
    exponential_moments,
)
from tacit.results.server_result import ServerResult


def matched_mean_result(
    sample: MatchedSample, rounding: float, limits: tuple[float, float]
) -> ServerResult:
    """The mean of a kernel over all pairs of records.

    Parameters
    ----------
    sample : the pairs' values.
    rounding : the standard deviation that the kernel's grid adds, at most.
    limits : the least and the largest value that the mean can have.
    """
    least, most = sample.shared_covariances
    error = np.sqrt(sample.privacy_variance(least))
    sampling = np.sqrt(all_pairs_variance(sample.kernel_variance, most, sample.records))
    classless = np.full_like(sample.mean, np.nan)
    return ServerResult(
        value=sample.mean,
        privacy_error=error,
        sampling_error=sampling,
        positives=classless,
        negatives=classless,
        approximation_error=np.full_like(error, rounding),
        limits=limits,
    )


def matched_area_result(
    sample: MatchedSample, positives: Floats, class_error: float
) -> ServerResult:
    """The AUC: ``U n (n - 1) / (2 P N)``, U the mean over pairs of the kernel (Bell et al. 2020,
    Eq. 7).

    ``P (n - P)`` of a noisy P is too small by the noise's variance, which is added. To first order
    the quotient's variance is that of U over ``(2 P N / (n (n - 1)))^2``, and
    ``(A (n - 2 P) / (P N))^2`` times that of P.

    Parameters
    ----------
    sample : the pairs' values, 1 for pairs that the positive wins.
    positives : the noisy number of positive records P, shape (...).
    class_error : the standard deviation of its noise.
    """
    n = sample.records
    negatives = n - positives
    mixed = positives * negatives + class_error**2
    known = (positives > 0) & (negatives > 0)
    pair_fraction = np.where(known, 2 * mixed / (n * (n - 1)), 1.0)
    value = np.where(known, sample.mean / pair_fraction, np.nan)
    area = np.clip(np.where(known, value, 0.5), 0.0, 1.0)
    filled = np.where(known, positives, n / 2)
    shared = np.minimum(area_shared_covariance(area, filled, n), sample.kernel_variance / 2)
    count_error = area * (n - 2 * filled) / np.where(known, mixed, 1.0) * class_error
    privacy = np.sqrt(sample.privacy_variance(shared) / pair_fraction**2 + count_error**2)
    warnings: tuple[str, ...] = ()
    if value.ndim == 0:
        smaller = min(float(positives), float(negatives))
        warnings = _signal_warnings(smaller, class_error)
    return ServerResult(
        value=value,
        privacy_error=np.where(known, privacy, np.nan),
        sampling_error=np.where(known, _area_sampling(area, filled, n), np.nan),
        positives=np.asarray(positives),
        negatives=np.asarray(negatives),
        positives_error=np.full_like(value, class_error),
        warnings=warnings,
    )


def _area_sampling(area: Floats, positives: Floats, records: int) -> Floats:
    """The AUC's standard error about the population's (Hanley and McNeil 1982)."""
    twice, once = exponential_moments(area)
    negatives = records - positives
    square = area**2
    class_error = (
        area * (1 - area) + (positives - 1) * (twice - square) + (negatives - 1) * (once - square)
    )
    return np.asarray(np.sqrt(np.maximum(class_error / (positives * negatives), 0.0)))


def _signal_warnings(smaller: float, class_error: float) -> tuple[str, ...]:
    if smaller > 0:
        return ()
    return (
        "not enough signal at this epsilon: the smaller class is estimated at "
        f"{smaller:.1f} records, with a standard error of {class_error:.1f}",
    )
