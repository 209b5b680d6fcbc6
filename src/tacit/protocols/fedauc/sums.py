"""Counts of positives and their residual rank sums, one pair a client, and how large they may be.

A sum of int64 numbers is computed modulo 2^64: it is exact wherever the exact sum fits, even if a
partial sum does not. ``check_sums`` makes sure that it fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ordering import client_order
from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import StoredRanks
from tacit.data.clients import Clients
from tacit.protocols.shared.sums.rank_noise import WHOLE_SUMS


def pair_of_clients(
    clients: Clients, ranks: Ragged[np.int64], pivot: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    ranks: Ragged[np.int64], labels: NDArray[np.int8], pivot: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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


def sums_by_client(
    numbers: NDArray[np.int64] | NDArray[np.int8], whose: NDArray[np.int64], clients: int
) -> NDArray[np.int64]:
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


def check_sums(
    sizes: NDArray[np.int64], largest: NDArray[np.int64], bound: int = WHOLE_SUMS
) -> None:
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


def largest_distance(ranks: Ragged[np.int64], pivot: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest ``|2 rank - 2 pivot|`` of each client, shape (K,)."""
    return np.maximum(np.abs(ranks.maximum() - pivot), np.abs(ranks.minimum() - pivot))
