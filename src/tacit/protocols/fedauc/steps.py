"""What clients of FedAUC answer: their scores, and noisy sums of the ranks of their positives.

A client's checks of a query for rank sums: the server's numbers must not weaken the noise.

Counts of positives and their residual rank sums, one pair a client, and how large they may be.

A sum of int64 numbers is computed modulo 2^64: it is exact wherever the exact sum fits, even if a
partial sum does not. ``check_sums`` makes sure that it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Floats, Integers, Labels
from tacit.counts import rank_noise
from tacit.data.clients import Clients, sorted_scores
from tacit.data.ragged import Ragged, StoredRanks, client_order
from tacit.privacy.cost import Cost, worst_case
from tacit.privacy.noise import NoiseSource
from tacit.protocol.steps import ClientState, Query, Reply, step
from tacit.protocols.shared.flipped_labels import flipped_in_order, flipped_labels, flipping_cost


def pair_of_clients(
    clients: Clients, ranks: Ragged[np.int64], pivot: Integers
) -> tuple[Integers, Integers]:
    """``pair_of_sums`` of the clients' labels; by an engine where ranks are those of its sort.

    Raises
    ------
    ValueError : for stored ranks that are those of other records.
    """
    if not isinstance(ranks, StoredRanks):
        return pair_of_sums(ranks, clients.labels[clients.ascending], pivot)
    known = None if clients.ranking is None else clients.ranking.ranked()
    if known is None or ranks.totals is not known.ranks:
        raise ValueError("stored ranks must be those of the clients' records")
    return known.positives, known.positive_sums - pivot * known.positives


def pair_of_sums(
    ranks: Ragged[np.int64], labels: Labels, pivot: Integers
) -> tuple[Integers, Integers]:
    """Counts of positives and doubled residual rank sums of every client, shape (..., K).

    Parameters
    ----------
    ranks : doubled ranks.
    labels : in the order of the ranks, shape (..., M).
    pivot : the doubled pivot of every client, shape (K,).

    Exact for ranks and pivots that pass ``check_sums``.
    """
    count = np.add.reduceat(labels, ranks.offsets[:-1], axis=-1, dtype=np.int64)
    rank_sum = np.add.reduceat(ranks.values * labels, ranks.offsets[:-1], axis=-1)
    return count, rank_sum - pivot * count


def sums_by_client(numbers: Integers | Labels, whose: Integers, clients: int) -> Integers:
    """Sums of some records' numbers by client, shape (..., K).

    Parameters
    ----------
    numbers : in any order of the clients, shape (..., m).
    whose : the index of each record's client, shape (m,).
    clients : K.
    """
    order = client_order(whose, clients)
    sizes = np.bincount(whose, minlength=clients)
    some = np.flatnonzero(sizes)
    starts = (np.cumsum(sizes) - sizes)[some]
    sums = np.zeros((*numbers.shape[:-1], clients), dtype=np.int64)
    sums[..., some] = np.add.reduceat(numbers[..., order], starts, axis=-1, dtype=np.int64)
    return sums


def check_sums(sizes: Integers, largest: Integers, bound: int = rank_noise.WHOLE_SUMS) -> None:
    """Refuse weights of records whose sums a mechanism could not hold exactly.

    A sum that wraps, or is rounded before its noise is added, moves by more than the largest weight
    when one label flips, and the noise no longer hides it. Sizes and weights are public, so the
    refusal says nothing about a label.

    Parameters
    ----------
    sizes : every client's records, shape (K,).
    largest : the largest magnitude of its weights, shape (..., K).
    bound : what ``sizes * largest`` must stay below.

    Raises
    ------
    ValueError : for a client whose records times their largest weight reach the bound.
    """
    # Rounding to float64 keeps the order, and both bounds are powers of two: a product that
    # reaches one is never rounded below it.
    reached = sizes.astype(np.float64) * largest.astype(np.float64)
    if np.any(reached >= bound):
        raise ValueError(
            f"a client's records times the largest weight of one must be below {bound}, "
            f"got {reached.max():.3g}: the sum would not be exact"
        )


def largest_distance(ranks: Ragged[np.int64], pivot: Integers) -> Integers:
    """The largest ``|2 rank - 2 pivot|`` of each client, shape (K,)."""
    return np.maximum(np.abs(ranks.maximum() - pivot), np.abs(ranks.minimum() - pivot))


MAX_RECORDS = 2**40
"""Largest number of records of all clients together; the sums of their ranks have their own check
(``check_sums``)."""

SLACK = 1 + 1e-9
"""Largest accepted ratio of the parts' sum to epsilon: rounding may change the last digits."""


