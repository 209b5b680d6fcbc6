"""Estimates from counts of randomised symbols: a mean over pairs, or an AUC, with errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.privacy.local.symbols import SymbolResponse
from tacit.protocols.shared.reports.pair_kernels import PairTables
from tacit.protocols.ustatistic.moments import PairEstimator
from tacit.results.server_result import ServerResult

Counts = NDArray[Any]


def mean_result(
    tables: PairTables, response: SymbolResponse, counts: Counts, limits: tuple[float, float]
) -> ServerResult:
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
    warnings: tuple[str, ...] = ()
    if value.ndim == 0:
        warnings = _cell_warnings(float(error), float(variation))
    return ServerResult(
        value=value,
        privacy_error=error,
        sampling_error=np.sqrt(estimator.sampling_variance(unit_weights)),
        positives=classless,
        negatives=classless,
        approximation_error=np.sqrt(variation),
        warnings=warnings,
        limits=limits,
    )


def area_result(
    tables: PairTables, opposite: Floats, response: SymbolResponse, counts: Counts
) -> ServerResult:
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
    warnings: tuple[str, ...] = ()
    if value.ndim == 0:
        warnings = _cell_warnings(float(privacy), float(variation) ** 2)
        warnings = (
            _signal_warnings(float(positives), float(negatives), float(class_error)) or warnings
        )
    return ServerResult(
        value=value,
        privacy_error=privacy,
        sampling_error=sampling,
        positives=positives,
        negatives=negatives,
        positives_error=class_error,
        approximation_error=variation,
        warnings=warnings,
    )


def _cell_variance(
    estimator: PairEstimator, tables: PairTables, read: Floats | float = 1.0
) -> Floats:
    """The error because positions within bins are unknown, as a variance of the U-statistic.

    Where densities are smooth, less than half of the change by the last halving of the bins
    remains. Crowded cells add a further error; ``read`` is the part of all pairs that the kernel
    reads.
    """
    if tables.change is None or tables.variation is None:
        return np.zeros(estimator.counts.shape[:-1])
    remaining = estimator.mean(tables.change) / 2
    return np.asarray(remaining**2 + estimator.crowding_variance(tables.variation, read))


def _cell_warnings(error: float, variation: float) -> tuple[str, ...]:
    if not math.sqrt(variation) > error:
        return ()
    return (
        "what the bins hide outweighs the privacy noise: use more bins, or a narrower public range",
    )


def _signal_warnings(positives: float, negatives: float, class_error: float) -> tuple[str, ...]:
    if min(positives, negatives) > 0:
        return ()
    return (
        f"not enough signal at this epsilon: the noisy class totals are {positives:.1f} and "
        f"{negatives:.1f}, with a standard error of {class_error:.1f}",
    )
