"""Estimates from counts of randomised symbols: a mean over pairs, or an AUC, with the errors of
their noise (Bell et al. 2020, section 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats
from tacit.local.pair_kernels import PairTables
from tacit.privacy.symbols import SymbolResponse
from tacit.protocol import devices

Counts = NDArray[Any]

MIN_CONCENTRATION = 4.0
"""Least ratio of a concentrated pair of cells' number of pairs to the mean number."""

COARSE_SHARE = 0.01
"""Least part of the pairs that a kernel reads at which two cells are concentrated too."""


@dataclass(frozen=True, eq=False)
class PairEstimator:
    """Sums over pairs of records, estimated from counts of their randomised symbols.

    Parameters
    ----------
    tables : symmetric kernels, each of shape (k, k).
    response : how symbols were randomised.
    counts : of reports, shape (..., k).
    """

    tables: tuple[Floats, ...]
    response: SymbolResponse
    counts: Counts

    @property
    def records(self) -> int:
        """n, the number of reports, the same for all replicates."""
        return int(self.counts.sum(axis=-1).flat[0])

    @property
    def debiased(self) -> Floats:
        """The debiased numbers of records with every symbol, h, shape (..., k)."""
        return self.response.debiased(self.counts)

    def mean(self, table: Floats) -> Floats:
        """The U-statistic of a table, unbiased over the noise, shape (...).

        The sum over pairs of reports of ``d' A d`` with ``d = (e_report - b 1) / q``, ``b = beta /
        k`` and ``q = 1 - beta`` (Bell et al. 2020, section 3): ``h' A h`` less the pairs of a
        report with itself, over ``n (n - 1)``. Multiplied out it is the mean of A over pairs of
        reports, less ``2 b`` times the mean of A's row sums over reports, plus ``b^2`` times A's
        sum, all over ``q^2``; so written, sums of integer kernels are exact.
        """
        n = self.records
        base, rows = self.response.replace_probability / self.response.symbols, table.sum(axis=1)
        paired = np.sum((self.counts @ table) * self.counts, axis=-1)
        paired = (paired - self.counts @ np.diagonal(table)) / (n * (n - 1))
        shifted = paired - 2 * base * (self.counts @ rows) / n + base**2 * rows.sum()
        return np.asarray(shifted / self.response.keep_probability**2)

    def privacy_variance(self, weights: Floats) -> Floats:
        """The noise variance of a weighted sum of the U-statistics about this data's, shape (...).

        With the noise D of the debiased counts, of covariance S, the error times ``n (n - 1)`` is
        ``2 D' A c`` (Hoeffding's projection) plus the sum over pairs of reports of ``D_i' A D_j``:
        variances ``4 c' A S A c`` and ``2 tr(A S A S)``, up to fractions of one record in n. The
        debiased h estimates c. Its noise adds ``4 tr(A S A S)`` to the first, which is
        subtracted, as far as the first stays at least zero.

        Parameters
        ----------
        weights : of the tables, shape (..., tables).
        """
        diagonal, shared = self.response.covariance(self.counts)
        gradient = self._applied(self.debiased, weights)
        first = 4 * self.response.variance(self.counts, gradient)
        rows = self._applied(np.ones_like(diagonal), weights)
        across = self._applied(shared, weights)
        traced = self._squared(diagonal, weights) - 4 * np.sum(rows * diagonal * across, axis=-1)
        traced = traced + 2 * np.sum(rows * shared, axis=-1) ** 2
        traced = traced + 2 * np.sum(rows, axis=-1) * np.sum(shared * across, axis=-1)
        second = 2 * np.maximum(traced, 0.0)
        pairs = float(self.records) * (self.records - 1)
        return np.asarray((np.maximum(first - 2 * second, 0.0) + second) / pairs**2)

    def sampling_variance(self, weights: Floats) -> Floats:
        """The variance of the exact statistic about its population's, plugged in, shape (...).

        ``2 / (n (n - 1)) (2 (n - 2) zeta_1 + zeta_2)`` (Bell et al. 2020, Eq. 3), with ``zeta_1``
        the variance of the kernel's mean given one record and ``zeta_2`` that of the kernel.
        """
        fractions = self.debiased / self.records
        conditional_mean = self._applied(fractions, weights)
        mean = np.sum(fractions * conditional_mean, axis=-1)
        single = np.maximum(np.sum(fractions * conditional_mean**2, axis=-1) - mean**2, 0.0)
        both = np.maximum(self._squared(fractions, weights) - mean**2, 0.0)
        n = float(self.records)
        return np.asarray(2 / (n * (n - 1)) * (2 * (n - 2) * single + both))

    def concentration_variance(self, variation: Floats, read: Floats | float = 1.0) -> Floats:
        """The error of concentrated pairs of cells, as a variance of the U-statistic, shape (...).

        Where cells hold more than ``MIN_CONCENTRATION`` times the pairs of records that such
        cells hold on average, or more than ``COARSE_SHARE`` of all that the kernel reads,
        their neighbours do not determine the densities inside them. The kernel's mean over
        the pairs of two such cells is then taken as uniform over the range that the
        cells leave open, of variance ``variation^2 / 12``, the same for both orders of the two.

        Parameters
        ----------
        variation : the range that two cells leave open, shape (k, k).
        read : the part of all pairs that the kernel reads, shape (...): for the AUC those of
            opposite classes.
        """
        fractions = np.maximum(self.debiased / self.records, 0.0)
        pairs = fractions[..., :, np.newaxis] * fractions[..., np.newaxis, :]
        mean_pairs = np.mean(pairs, axis=(-2, -1), where=variation > 0, keepdims=True)
        share = COARSE_SHARE * np.asarray(read)[..., np.newaxis, np.newaxis]
        least = np.minimum(MIN_CONCENTRATION * mean_pairs, share)
        concentrated = np.where(pairs > least, pairs * variation, 0.0)
        return np.sum(concentrated**2, axis=(-2, -1)) / 6

    def _applied(self, vectors: Floats, weights: Floats) -> Floats:
        """The weighted sum of the tables times each vector, shape (..., k)."""
        return np.asarray(
            sum(
                weights[..., index, np.newaxis] * (vectors @ table)
                for index, table in enumerate(self.tables)
            )
        )

    def _squared(self, vectors: Floats, weights: Floats) -> Floats:
        """``v' (A o A) v`` for the weighted sum A of the tables, shape (...)."""
        total = np.zeros(vectors.shape[:-1])
        for left, first in enumerate(self.tables):
            for right, second in enumerate(self.tables):
                product = np.sum((vectors @ (first * second)) * vectors, axis=-1)
                total = total + weights[..., left] * weights[..., right] * product
        return total


