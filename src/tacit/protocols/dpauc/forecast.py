"""Predictions for DPAUC, whose server sees noisy counts in score cells."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tacit.metrics.curves import cell_area, density_correction
from tacit.privacy.local.response import response_variance
from tacit.protocol.forecast import Family, Forecast, Planning, accepted, placement
from tacit.protocol.scenario import Scenario, Shape
from tacit.protocol.trust import Trust
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.shared.cells import exchange_variance, independent_variance
from tacit.protocols.shared.levels import CellNoise
from tacit.protocols.shared.rank_noise import RESPONSE

CELLS = (10, 20, 50, 100, 200, 400)
"""Numbers of cells that a plan compares."""

FLIPPED_CELLS = 100
"""The number of cells that a plan takes for flipped labels."""


def dpauc_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """The variance formulas of noisy histograms, at the expected counts of the shape.

    Source: docs, sections 2b and 2c. The bias is what the area of expected counts, with densities
    linear inside cells, misses of the shape's AUC.

    Raises
    ------
    ValueError : for the paper's noisy confusion counts, which are not planned.

    Examples
    --------
    >>> forecast = dpauc_forecast(DPAUC(1.0, 50), Scenario(40_000, 4_000, 10, 1.0), Shape(0.8))
    >>> round(forecast.standard_error, 4)
    0.0017
    """
    if protocol.mechanism not in ("histogram", RESPONSE):
        raise ValueError(f"plans are for histogram and {RESPONSE}, got {protocol.mechanism!r}")
    cells = scenario.counts(shape, protocol.edges.size)
    if protocol.mechanism == RESPONSE:
        noise = CellNoise(response_variance(protocol.epsilon) * (cells[0] + cells[1]))
    else:
        noise = protocol.levels.noise(scenario.clients, protocol.record_distance)
    variance_of = independent_variance if protocol.adjacency != "label" else exchange_variance
    value = float(cell_area(*cells) + density_correction(*cells))
    return Forecast(
        math.sqrt(float(variance_of(*cells, noise)) + placement(cells, corrected=True)),
        value - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(noise.total),
    )


def dpauc_families(scenario: Scenario) -> list[Family]:
    """Noisy cells at every adjacency, and cells of flipped labels."""
    flipped = DPAUC(scenario.epsilon, FLIPPED_CELLS, RESPONSE, adjacency="label")
    reused = (
        "the server sees every client's score histogram exactly, while the flipped labels serve "
        "later evaluations at no further cost"
    )
    noise = "every client adds noise of its own, so the error grows with the number of clients"
    return [
        _noisy_cells(scenario, "record", noise),
        _noisy_cells(scenario, "replace", noise),
        _noisy_cells(scenario, "label", "a record's score is not hidden"),
        Family((flipped,), (Trust.EACH,), reused),
    ]


def _noisy_cells(scenario: Scenario, adjacency: Any, given_up: str) -> Family:
    made = (partial(DPAUC, scenario.epsilon, cells, adjacency=adjacency) for cells in CELLS)
    return Family(accepted(made), (Trust.EACH,), given_up)


PLANNING = Planning.of_auc(dpauc_families, dpauc_forecast)
