"""Predictions for DPAUC, whose server sees noisy counts in score cells."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.protocol.declarations import forecast
from tacit.protocol.declarations.scenario import Scenario, Shape, planned_scale
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.shared.cells import area_variance
from tacit.protocols.shared.trees.levels import CellNoise

CELLS = (10, 20, 50, 100, 200, 400)
"""Numbers of cells that a plan compares."""


def dpauc_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> forecast.Forecast:
    """The variance formulas of noisy histograms, at the expected counts of the shape.

    Source: docs, sections 2b and 2c. The bias is what the area of expected counts, with densities
    linear inside cells, misses of the shape's AUC.

    Examples
    --------
    >>> scenario = Scenario(40_000, 4_000, 10, 1.0)
    >>> round(dpauc_forecast(DPAUC(1.0), scenario, Shape(0.8)).standard_error, 4)
    0.0033
    """
    levels = protocol.levels
    cells = scenario.counts(shape, levels.cells, planned_scale(protocol.scale))
    noise = levels.noise(scenario.clients, protocol.record_distance)
    return cells_forecast(cells, noise, protocol.adjacency, scenario, shape)


def cells_forecast(
    cells: tuple[Floats, Floats], noise: CellNoise, adjacency: str, scenario: Scenario, shape: Shape
) -> forecast.Forecast:
    """The error of the area of expected positives and negatives in cells with this noise."""
    value = float(curves.cell_area(*cells) + curves.density_correction(*cells))
    variance = float(area_variance(adjacency, cells, noise))
    return forecast.Forecast(
        math.sqrt(variance + forecast.placement(cells, corrected=True)),
        value - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(noise.total),
    )


def dpauc_families(scenario: Scenario) -> list[forecast.Family]:
    """Noisy cells at every adjacency."""
    noise = "every client adds noise of its own, so the error grows with the number of clients"
    return [
        _noisy_cells(scenario, "record", noise),
        _noisy_cells(scenario, "replace", noise),
        _noisy_cells(scenario, "label", "a record's score is not hidden"),
    ]


def _noisy_cells(scenario: Scenario, adjacency: Any, given_up: str) -> forecast.Family:
    kind = partial(DPAUC, scenario.epsilon, adjacency=adjacency)
    made = [partial(kind, cells) for cells in CELLS]
    return forecast.Family(forecast.accepted(made), (Trust.EACH,), given_up)


PLANNING = forecast.Planning.of_figure(dpauc_families, dpauc_forecast)
