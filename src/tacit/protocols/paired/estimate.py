"""What noisy values of matched pairs say: a mean over pairs, or an AUC, with its errors."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats
from tacit.protocols.paired.moments import (
    MatchedSample,
    all_pairs_variance,
    area_shared_covariance,
    exponential_moments,
)
from tacit.results.server_result import ANY, ServerResult

WEAK = 5.0
"""A class below this many of its standard errors makes linearised errors too small."""


def matched_mean_result(sample: MatchedSample, rounding: float) -> ServerResult:
    """The mean of a kernel over all pairs of records.

    Parameters
    ----------
    sample : the pairs' values.
    rounding : the standard deviation that the kernel's grid adds, at most.
    """
    least, most = sample.shared_covariances
    error = np.sqrt(sample.privacy_variance(least))
    sampling = np.sqrt(all_pairs_variance(sample.kernel_variance, most, sample.records))
    classless = np.full_like(sample.mean, np.nan)
    warnings: tuple[str, ...] = ()
    if sample.mean.ndim == 0:
        warnings = _mean_warnings(float(sample.mean), float(error), sample.low, sample.high)
    return ServerResult(
        value=sample.mean,
        privacy_error=error,
        sampling_error=sampling,
        positives=classless,
        negatives=classless,
        approximation_error=np.full_like(error, rounding),
        warnings=warnings,
        limits=ANY,
    )


def matched_area_result(sample: MatchedSample, positives: Floats, spread: float) -> ServerResult:
    """The AUC: ``U n (n - 1) / (2 P N)``, U the mean over pairs of who wins (Bell et al. 2020, Eq.
    7).

    ``P (n - P)`` of a noisy P is too small by the noise's variance, which is added. To first order
    the quotient's variance is that of U over ``(2 P N / (n (n - 1)))^2``, and
    ``(A (n - 2 P) / (P N))^2`` times that of P.

    Parameters
    ----------
    sample : the pairs' values, 1 for pairs that the positive wins.
    positives : the noisy number of positive records P, shape (...).
    spread : the standard deviation of its noise.
    """
    n = sample.records
    negatives = n - positives
    mixed = positives * negatives + spread**2
    known = (positives > 0) & (negatives > 0)
    share = np.where(known, 2 * mixed / (n * (n - 1)), 1.0)
    value = np.where(known, sample.mean / share, np.nan)
    area = np.clip(np.where(known, value, 0.5), 0.0, 1.0)
    filled = np.where(known, positives, n / 2)
    shared = np.minimum(area_shared_covariance(area, filled, n), sample.kernel_variance / 2)
    of_counts = area * (n - 2 * filled) / np.where(known, mixed, 1.0) * spread
    privacy = np.sqrt(sample.privacy_variance(shared) / share**2 + of_counts**2)
    warnings: tuple[str, ...] = ()
    if value.ndim == 0:
        smaller = min(float(positives), float(negatives))
        warnings = _area_warnings(float(privacy), smaller, spread)
    return ServerResult(
        value=value,
        privacy_error=np.where(known, privacy, np.nan),
        sampling_error=np.where(known, _area_sampling(area, filled, n), np.nan),
        positives=np.asarray(positives),
        negatives=np.asarray(negatives),
        positives_error=np.full_like(value, spread),
        warnings=warnings,
    )


def _area_sampling(area: Floats, positives: Floats, records: int) -> Floats:
    """The AUC's standard error about the population's (Hanley and McNeil 1982)."""
    twice, once = exponential_moments(area)
    negatives = records - positives
    square = area**2
    spread = (
        area * (1 - area) + (positives - 1) * (twice - square) + (negatives - 1) * (once - square)
    )
    return np.asarray(np.sqrt(np.maximum(spread / (positives * negatives), 0.0)))


def _mean_warnings(value: float, error: float, low: float, high: float) -> tuple[str, ...]:
    vague = _vague(error, low, high)
    if vague or low <= value <= high:
        return vague
    inside = f"[{low:g}, {high:g}]"
    return (f"the estimate {value:.4f} lies outside {inside}; it is reported as it came",)


def _vague(error: float, low: float, high: float) -> tuple[str, ...]:
    """What to say of an error that leaves almost every value between these open."""
    if error <= (high - low) / 2:
        return ()
    return (f"this estimate says little: it errs by {error:.2g} on a scale of {high - low:.2g}",)


def _area_warnings(error: float, smaller: float, spread: float) -> tuple[str, ...]:
    if smaller <= 0:
        return (
            "not enough signal at this epsilon: the smaller class is estimated at "
            f"{smaller:.1f} records, with a standard error of {spread:.1f}",
        )
    if smaller < WEAK * spread:
        return (
            f"the smaller class is estimated at {smaller:.0f} records with a standard error of "
            f"{spread:.0f}; the errors are linearised and too small here",
        )
    return _vague(error, 0.0, 1.0)
