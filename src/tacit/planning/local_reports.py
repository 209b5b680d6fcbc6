"""Predictions for UStatistic and HierarchicalAUC, whose records report by themselves."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.metrics.trees import levels_of
from tacit.planning.forecast import Forecast, placement
from tacit.planning.scenario import Scenario, Shape
from tacit.privacy.symbols import SymbolResponse
from tacit.protocols.consistent_area import consistent_area, leaves_of
from tacit.protocols.hierarchical_auc import HierarchicalAUC
from tacit.protocols.level_counts import LevelCounts, privacy_variance
from tacit.protocols.pair_findings import area_findings
from tacit.protocols.pair_kernels import KERNELS, PairTables, opposite_classes
from tacit.protocols.ustatistic import UStatistic

Floats = NDArray[np.float64]

WHOLE = 1 + 1e-12
"""Keeps the sum of expected counts from falling below a whole number by rounding."""


def hierarchical_forecast(protocol: HierarchicalAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """The variance of the consistent area at the expected counts (docs, section 4b).

    The server takes the noise of its influences out of their squares; expected influences have
    none, so ``product`` enters once, as the second order.

    Raises
    ------
    ValueError : for the paper's traversal, which is not planned.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 40_000, 1.0)
    >>> found = hierarchical_forecast(HierarchicalAUC(1.0, 5), scenario, Shape(0.8))
    >>> round(found.standard_error, 3)
    0.026
    """
    if protocol.estimator != "consistent":
        raise ValueError(f"plans are for the consistent estimator, got {protocol.estimator!r}")
    height = protocol.height_for(scenario.clients)
    noise = protocol.report_noise(height)
    positives, negatives = scenario.counts(shape, 1 << height)
    classes = np.array([scenario.negatives, scenario.positives], dtype=np.float64)
    reports = np.repeat(classes[:, np.newaxis], height, axis=-1)
    counts = levels_of(np.stack([negatives, positives]))
    levels = LevelCounts(classes, counts, reports / (height if noise.sampled else 1), noise)
    leaves = leaves_of(levels)
    area = consistent_area(levels, leaves)
    alone = replace(area, product=np.zeros_like(area.product))
    first = float(privacy_variance(levels, alone, leaves))
    spread = first + float(area.product) + placement((positives, negatives))
    return Forecast(math.sqrt(spread), float(area.value) - shape.auc)


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
    >>> found = symbols_forecast(UStatistic("auc", 3.0, bins=8), scenario, Shape(0.8))
    >>> round(found.standard_error, 3)
    0.014
    """
    if protocol.kernel != "auc":
        raise ValueError(f"plans are for the kernel 'auc', got {protocol.kernel!r}")
    space = protocol.space(protocol.bins_for(scenario.clients))
    response = SymbolResponse(space.symbols, protocol.epsilon)
    positives, negatives = scenario.counts(shape, space.symbols // 2)
    held = np.concatenate([negatives, positives])
    replaced = response.replaced * scenario.records / response.symbols
    counts = (response.kept * held + replaced) * WHOLE
    tables, opposite = _tables(space.symbols // 2)
    found = area_findings(tables, opposite, response, counts)
    mixed = _pair_mean(opposite, held)
    kernel = (tables.means - float(found.value) * opposite) / mixed
    own, shared = response.covariance(counts)
    spread = np.diag(own) - shared[:, np.newaxis] - shared
    applied = kernel @ spread
    pairs = scenario.records * (scenario.records - 1.0)
    gradient = kernel @ held
    variance = 4 * gradient @ spread @ gradient + 2 * float(np.sum(applied * applied.T))
    smaller = min(scenario.positives, scenario.negatives)
    return Forecast(
        math.sqrt(max(variance, 0.0) / pairs**2 + placement((positives, negatives))),
        float(found.value) - shape.auc,
        smaller,
        float(found.positives_error),
    )


@lru_cache(maxsize=64)
def _tables(bins: int) -> tuple[PairTables, Floats]:
    """The kernel's values for pairs of symbols, and which pairs are of both classes."""
    space = UStatistic("auc", 1.0).space(bins)
    return PairTables.of(KERNELS["auc"], space), opposite_classes(space)


def _pair_mean(table: Floats, held: Floats) -> float:
    """The mean of a kernel without a diagonal over pairs of records."""
    total = held.sum()
    return float(held @ table @ held / (total * (total - 1)))
