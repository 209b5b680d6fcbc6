"""What a server asks for and concludes: ranked scores, a first round, noisy rank sums."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from tacit.arrays import Floats
from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import doubled_ranks
from tacit.data.scaling.scales import ScaleDifference, clients_apart
from tacit.metrics.errors.laws import ErrorLaw
from tacit.protocol.conversation import Conversation, Query, Reply, View
from tacit.protocols.fedauc.allocation import (
    Allocation,
    RankGeometry,
    adaptive_allocation,
    first_round_fraction,
    influence_allocation,
    influence_centre,
    numerator_law,
    predicted_variance,
    prior_from,
    vague_prior,
)
from tacit.protocols.fedauc.estimate import area_of_sums, result_from_pairs, totals_of_pairs
from tacit.protocols.fedauc.hidden_ranks.mpc import (
    hidden_geometry,
    middle_allocation,
    noisy_hidden_rank_sums,
    offer_sizes,
    rank_together,
)
from tacit.protocols.fedauc.steps import noisy_rank_sums, share_scores
from tacit.protocols.shared.sums.rank_noise import RankNoise
from tacit.results.server_result import ServerResult

FEW_CLIENTS = 32
"""Largest number of clients whose noise is not taken as normal."""


def ranked_scores(
    protocol: Any,
) -> Generator[Query, Reply, tuple[Ragged[np.int64], ScaleDifference | None]]:
    """Scores up: their doubled ranks, and which clients' scores are of another scale.

    Raises
    ------
    ValueError : for fewer than two records.
    """
    sent = (yield Query(share_scores, protocol))["scores"]
    if not isinstance(sent, Ragged):
        raise TypeError("scores must be ragged")
    ranks, records = doubled_ranks(sent), int(sent.offsets[-1])
    if records < 2:
        raise ValueError(f"an AUC needs at least two records, got {records}")
    return ranks, clients_apart(sent)


def result_with_hidden_ranks(protocol: Any, alpha: float) -> Conversation:
    """Sizes up, ranks among the clients, noisy pairs up: the server sees no score and no rank."""
    offer = yield Query(offer_sizes, protocol)
    geometry = hidden_geometry(np.asarray(offer["records"]))
    if geometry.records < 2:
        raise ValueError(f"an AUC needs at least two records, got {geometry.records}")
    yield Query(rank_together, protocol, view=View.MPC)
    noise, allocation = protocol.rank_noise, middle_allocation(geometry, 1.0 - alpha)
    shared = {"noise": noise, "records": geometry.records, "share": 1.0 - alpha}
    reply = yield Query(noisy_hidden_rank_sums, protocol, shared)
    sums = totals_of_pairs(geometry, noise, allocation, reply)
    return result_of_sums(geometry, noise, allocation, sums)


def divided_by_influence(
    protocol: Any, ranks: Ragged[np.int64], geometry: RankGeometry
) -> Generator[Query, Reply, tuple[RankNoise, Allocation]]:
    """Noise and allocation of the main round, after a first round if one is worth its price."""
    whole: RankNoise = protocol.rank_noise
    fraction = first_round_fraction(geometry, whole.mechanism, whole.epsilon, whole.delta)
    prior = vague_prior(geometry.records)
    if fraction:
        first = RankNoise(whole.mechanism, fraction * whole.epsilon, fraction * whole.delta)
        allocation = adaptive_allocation(geometry, first)
        sums = yield from noisy_sums(protocol, ranks, geometry, first, allocation)
        positives, area = area_of_sums(geometry.records, *sums)
        prior = prior_from(geometry, first, allocation, positives, np.nan_to_num(area, nan=0.5))
    noise = RankNoise(
        whole.mechanism, whole.epsilon - fraction * whole.epsilon, whole.delta * (1 - fraction)
    )
    return noise, influence_allocation(geometry, noise, prior)


def noisy_sums(
    protocol: Any,
    ranks: Ragged[np.int64],
    geometry: RankGeometry,
    noise: RankNoise,
    allocation: Allocation,
    sensitivity: int = 0,
) -> Generator[Query, Reply, tuple[Floats, Floats]]:
    """Noisy totals of the positives and of their ranks, measured from the middle rank.

    Parameters
    ----------
    protocol, ranks, geometry, noise, allocation : what every client needs.
    sensitivity : the least that the noise of a doubled rank sum assumes.
    """
    reply = yield Query(
        noisy_rank_sums,
        protocol,
        broadcast={"noise": noise, "sensitivity": sensitivity},
        per_client={
            "ranks": ranks,
            "pivot": allocation.doubled_pivot,
            "share": allocation.fraction,
            "respond": allocation.respond,
        },
    )
    return totals_of_pairs(geometry, noise, allocation, reply)


def result_of_sums(
    geometry: RankGeometry, noise: RankNoise, allocation: Allocation, sums: tuple[Floats, Floats]
) -> ServerResult:
    """The AUC of the totals; the ends of the geometry bound the ranks that the noise hides."""
    positives, value = area_of_sums(geometry.records, *sums)
    pairs, centre = _pairs_and_centre(geometry.records, positives, value)
    numerator, count, _ = predicted_variance(geometry, noise, allocation, centre)
    law: ErrorLaw | None = None
    if geometry.sizes.size <= FEW_CLIENTS:
        law = numerator_law(geometry, noise, allocation, centre, pairs)
    variances = numerator.sum(axis=-1), count.sum(axis=-1)
    return result_from_pairs(geometry.records, positives, value, *variances, law=law)


def _pairs_and_centre(records: int, positives: Floats, value: Floats) -> tuple[Floats, Floats]:
    """``P N``, and the rank where a label's influence changes sign, shape (..., 1) each."""
    inside = np.clip(positives, 1.0, records - 1.0)
    area = np.clip(np.nan_to_num(value, nan=0.5), 0.0, 1.0)
    pairs = np.asarray(inside * (records - inside))
    centre = np.asarray(influence_centre(records, inside, area))
    return pairs[..., np.newaxis], centre[..., np.newaxis]