def symbol_counts(reply: tp.Reply, size: int) -> NDArray[np.int64]:
    """How often every symbol was reported, shape (..., size).

    Raises
    ------
    ValueError : for a symbol that the space does not have.
    DataError : for fewer than two records.
    """
    counts = devices.report_counts(reply, "symbols", size)
    records = int(counts.sum(axis=-1).flat[0])
    if records < 2:
        raise tp.DataError(f"pairs need at least two records, got {records}")
    return counts


def mean_result(
    tables: PairTables, response: SymbolResponse, counts: Counts, limits: tuple[float, float]
) -> tp.ServerResult:
    """The mean of a kernel over all pairs of records.

    Parameters
    ----------
    tables : the kernel's values for pairs of symbols.
    response : how symbols were randomised.
    counts : of reports, shape (..., k).
    limits : the least and the largest value that the mean can have.
    """
    estimator = PairEstimator((tables.means,), response, counts)
    unit_weights = np.ones((*counts.shape[:-1], 1))
    value = estimator.mean(tables.means)
    error = np.sqrt(estimator.privacy_variance(unit_weights))
    variation = _cell_variance(estimator, tables)
    classless = np.full_like(value, np.nan)
    return tp.ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.sqrt(estimator.sampling_variance(unit_weights)),
        positives=classless,
        negatives=classless,
        approximation_error=np.sqrt(variation),
        warnings=_cell_warnings(error, variation),
        limits=limits,
    )


def area_result(
    tables: PairTables, opposite: Floats, response: SymbolResponse, counts: Counts
) -> tp.ServerResult:
    """The AUC: pairs that the positive wins, over the pairs of both classes.

    Both are U-statistics of the same reports, ``AUC = U n (n - 1) / (2 P N)`` with ``P N``
    estimated without bias. The error of their quotient is to first order that of the kernel
    ``(won - AUC opposite) / U_opposite``.

    Parameters
    ----------
    tables : the AUC's kernel for pairs of symbols; negatives' symbols come first.
    opposite : 1 for pairs of symbols of both classes, shape (k, k).
    response, counts : as in ``mean_result``.
    """
    estimator = PairEstimator((tables.means, opposite), response, counts)
    won, pairs = (estimator.mean(table) for table in estimator.tables)
    positive = np.repeat([0.0, 1.0], counts.shape[-1] // 2)
    positives = estimator.debiased @ positive
    negatives = estimator.records - positives
    class_error = np.sqrt(response.variance(counts, positive))
    known = (pairs > 0) & (positives > 0) & (negatives > 0)
    pair_fraction = np.where(known, pairs, 1.0)
    value = np.where(known, won / pair_fraction, np.nan)
    weights = np.stack(
        [1 / pair_fraction, -np.clip(np.nan_to_num(value), 0, 1) / pair_fraction], axis=-1
    )
    errors = [
        estimator.privacy_variance(weights),
        estimator.sampling_variance(weights),
        _cell_variance(estimator, tables, pair_fraction) / pair_fraction**2,
    ]
    privacy, sampling, variation = (
        np.where(known, np.sqrt(variance), np.nan) for variance in errors
    )
    unclear = _signal_warnings(positives, negatives, class_error)
    return tp.ServerResult(
        value=value,
        privacy_error=privacy,
        sampling_error=sampling,
        positives=positives,
        negatives=negatives,
        positives_error=class_error,
        approximation_error=variation,
        warnings=unclear or _cell_warnings(privacy, np.square(variation)),
    )


def _cell_variance(
    estimator: PairEstimator, tables: PairTables, read: Floats | float = 1.0
) -> Floats:
    """The error because positions within bins are unknown, as a variance of the U-statistic.

    Where densities are smooth, less than half of the change by the last halving of the bins
    remains. Concentrated cells add a further error; ``read`` is the part of all pairs that the
    kernel reads.
    """
    if tables.change is None or tables.variation is None:
        return np.zeros(estimator.counts.shape[:-1])
    remaining = estimator.mean(tables.change) / 2
    return np.asarray(remaining**2 + estimator.concentration_variance(tables.variation, read))


def _cell_warnings(error: Floats, variation: Floats) -> tuple[str, ...]:
    """What a single run says of its bins."""
    if error.ndim or not math.sqrt(variation) > error:
        return ()
    return (
        "what the bins hide outweighs the privacy noise: use more bins, or a narrower public range",
    )


def _signal_warnings(positives: Floats, negatives: Floats, class_error: Floats) -> tuple[str, ...]:
    """What a single run says of class sizes that are lost in noise."""
    if positives.ndim or min(positives, negatives) > 0:
        return ()
    return (
        f"not enough signal at this epsilon: the noisy class totals are {positives:.1f} and "
        f"{negatives:.1f}, with a standard error of {class_error:.1f}",
    )
