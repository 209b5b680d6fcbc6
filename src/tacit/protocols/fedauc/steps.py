"""What clients of FedAUC answer: their scores, and noisy sums of the ranks of their positives."""

from __future__ import annotations

import numpy as np

from tacit.arrays import Integers
from tacit.data.batches.ranked import StoredRanks
from tacit.data.batches.sorting import sorted_scores
from tacit.data.clients import Clients
from tacit.privacy.cost import Cost, worst_case
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply, step
from tacit.protocols.fedauc.requests import RankRequest
from tacit.protocols.fedauc.sums import (
    largest_distance,
    pair_of_clients,
    pair_of_sums,
    sums_by_client,
)
from tacit.protocols.shared.reports.flipped_labels import (
    flipped_in_order,
    flipped_labels,
    flipping_cost,
)


@step()
def share_scores(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    """Send the scores, ascending within each client.

    Spends nothing at label adjacency, where scores are public. The server learns each client's
    multiset of scores; the order says nothing about records, as shuffling would (Sun et al. 2022a,
    Alg. 2).
    """
    return {"scores": sorted_scores(clients)}


def _pair_cost(clients: Clients, query: Query, state: ClientState) -> Cost:
    request = RankRequest.of(clients, query)
    costs = [] if request.respond.all() else [request.mechanism.cost]
    return worst_case(
        [*costs, flipping_cost(clients, request.mechanism.epsilon, state, request.respond)]
    )


@step(cost=_pair_cost)
def noisy_rank_sums(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    """Send a noisy count of positives and a noisy residual rank sum.

    Spends (epsilon, delta) of ``query.broadcast["noise"]`` at label adjacency: flipping one label
    moves the count by 1 and ``2 * sum((rank - pivot) * label)`` by at most ``max |2 rank - 2
    pivot|``, which the client computes from the ranks and pivot it uses. It refuses ranks, pivots,
    fractions and mechanisms that are not of the agreed kind (``RankRequest``), and ranks whose sum
    would wrap or be rounded (``check_sums``), so the guarantee does not depend on the server's
    choice. A client that responds flips every label once at epsilon and sends the exact sums of the
    flipped labels, which is post-processing; it stores the flipped labels, and later sums of
    the same records in their order cost nothing. Source: Sun et al. 2022a, Algorithms 1 and 4,
    section 5.

    The server learns the two noisy numbers of each client.
    """
    request = RankRequest.of(clients, query, noise)
    mechanism, ranks, pivot = request.mechanism, request.ranks, request.pivot
    fraction, respond = request.fraction, request.respond
    count, residual = pair_of_clients(clients, ranks, pivot)
    shape = (clients.count,)
    if not respond.all():
        sensitivity = np.maximum(largest_distance(ranks, pivot), request.sensitivity)
        noisy_count = mechanism.noisy_count(noise, count, fraction, shape)
        noisy_residual = mechanism.noisy_residual(noise, residual, sensitivity, fraction, shape)
        if not respond.any():
            return {"positives": noisy_count, "residuals": noisy_residual}
    answered = flipped_pair(request, clients, noise, state)
    if respond.all():
        return {"positives": answered[0], "residuals": answered[1]}
    return {
        "positives": np.where(respond, answered[0], noisy_count),
        "residuals": np.where(respond, answered[1], noisy_residual),
    }


def flipped_pair(
    request: RankRequest, clients: Clients, noise: NoiseSource, state: ClientState
) -> tuple[Integers, Integers]:
    """``pair_of_sums`` of flipped labels; by passes of an engine where ranks are its own."""
    ranks, pivot, respond = request.ranks, request.pivot, request.respond
    epsilon, ranking = request.mechanism.epsilon, clients.ranking
    if ranking is None or not isinstance(ranks, StoredRanks):
        flipped = flipped_labels(clients, epsilon, noise, state, respond)
        return pair_of_sums(ranks, flipped[..., clients.ascending], pivot)
    zeros = np.zeros((*noise.full_shape(()), clients.count), dtype=np.int64)
    count, rank_sum = zeros, zeros
    for listed, labels in flipped_in_order(ranking, clients, epsilon, noise, state, respond):
        count = count + sums_by_client(labels, listed.whose, clients.count)
        rank_sum = rank_sum + sums_by_client(labels * listed.ranks, listed.whose, clients.count)
    return count, rank_sum - pivot * count
