"""What the server of DPAUC asks for, and what it concludes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.protocol import releases
from tacit.protocol.conversation import Conversation
from tacit.protocols.dpauc import steps
from tacit.protocols.shared.cells import exchange_variance, independent_variance, result_from_cells
from tacit.protocols.shared.site_figures import ClientCells, has_sites, sites_of
from tacit.protocols.shared.trees.levels import CellNoise, Levels
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC


def rounds(protocol: DPAUC, clients: int) -> Conversation:
    """Noisy counts up."""
    sums = yield from releases.ask(steps.noisy_histograms, protocol, clients)
    return _from_histogram(protocol, sums, protocol.levels, protocol.edge_scores)


def _from_histogram(
    protocol: DPAUC, sums: releases.Sums, levels: Levels, edges: Floats
) -> ServerResult:
    """The area of the consistent cells, whose lower edges are these scores."""
    clients = sums.answered
    drawn = levels.noise(clients, protocol.record_distance)
    groups = sums["groups"] if levels.groups else np.zeros(0)
    cells = drawn.reconciled(sums["cells"], groups)
    if protocol.adjacency == "label":
        return from_exchanged(protocol, cells, sums["records"], drawn)
    positives, negatives = cells[..., 0, :], cells[..., 1, :]
    variance = independent_variance(positives, negatives, drawn)
    result = result_from_cells(
        edges, (positives, negatives), variance, drawn, protocol.scale == EVEN
    )
    influences = tuple(map(np.nan_to_num, curves.cell_influences(positives, negatives)))
    normal = np.asarray(result.approximation_error)
    law = levels.law(influences, clients, protocol.record_distance, normal)
    result = replace(result, law=law)
    if cells.ndim > 2 or not has_sites(clients):
        return result
    return replace(result, sites=_sites(protocol, sums.by_client(), levels, edges))


def _sites(protocol: DPAUC, sums: releases.Sums, levels: Levels, edges: Floats) -> Sites:
    """The figures of every client, from the noisy counts that it sent."""
    noise = levels.noise(1, protocol.record_distance)
    cells = noise.reconciled(sums["cells"], sums["groups"] if levels.groups else np.zeros(0))
    classes = cells[:, 0], cells[:, 1]
    variance = independent_variance(*classes, noise)
    result = result_from_cells(edges, classes, variance, noise, protocol.scale == EVEN)
    by_client = ClientCells(*classes, lambda weights: float(noise.variance_of(weights)))
    return sites_of(result, by_client, ScoreAxis(protocol.score_scale, protocol.unit))


def from_exchanged(
    protocol: Any, positives: Floats, records: Floats, noise: CellNoise
) -> ServerResult:
    """Noise that moves a record from one class to the other; cell totals are exact."""
    cells = positives, records - positives
    variance = exchange_variance(*cells, noise)
    return result_from_cells(protocol.edge_scores, cells, variance, noise, protocol.scale == EVEN)
