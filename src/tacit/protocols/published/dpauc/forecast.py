"""Predictions for DPAUC as published: of flipped labels, whose cells the server sees."""

from __future__ import annotations

from tacit.privacy.local.response import response_variance
from tacit.protocol.declarations.forecast import Family, Forecast, Planning
from tacit.protocol.declarations.scenario import Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.dpauc.forecast import cells_forecast, expected_counts
from tacit.protocols.published.dpauc.noises import RandomisedResponse
from tacit.protocols.published.dpauc.protocol import PublishedDPAUC
from tacit.protocols.shared.trees.levels import CellNoise

CELLS = 100
"""The number of cells that a plan takes for flipped labels."""


def published_dpauc_forecast(
    protocol: PublishedDPAUC, scenario: Scenario, shape: Shape
) -> Forecast:
    """The variance formula of flipped labels, at the expected counts of the shape (section 2b).

    Raises
    ------
    ValueError : for noise on confusion counts, which is not planned.
    """
    if not protocol.responds:
        raise ValueError(f"plans are for {RandomisedResponse.word}, got {protocol.mechanism}")
    cells = expected_counts(protocol.scale, scenario, shape, protocol.edges)
    noise = CellNoise(response_variance(protocol.epsilon) * (cells[0] + cells[1]))
    return cells_forecast(cells, noise, protocol.adjacency, scenario, shape)


def published_dpauc_families(scenario: Scenario) -> list[Family]:
    """Cells of flipped labels."""
    flipped = PublishedDPAUC(scenario.epsilon, CELLS, RandomisedResponse(), "label")
    reused = (
        "the server sees every client's score histogram exactly, while the flipped labels serve "
        "later evaluations at no further cost"
    )
    return [Family((flipped,), (Trust.EACH,), reused)]


PLANNING = Planning.of_auc(published_dpauc_families, published_dpauc_forecast)
