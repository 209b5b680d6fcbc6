"""Predictions for UStatistic, whose records report randomised symbols."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from tacit.arrays import Floats
from tacit.privacy.local.symbols import SymbolResponse
from tacit.protocol.declarations.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.shared.reports.pair_kernels import PairTables, opposite_classes
from tacit.protocols.ustatistic.estimate import area_result
from tacit.protocols.ustatistic.kernels import Area, Range
from tacit.protocols.ustatistic.protocol import UStatistic

BINS = (2, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of bins that a plan compares."""

ROUNDING_SLACK = 1 + 1e-12
"""Factor on expected counts: their sum is not below a whole number after rounding."""


def symbols_forecast(protocol: UStatistic, scenario: Scenario, shape: Shape) -> Forecast:
    """The variance of the AUC as a quotient of U-statistics of randomised symbols (section 4a).

    With S the covariance of the debiased counts h and A the kernel of the quotient, ``4 h' A S A h
    + 2 tr(A S A S)`` over ``(n (n - 1))^2``, at the expected counts.

    Raises
    ------
    ValueError : for another kernel than the AUC's.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 40_000, 3.0)
    >>> symbols = UStatistic(Area(Range(bins=8)), 3.0)
    >>> forecast = symbols_forecast(symbols, scenario, Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.014
    """
    if not isinstance(protocol.kernel, Area):
        raise ValueError(f"plans are for the kernel 'auc', got {str(protocol.kernel)!r}")
    space = protocol.space(protocol.bins_for(round(scenario.records)))
    response = SymbolResponse(space.symbols, protocol.epsilon)
    positives, negatives = scenario.counts(shape, space.symbols // 2, protocol.values_axis.scale)
    expected = np.concatenate([negatives, positives])
    replaced = response.replace_probability * scenario.records / response.symbols
    counts = (response.keep_probability * expected + replaced) * ROUNDING_SLACK
    tables, opposite = _tables(space.symbols // 2)
    result = area_result(tables, opposite, response, counts)
    mixed = _pair_mean(opposite, expected)
    kernel = (tables.means - float(result.value) * opposite) / mixed
    diagonal, shared = response.covariance(counts)
    covariance = np.diag(diagonal) - shared[:, np.newaxis] - shared
    applied = kernel @ covariance
    pairs = scenario.records * (scenario.records - 1.0)
    gradient = kernel @ expected
    variance = 4 * gradient @ covariance @ gradient + 2 * float(np.sum(applied * applied.T))
    smaller = min(scenario.positives, scenario.negatives)
    return Forecast(
        math.sqrt(max(variance, 0.0) / pairs**2 + placement((positives, negatives))),
        float(result.value) - shape.auc,
        smaller,
        float(result.positives_error),
    )


def symbols_families(scenario: Scenario) -> list[Family]:
    """One family, which compares numbers of bins."""
    symbols = (partial(UStatistic, Area(Range(bins=bins)), scenario.epsilon) for bins in BINS)
    return [
        Family(
            accepted(symbols),
            (Trust.LOCAL, Trust.EACH),
            "there is no curve, only the AUC",
            tuned=True,
        )
    ]


@lru_cache(maxsize=64)
def _tables(bins: int) -> tuple[PairTables, Floats]:
    """The kernel's values for pairs of symbols, and which pairs are of both classes."""
    space = UStatistic("auc", 1.0).space(bins)
    return PairTables.of(Area().pair, space), opposite_classes(space)


def _pair_mean(table: Floats, record_counts: Floats) -> float:
    """The mean of a kernel without a diagonal over pairs of records."""
    total = record_counts.sum()
    return float(record_counts @ table @ record_counts / (total * (total - 1)))


PLANNING = Planning.of_auc(symbols_families, symbols_forecast)
