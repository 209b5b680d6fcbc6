"""Estimates from noisy values of matched pairs: a mean over pairs, or an AUC, with errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.local.paired.kernels import TWO_VALUED
from tacit.metrics.ranking import plug_in_variance
from tacit.results.server_result import ServerResult


def matching_variance(
    kernel: Floats | float, shared: Floats | float, records: int, matchings: int
) -> Floats:
    """The variance of the mean over Q random matchings about the mean over all pairs of this data.

    With ``m = n // 2`` pairs in a matching it is ``(kernel + (m - 1) c) / (Q m)``, c the covariance
    of two disjoint pairs. Over all pairs of pairs covariances add up to zero, and a pair shares a
    record with ``2 (n - 2)`` others, so
    ``c = -2 (kernel + 2 (n - 2) shared) / ((n - 2) (n - 3))``: about ``2 (kernel - 2 shared) / n``
    for one matching. Together with the variance of the mean over all pairs it is Theorem 5 of
    Bell et al. 2020 without noise.

    Parameters
    ----------
    kernel : the variance of the kernel over pairs (zeta_2 of the paper).
    shared : the covariance of two pairs that share a record (zeta_1).
    records : n, at least 2.
    matchings : Q.

    Examples
    --------
    >>> round(float(matching_variance(1.0, 0.25, records=1000, matchings=1)), 6)
    0.000997
    """
    variance, half = np.asarray(kernel, dtype=np.float64), records // 2
    if records == 2:
        return np.zeros_like(variance)
    if half == 1:
        return variance / matchings
    others = variance + 2 * (records - 2) * np.asarray(shared)
    disjoint = -2 * others / ((records - 2) * (records - 3))
    return np.asarray(np.maximum(variance + (half - 1) * disjoint, 0.0) / (matchings * half))


def all_pairs_variance(kernel: Floats | float, shared: Floats | float, records: int) -> Floats:
    """The variance of the mean over all pairs about the population's (Bell et al. 2020, Eq. 3).

    Examples
    --------
    >>> round(float(all_pairs_variance(1.0, 0.25, records=1000)), 6)
    0.001001
    """
    pairs = records * (records - 1) / 2
    return np.asarray((2 * (records - 2) * np.asarray(shared) + kernel) / pairs)


def reference_covariances(kernel: str, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Least and largest covariance of pairs with a common record, for values of a usual shape.

    Pairs of one matching have no common record, so it cannot be estimated from them. ``"kendall"``:
    values with normal copula, ``1/9 - (2/pi asin(rho/2))^2`` with ``rho = sin(pi tau / 2)``
    (Esscher 1924), times the root of the fraction of pairs without a tie for the least. ``"gini"``:
    a tenth of the variance, where values are uniform, to a third, where they are exponential.
    ``"collision"``: from 0, where all values are equally frequent, to ``U^(3/2) - U^2``, the most
    that there is.

    Parameters
    ----------
    kernel : a name in ``GRIDS``, except the AUC (``area_shared_covariance``).
    mean, variance : of the kernel over pairs, shape (...).

    Examples
    --------
    >>> least, most = reference_covariances("kendall", np.array(0.0), np.array(0.64))
    >>> round(float(least), 4), round(float(most), 4)
    (0.0889, 0.1111)
    """
    if kernel == "gini":
        return variance / 10, variance / 3
    if kernel == "collision":
        inside = np.clip(mean, 0.0, 1.0)
        return np.zeros_like(inside), inside**1.5 - inside**2
    tau = np.clip(mean, -1.0, 1.0)
    angle = 2 / np.pi * np.arcsin(np.sin(np.pi * tau / 2) / 2)
    most = np.maximum(1 / 9 - angle**2, 0.0)
    return most * np.sqrt(np.minimum(variance + tau**2, 1.0)), most