@dataclass(frozen=True, eq=False)
class RankRequest:
    """A query for rank sums, checked.

    Parameters
    ----------
    mechanism : the noise, of the agreed kind and at most the agreed budget.
    ranks : doubled ranks of the clients' records, ascending within a client.
    pivot : doubled pivots, shape (K,), or (R, K) in replicates.
    fraction : the count's fraction of the budget, likewise.
    respond : which clients flip labels, likewise.
    sensitivity : the least sensitivity that the noise of a rank sum assumes.
    """

    mechanism: rank_noise.RankNoise
    ranks: Ragged[np.int64]
    pivot: Integers
    fraction: Floats
    respond: Flags
    sensitivity: int

    @classmethod
    def of(cls, clients: Clients, query: Query, noise: NoiseSource | None = None) -> RankRequest:
        """The checked query; given ``noise``, its number of replicates is checked too.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        ranks, read = checked_ranks(clients, query), partial(_column, clients, query, noise)
        pivot = read("pivot", np.dtype(np.int64))
        if pivot.min() < 0 or pivot.max() > 2 * MAX_RECORDS:
            raise ValueError(f"doubled pivots must be from 0 to {2 * MAX_RECORDS}")
        fraction = read("share", np.dtype(np.float64))
        respond = read("respond", np.dtype(np.bool_))
        if not ((fraction > 0) & (fraction <= 1)).all():
            raise ValueError("the count's fraction of the budget must be above 0 and at most 1")
        distance, mechanism = largest_distance(ranks, pivot), agreed_noise(query)
        if mechanism.mechanism == rank_noise.RESPONSE and not respond.all():
            raise ValueError(
                f"with {rank_noise.RESPONSE} every client must flip its labels, as agreed"
            )
        check_sums(ranks.sizes, distance, mechanism.largest_sum)
        if np.any(~respond & (fraction == 1) & (distance > 0)):
            raise ValueError("no budget is left for a rank sum that depends on the labels")
        return cls(mechanism, ranks, pivot, fraction, respond, _whole(query, "sensitivity"))


def agreed_noise(query: Query) -> rank_noise.RankNoise:
    """The mechanism of a query, which must be the agreed one, within the agreed budget.

    Raises
    ------
    ValueError : for another mechanism, or more budget.
    """
    noise, agreed = query.broadcast["noise"], query.protocol.rank_noise
    if not isinstance(noise, rank_noise.RankNoise) or noise.mechanism != agreed.mechanism:
        raise ValueError(f"mechanism must be {agreed.mechanism}, as agreed, got {noise!r:.80}")
    if noise.epsilon > agreed.epsilon * SLACK or noise.delta > agreed.delta * SLACK:
        raise ValueError(f"the agreed budget is {agreed.epsilon}, {agreed.delta}, got {noise}")
    return noise


def public_records(query: Query) -> int:
    """The number of all clients' records, as the server announces it.

    Raises
    ------
    ValueError : for a value that is not a number of records.
    """
    records = _whole(query, "records")
    if records < 1:
        raise ValueError(f"records must be at least 1, got {records}")
    return records


def count_fraction(query: Query, name: str = "share") -> float:
    """The count's fraction of a reply's budget, the same for every client.

    Raises
    ------
    ValueError : for a fraction that leaves no noise.
    """
    fraction = query.broadcast[name]
    if not (isinstance(fraction, float | int) and 0 < fraction < 1):
        raise ValueError(f"{name} must be above 0 and below 1, got {fraction!r:.40}")
    return float(fraction)


def _whole(query: Query, name: str) -> int:
    value = query.broadcast.get(name, 0)
    if not isinstance(value, int | np.integer) or not 0 <= value <= 2 * MAX_RECORDS:
        raise ValueError(
            f"{name} must be a whole number from 0 to {2 * MAX_RECORDS}, got {value!r:.40}"
        )
    return int(value)


def values_of_records(clients: Clients, query: Query, name: str, dtype: Any) -> Ragged[Any]:
    """A query's value for every record.

    Raises
    ------
    ValueError : for values of another type or shape.
    """
    column = query.per_client[name]
    # an engine's ranks are 64-bit integers, and no message holds them
    if not isinstance(column, StoredRanks) and (
        not isinstance(column, Ragged) or column.values.dtype != dtype or column.values.ndim != 1
    ):
        raise ValueError(f"{name} must be ragged values of type {np.dtype(dtype)}")
    if not np.array_equal(column.offsets, clients.offsets):
        raise ValueError(f"{name} must hold one value for every record")
    return column


def checked_ranks(clients: Clients, query: Query, name: str = "ranks") -> Ragged[np.int64]:
    """The doubled ranks of a query, one for every record.

    Raises
    ------
    ValueError : for values of another type or shape, or out of range.
    """
    ranks = values_of_records(clients, query, name, np.int64)
    if ranks.minimum().min() < 0 or ranks.maximum().max() > 2 * MAX_RECORDS:
        raise ValueError(f"{name}: doubled ranks must be from 0 to {2 * MAX_RECORDS}")
    return ranks


def _column(
    clients: Clients, query: Query, noise: NoiseSource | None, name: str, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Numbers for clients: every client receives one, or one for each replicate."""
    column, shape = np.asarray(query.per_client[name]), (clients.count,)
    several = column.ndim == 2 if noise is None else column.shape == noise.full_shape(shape)
    if column.dtype != dtype or column.shape[-1:] != shape or not (several or column.ndim == 1):
        raise ValueError(
            f"{name} must hold one {dtype} a client, got {column.dtype} of {column.shape}"
        )
    return column


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
        noisy_count = count + noise.draw(mechanism.drawn(1, fraction), shape)
        noisy_residual = residual + noise.draw(mechanism.drawn(sensitivity, 1 - fraction), shape)
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
