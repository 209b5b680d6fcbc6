"""How many records, and positives among them, clients have in the cells between thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.clients import Clients
from tacit.protocol.settings.score_range import check_scores_in_unit_interval


def even_cell_counts(clients: Clients, cells: int) -> Integers:
    """Positives, then negatives, of all clients in equal cells of positions, shape (2 * cells,).

    Parameters
    ----------
    clients : with positions from 0 to 1 for scores.
    cells : a power of two, so that a position times it is exact.
    """
    if not clients.at_hand:
        edges = np.arange(1, cells) / cells
        return np.asarray(clients.counts_in(edges).sum(axis=-1).ravel())
    leaves = even_leaves(clients.scores, clients.labels, cells)
    return np.bincount(leaves, minlength=2 * cells)


def even_leaves(positions: Floats, labels: NDArray[Any], cells: int) -> Integers:
    """The cell of every record at a position from 0 to 1, those of negatives after all positives'.

    Parameters
    ----------
    positions, labels : shape (M,).
    """
    cell = np.minimum((positions * cells).astype(np.int64), cells - 1)
    return cell + np.where(labels == 1, 0, cells)


def true_cell_counts(
    clients: Clients, thresholds: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``cell_counts`` of the clients' own labels, by a statement where records are not at hand.

    Raises
    ------
    DataError : for a score outside [0, 1], naming the client and the score.
    """
    if clients.at_hand:
        return cell_counts(clients, thresholds, clients.labels)
    if np.isfinite(thresholds[0]):
        check_scores_in_unit_interval(clients)
    positives, negatives = clients.counts_in(thresholds)[:, 1:]
    return positives, positives + negatives


def cell_counts(
    clients: Clients, thresholds: Floats, labels: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positives and records of every client in every cell, shapes (..., T, K) and (T, K).

    Cell ``j`` holds the scores from ``thresholds[j]`` up to the next threshold. A first threshold
    of minus infinity makes room for every score.

    Raises
    ------
    DataError : for a score outside [0, 1], naming the client and the score.
    """
    if np.isfinite(thresholds[0]):
        check_scores_in_unit_interval(clients)
    cells = thresholds.size
    cell = np.searchsorted(thresholds, clients.scores, side="right") - 1
    index = cell * clients.count + clients.client_of_record
    shape = (cells, clients.count)
    records = np.bincount(index, minlength=cells * clients.count).reshape(shape)
    if labels.ndim == 1:
        positives = np.bincount(index[labels == 1], minlength=cells * clients.count)
        return positives.reshape(shape).astype(np.int64), records.astype(np.int64)
    order = np.argsort(index, kind="stable")
    filled = np.flatnonzero(records.ravel())
    starts = np.concatenate(([0], np.cumsum(records.ravel()[filled])[:-1]))
    replicated = np.zeros((*labels.shape[:-1], cells * clients.count), dtype=np.int64)
    replicated[..., filled] = np.add.reduceat(labels[..., order], starts, axis=-1, dtype=np.int64)
    return replicated.reshape(*labels.shape[:-1], *shape), records.astype(np.int64)