@dataclass(frozen=True, eq=False)
class MatchedSample:
    """Noisy values of matched pairs.

    Parameters
    ----------
    kernel : its name.
    values : debiased, shape (..., Q, m).
    seats : every record's seat in every matching, shape (..., Q, n).
    noise : the variance that noise adds to a value.
    low, high : the kernel's bounds.
    """

    kernel: str
    values: Floats
    seats: Integers
    noise: float
    low: float
    high: float

    @property
    def records(self) -> int:
        """n, the number of records."""
        return int(self.seats.shape[-1])

    @property
    def matchings(self) -> int:
        """Q, the number of matchings."""
        return int(self.seats.shape[-2])

    @property
    def pairs(self) -> int:
        """Q m, the number of values."""
        return self.matchings * int(self.values.shape[-1])

    @cached_property
    def mean(self) -> Floats:
        """The mean over the pairs, unbiased for the U-statistic, shape (...)."""
        return np.asarray(self.values.mean(axis=(-2, -1)))

    @cached_property
    def kernel_variance(self) -> Floats:
        """The variance of the kernel over pairs, from 0 to the largest that its bounds allow.

        For a kernel of two values it follows from the mean; for others it is the values' variance
        less the noise's.
        """
        inside = np.clip(self.mean, self.low, self.high)
        most = (inside - self.low) * (self.high - inside)
        if self.kernel in TWO_VALUED or self.pairs < 2:
            return np.asarray(most)
        value_variance = self.values.var(axis=(-2, -1), ddof=1)
        return np.asarray(np.clip(value_variance - self.noise, 0.0, most))

    @cached_property
    def shared_covariances(self) -> tuple[Floats, Floats]:
        """Least and largest covariance of two pairs with a common record.

        They are equal where a record is in several pairs, whose noise is independent: then it is
        estimated. It lies between 0 and half the kernel's variance.
        """
        if self.matchings == 1:
            bounds = reference_covariances(self.kernel, self.mean, self.kernel_variance)
        else:
            bounds = (self._measured_covariance,) * 2
        least, most = (np.clip(bound, 0.0, self.kernel_variance / 2) for bound in bounds)
        return least, most

    @property
    def _measured_covariance(self) -> Floats:
        """The mean product of two of a record's values, less their means."""
        centred = self.values - self.mean[..., np.newaxis, np.newaxis]
        zero = np.zeros((*centred.shape[:-1], 1))
        record_values = np.take_along_axis(
            np.concatenate([centred, zero], axis=-1), self.seats // 2, axis=-1
        )
        products = record_values.sum(axis=-2) ** 2 - (record_values**2).sum(axis=-2)
        taking_part = 2 * self.values.shape[-1] / self.records
        products_counted = self.records * self.matchings * (self.matchings - 1) * taking_part**2
        return np.asarray(products.sum(axis=-1) / products_counted)

    def privacy_variance(self, shared: Floats) -> Floats:
        """The variance of the mean about this data's U: noise, and the draw of pairs, shape (...).

        Parameters
        ----------
        shared : the covariance of pairs with a common record; a larger one gives a smaller
            variance.
        """
        drawn = matching_variance(self.kernel_variance, shared, self.records, self.matchings)
        return np.asarray(drawn + self.noise / self.pairs)


def exponential_moments(area: Floats) -> tuple[Floats, Floats]:
    """The chance that two positives beat a negative, and that a positive beats two negatives.

    ``A / (2 - A)`` and ``2 A^2 / (1 + A)``, exact where scores are exponentially distributed and
    close elsewhere (Hanley and McNeil 1982). They are the mean squares of ``1 - F^+`` over
    negatives and of ``F^-`` over positives.

    Examples
    --------
    >>> [float(square) for square in exponential_moments(np.array(0.5))]
    [0.3333333333333333, 0.3333333333333333]
    """
    return area / (2 - area), 2 * area**2 / (1 + area)


def area_shared_covariance(area: Floats, positives: Floats, records: int) -> Floats:
    """The covariance of the AUC's kernel at two pairs that share a record.

    The variance over records of the fraction of other records that a record wins or loses against:
    ``F^-`` times the fraction of the negatives for a positive, and so on.

    Parameters
    ----------
    area : the AUC, shape (...).
    positives : the number of positive records, same shape.
    records : n.
    """
    positive_fraction = positives / records
    lost, won = exponential_moments(area)
    squares = (
        positive_fraction
        * (1 - positive_fraction)
        * ((1 - positive_fraction) * won + positive_fraction * lost)
    )
    return np.maximum(squares - (2 * positive_fraction * (1 - positive_fraction) * area) ** 2, 0.0)


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
    filled: Floats = np.where(known, positives, n / 2)
    shared = np.minimum(area_shared_covariance(area, filled, n), sample.kernel_variance / 2)
    count_error = area * (n - 2 * filled) / np.where(known, mixed, 1.0) * class_error
    privacy = np.sqrt(sample.privacy_variance(shared) / pair_fraction**2 + count_error**2)
    warnings: tuple[str, ...] = ()
    if value.ndim == 0 and not known:
        warnings = (
            "not enough signal at this epsilon: the smaller class is estimated at "
            f"{np.minimum(positives, negatives):.1f} records, with a standard error of "
            f"{class_error:.1f}",
        )
    return ServerResult(
        value=value,
        privacy_error=np.where(known, privacy, np.nan),
        sampling_error=np.sqrt(plug_in_variance(value, filled, n - filled)),
        positives=np.asarray(positives),
        negatives=np.asarray(negatives),
        positives_error=np.full_like(value, class_error),
        warnings=warnings,
    )
