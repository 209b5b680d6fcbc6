"""How many records, and positives among them, clients have in the cells between thresholds.

Also cells whose edges the server publishes as scores, from noisy counts alone.

The edges are values like any other that a server chooses: whatever they are, a record counts in
one cell, and a function of a score has the same bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.metrics.cells.score_scale import CentredScale, ScoreScale


@dataclass(frozen=True, eq=False)
class Strata:
    """Parts of the records each of which is counted separately; every record is in one.

    Parameters
    ----------
    count : how many there are.
    of_record : the stratum of every record, shape (M,); 0 where there is one, or records are not at
        hand.
    """

    count: int = 1
    of_record: Integers | int = 0


ALL_RECORDS = Strata()
"""One stratum."""


def cell_counts(
    clients: tp.Clients, thresholds: Floats, labels: NDArray[np.int8] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positives and records of every client in every cell, shapes (..., T, K) and (T, K).

    Cell ``j`` holds the scores from ``thresholds[j]`` up to the next threshold. A first threshold
    of minus infinity makes room for every score.

    Parameters
    ----------
    clients : whose records are counted.
    thresholds : ascending, shape (T,).
    labels : shape (..., M); None for the records' own, which are counted by a statement where
        records are not at hand.

    Raises
    ------
    DataError : for a score outside [0, 1], naming the client and the score.
    """
    if np.isfinite(thresholds[0]):
        tp.check_scores_in_unit_interval(clients)
    if labels is None and not clients.at_hand:
        positives, negatives = clients.counts_in(thresholds)[:, 1:]
        return positives, positives + negatives
    labels = clients.labels if labels is None else labels
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


KNOTS = "knots"
"""Field of a query: the scores at the inner edges of its cells."""


def published_scale(query: tp.Query, cells: int) -> ScoreScale | None:
    """The scale of the cell edges that a query publishes; None where it publishes none.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    knots = query.broadcast.get(KNOTS)
    return None if knots is None else scale_of_knots(query.protocol, knots, cells)


def scale_of_knots(protocol: tp.ScaledScores, knots: Any, cells: int) -> ScoreScale:
    """The scale whose equal cells end at these cell edges.

    Raises
    ------
    ValueError : for cell edges that are not one fewer than the cells, finite and ascending.
    """
    received = (getattr(knots, "dtype", type(knots)), np.shape(knots))
    if received != (np.dtype(np.float64), (cells - 1,)):
        raise ValueError(f"{KNOTS} must be {cells - 1} 64-bit floats, got {received}")
    base = protocol.score_scale
    return ScoreScale(knots, base.low, base.high)


def placed_on(
    scale: ScoreScale | None, protocol: tp.ScaledScores, clients: tp.Clients
) -> tp.Clients:
    """The clients with positions for scores: on published cells, or on the protocol's scale.

    Raises
    ------
    DataError : for a score outside [0, 1] where scores are probabilities.
    """
    if scale is None:
        return protocol.on_scale(clients)
    if protocol.score_range is not None:
        tp.check_scores_in_unit_interval(clients)
    return clients.rescored(CentredScale(scale.knots, scale.low, scale.high))
