"""Predictions for protocols whose server sees counts in score cells: DPAUC and EncryptedAUC."""

from __future__ import annotations

import math

from tacit.metrics.curves import cell_area, density_correction
from tacit.planning.forecast import Forecast, placement
from tacit.planning.scenario import Scenario, Shape
from tacit.privacy.response import response_variance
from tacit.protocols.cells import exchange_variance, independent_variance
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.encrypted_auc import EncryptedAUC
from tacit.protocols.encrypted_packing import Scale
from tacit.protocols.levels import CellNoise
from tacit.protocols.rank_noise import RESPONSE


def dpauc_forecast(protocol: DPAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """The variance formulas of noisy histograms, at the expected counts of the shape.

    Source: docs, sections 2b and 2c. The bias is what the area of expected counts, with densities
    linear inside cells, misses of the shape's AUC.

    Raises
    ------
    ValueError : for the paper's noisy confusion counts, which are not planned.

    Examples
    --------
    >>> found = dpauc_forecast(DPAUC(1.0, 50), Scenario(40_000, 4_000, 10, 1.0), Shape(0.8))
    >>> round(found.standard_error, 4)
    0.0017
    """
    if protocol.mechanism not in ("histogram", RESPONSE):
        raise ValueError(f"plans are for histogram and {RESPONSE}, got {protocol.mechanism!r}")
    cells = scenario.counts(shape, protocol.edges.size)
    if protocol.mechanism == RESPONSE:
        noise = CellNoise(response_variance(protocol.epsilon) * (cells[0] + cells[1]))
    else:
        noise = protocol.levels.noise(scenario.clients, protocol.record_distance)
    spread = independent_variance if protocol.adjacency != "label" else exchange_variance
    value = float(cell_area(*cells) + density_correction(*cells))
    return Forecast(
        math.sqrt(float(spread(*cells, noise)) + placement(cells, corrected=True)),
        value - shape.auc,
        min(scenario.positives, scenario.negatives),
        math.sqrt(noise.total),
    )


def encrypted_forecast(protocol: EncryptedAUC, scenario: Scenario, shape: Shape) -> Forecast:
    """No noise: straight lines between thresholds, and records' places between them.

    This is the error that a shape leads one to expect. The interval of a result assumes no shape
    and is the certain range, ``sum p n / (2 P N)`` on either side.

    Answers are refused where ``2 P N`` is below a 1024th of the agreed number of records squared
    (``encrypted_packing.Scale``).
    """
    cells = scenario.counts(shape, protocol.thresholds - 1)
    scale = Scale.fitting(protocol.most_records)
    small = 2 * scenario.positives * scenario.negatives < protocol.most_records**2 / 1024
    if small and scale.width > 1:
        return Forecast(math.inf)
    return Forecast(math.sqrt(placement(cells)), float(cell_area(*cells)) - shape.auc)
