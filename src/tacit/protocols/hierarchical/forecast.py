"""Predictions for HierarchicalAUC, whose records report one bit each."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from tacit.metrics.trees import levels_of
from tacit.protocol.declarations.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.hierarchical.estimate import (
    LevelCounts,
    consistent_area,
    consistent_counts,
    privacy_variance,
)
from tacit.protocols.hierarchical.protocol import HierarchicalAUC

BIT_HEIGHTS = (3, 4, 5, 6, 7, 8)
"""Heights that a plan compares."""


def hierarchical_forecast(protocol: HierarchicalAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """The variance of the consistent area at the expected counts (docs, section 4b).

    The server takes the noise of its influences out of their squares; expected influences have
    none, so ``product`` enters once, as the second order.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 40_000, 1.0)
    >>> forecast = hierarchical_forecast(HierarchicalAUC(1.0, 5), scenario, Shape(0.8))
    >>> round(forecast.standard_error, 3)
    0.038
    """
    height = protocol.height_for(round(scenario.records))
    noise = protocol.report_noise(height)
    positives, negatives = scenario.counts(shape, 1 << height, protocol.scale)
    classes = np.array([scenario.negatives, scenario.positives], dtype=np.float64)
    reports = np.repeat(classes[:, np.newaxis], height, axis=-1)
    counts = levels_of(np.stack([negatives, positives]))
    levels = LevelCounts(classes, counts, reports / (height if noise.sampled else 1), noise)
    leaves = consistent_counts(levels)
    area = consistent_area(levels, leaves)
    alone = replace(area, product=np.zeros_like(area.product))
    first = float(privacy_variance(levels, alone, leaves))
    variance = first + float(area.product) + placement((positives, negatives))
    return Forecast(math.sqrt(variance), float(area.value) - shape.auc)


def hierarchical_families(scenario: Scenario) -> list[Family]:
    """One family, which compares heights."""
    heights = (partial(HierarchicalAUC, scenario.epsilon, height) for height in BIT_HEIGHTS)
    return [
        Family(
            accepted(heights),
            (Trust.LOCAL,),
            "every record's label is shown to the server",
            tuned=True,
        )
    ]


PLANNING = Planning.of_auc(hierarchical_families, hierarchical_forecast)
