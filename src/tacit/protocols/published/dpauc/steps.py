"""Client steps of DPAUC as published: noisy confusion counts, and counts of flipped labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tacit.data.batches.ordering import client_order
from tacit.data.clients import Clients
from tacit.data.engines.stored import batch_of
from tacit.metrics.curves import counts_from_thresholds
from tacit.privacy.cost import Cost
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocols.shared.cell_counts import cell_counts, true_cell_counts
from tacit.protocols.shared.reports.flipped_labels import (
    every_client,
    flipped_in_order,
    flipped_labels,
    flipping_cost,
)

if TYPE_CHECKING:
    from tacit.protocols.published.dpauc.protocol import PublishedDPAUC


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
    settings: PublishedDPAUC = query.protocol
    placed = settings.on_scale(clients)
    positives, records = true_cell_counts(placed, settings.edges)
    reached = counts_from_thresholds(np.stack([positives, records - positives]).swapaxes(1, 2))
    totals = reached[..., :1]
    four = np.stack([reached[0], reached[1], (totals - reached)[1], (totals - reached)[0]])
    four = four.swapaxes(1, 2)
    return {"counts": four + noise.draw(settings.count_noise, four.shape)}


@step(cost=_response_cost)
def flipped_histograms(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send the exact cell counts of labels flipped once by randomised response.

    Epsilon at label adjacency, spent when the labels were flipped; the counts are post-processing.
    As Sun et al. 2022b warns, the number of records in a cell is exact: the server learns each
    client's score histogram, which label adjacency does not protect.
    """
    settings: PublishedDPAUC = query.protocol
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
