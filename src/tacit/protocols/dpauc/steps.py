"""Client steps of DPAUC: noisy confusion counts, noisy histograms, and those of flipped labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.batches.ordering import client_order
from tacit.data.clients import Clients
from tacit.data.engines.stored import batch_of
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.cost import Cost
from tacit.privacy.mechanisms.gaussian import Gaussian
from tacit.privacy.mechanisms.interface import Mechanism
from tacit.privacy.mechanisms.laplace import DiscreteLaplace, Laplace
from tacit.privacy.mechanisms.response import RandomisedResponse
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, Step, step
from tacit.protocols.dpauc.second_round import agreed_cells, agreed_part
from tacit.protocols.shared.cell_counts import cell_counts, true_cell_counts
from tacit.protocols.shared.published_knots import placed_on, published_scale
from tacit.protocols.shared.reports.flipped_labels import (
    every_client,
    flipped_in_order,
    flipped_labels,
    flipping_cost,
)
from tacit.protocols.shared.trees.levels import Levels

if TYPE_CHECKING:
    from tacit.protocols.dpauc.protocol import DPAUC


def _full_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    guarantee: Cost = query.protocol.guarantee
    return guarantee


def _response_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    return flipping_cost(clients, query.protocol.epsilon, state, every_client(clients))


@step(cost=_full_cost)
def noisy_confusion_counts(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send TP, FP, TN and FN at every threshold, each with noise (Sun et al. 2022b, Methods).

    At a threshold a record counts in exactly one of the four. One label flip therefore changes two
    of them by one, a replaced record at most two, an added or removed record one: over T thresholds
    the L1 distance is 2T, 2T and T, and the squared L2 distance the same. Laplace noise of scale
    ``distance / epsilon``, or Gaussian noise of the analytic calibration for the L2 distance, gives
    the declared guarantee; the paper's accounting charges 4T, which bounds all three.

    The server learns the 4T noisy counts of each client.
    """
    settings: DPAUC = query.protocol
    placed = settings.on_scale(clients)
    positives, records = true_cell_counts(placed, settings.edges)
    reached = counts_from_thresholds(np.stack([positives, records - positives]).swapaxes(1, 2))
    totals = reached[..., :1]
    four = np.stack([reached[0], reached[1], (totals - reached)[1], (totals - reached)[0]])
    four = four.swapaxes(1, 2)
    return {"counts": four + noise.draw(settings.count_noise, four.shape)}


@step(cost=_full_cost)
def noisy_histograms(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the numbers of positives and negatives in cells and groups of cells, with noise.

    A record sits in one cell, and its group, of one class: adding or removing it changes one count
    of each level by one, and replacing it at most two. Discrete Laplace noise of scale
    ``sensitivity / part`` on every count costs that level's part of epsilon, by the Laplace
    mechanism on the integers, and both levels together epsilon. At label adjacency the number of
    records in a cell is public and sent as it is; a label flip changes one positive count of each
    level by one.

    The server learns the noisy counts of each client's cells and groups.
    """
    settings: DPAUC = query.protocol
    placed = settings.on_scale(clients)
    return _noisy_counts(placed, settings, settings.levels, settings.edges, noise)


def _noisy_counts(
    placed: Clients, settings: DPAUC, levels: Levels, edges: Floats, noise: NoiseSource
) -> dict[str, NDArray[np.int64]]:
    """The counts of both levels with their noise; at label adjacency those of positives only."""
    labelled = settings.adjacency == "label"
    positives, records = true_cell_counts(placed, edges)
    cells = positives if labelled else np.stack([positives, records - positives])
    noisy = {"cells": cells + _level_noise(settings, levels.cell_epsilon, cells, noise)}
    if levels.groups:
        groups = np.add.reduceat(cells, levels.starts, axis=-2)
        noisy["groups"] = groups + _level_noise(settings, levels.group_epsilon, groups, noise)
    return noisy | {"records": records} if labelled else noisy


def _level_noise(
    settings: DPAUC, epsilon: float, counts: NDArray[np.int64], noise: NoiseSource
) -> NDArray[np.int64]:
    drawn: NDArray[np.int64] = noise.draw(
        DiscreteLaplace(settings.record_distance, epsilon), counts.shape
    )
    return drawn


def _look_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    settings: DPAUC = query.protocol
    return settings.cost_of(agreed_part(query, settings.look_menu))


@step(cost=_look_cost)
def noisy_looks(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send a histogram as ``noisy_histograms`` does, for a part of epsilon.

    The query says which part, and how many cells, both of those that the settings name, and perhaps
    the knots between which the cells lie; whatever these are, a record counts in one cell. From
    part and cells the levels follow: cells and class totals, or, for the part that ends the run
    after the first look, cells and the groups that suit them. Discrete Laplace noise of scale
    ``sensitivity / level's part`` on every count costs that level's part, and both levels together
    the part that the query says. All parts of a run add up to at most epsilon
    (``noisy_influences``).

    The server learns the noisy counts of each client's cells and groups.

    Raises
    ------
    DataError : for a score outside the range of its unit.
    ValueError : for a part or a number of cells that was not agreed, and for knots that do not
        bound so many cells.
    """
    settings: DPAUC = query.protocol
    levels = settings.levels_for(agreed_part(query, settings.look_menu), agreed_cells(query))
    placed = placed_on(published_scale(query, levels.cells), settings, clients)
    edges = np.arange(levels.cells) / levels.cells
    return _noisy_counts(placed, settings, levels, edges, noise)


@step(cost=_response_cost)
def flipped_histograms(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the exact cell counts of labels flipped once by randomised response.

    Epsilon at label adjacency, spent when the labels were flipped; the counts are post-processing.
    As Sun et al. 2022b warns, the number of records in a cell is exact: the server learns each
    client's score histogram, which label adjacency does not protect.
    """
    settings: DPAUC = query.protocol
    asked = (clients, settings.epsilon, noise, state, every_client(clients))
    if clients.ranking is None:
        counts = cell_counts(settings.on_scale(clients), settings.edges, flipped_labels(*asked))
        return {"positives": counts[0], "records": counts[1]}
    settings.check_range(clients)
    positives, records = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.int64)
    for listed, flipped in flipped_in_order(clients.ranking, *asked):
        batch = batch_of(listed.scores, listed.labels, listed.whose, clients.count)
        by_client = flipped[..., client_order(listed.whose, clients.count)]
        more = cell_counts(settings.on_scale(batch), settings.edges, by_client)
        positives, records = positives + more[0], records + more[1]
    return {"positives": positives, "records": records}


STEPS: dict[type[Mechanism], Step] = {
    DiscreteLaplace: noisy_histograms,
    Laplace: noisy_confusion_counts,
    Gaussian: noisy_confusion_counts,
    RandomisedResponse: flipped_histograms,
}
"""The step of each mechanism."""
