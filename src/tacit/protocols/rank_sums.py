"""Counts of positives and their residual rank sums, one pair a client."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Ragged


def pair_of_sums(
    ranks: Ragged[np.int64], labels: NDArray[np.int8], pivot: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of positives and doubled residual rank sums of every client, shape (..., K).

    Parameters
    ----------
    ranks : doubled ranks.
    labels : in the order of the ranks, shape (..., M).
    pivot : the doubled pivot of every client, shape (K,).
    """
    count = np.add.reduceat(labels, ranks.offsets[:-1], axis=-1, dtype=np.int64)
    rank_sum = np.add.reduceat(ranks.values * labels, ranks.offsets[:-1], axis=-1)
    return count, rank_sum - pivot * count


def largest_distance(ranks: Ragged[np.int64], pivot: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest ``|2 rank - 2 pivot|`` of each client, shape (K,)."""
    return np.maximum(np.abs(ranks.maximum() - pivot), np.abs(ranks.minimum() - pivot))
