"""Merging fine score cells into buckets of about equal depth. Counts may be noisy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]
Counts = NDArray[Any]


def equi_depth_starts(totals: Floats, buckets: int) -> NDArray[np.int64]:
    """The first cell of each of at most ``buckets`` runs of cells that hold about as many records.

    Bucket k ends where the cumulative count comes nearest to k/``buckets`` of the total. Noise
    makes cumulative counts fall; they are read off their isotonic regression, within 0 and the
    total, which unlike cells clipped at zero does not turn the noise of empty cells into records.
    A cut survives only where the noisy cumulative count itself lies above that of all cuts before
    it and below the total, so every bucket of the answer has a positive noisy count. There are
    fewer buckets than asked for where single cells are deeper than a bucket. Exact counts give
    buckets no deeper than the total over ``buckets`` plus the deepest cell.

    Parameters
    ----------
    totals : records in each cell, in ascending order of score, shape (B,); may be negative.
    buckets : how many buckets there are at most.

    Returns
    -------
    int64, ascending from 0, of length 1 to ``buckets``; ``[0]`` where the total is not positive.

    Raises
    ------
    ValueError : when ``buckets`` is below 1, or ``totals`` is empty, not flat or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> equi_depth_starts(np.array([5.0, 1.0, 4.0, 0.0, 0.0, 9.0, 1.0]), 2)
    array([0, 4])
    >>> equi_depth_starts(np.array([1.0, 97.0, 2.0]), 10)
    array([0, 1, 2])
    """
    if buckets < 1:
        raise ValueError(f"buckets must be at least 1, got {buckets}")
    cells = np.asarray(totals, dtype=np.float64)
    if cells.ndim != 1 or cells.size == 0:
        raise ValueError(f"totals must have shape (B,) with B at least 1, got {cells.shape}")
    if not np.isfinite(cells).all():
        raise ValueError(f"totals must be finite, got {cells[~np.isfinite(cells)][0]}")
    reached = np.concatenate(([0.0], np.cumsum(cells)))
    total = reached[-1]
    if total <= 0:
        return np.zeros(1, dtype=np.int64)
    rising = np.clip(isotonic_regression(reached).x, 0.0, total)
    targets = total * np.arange(1, buckets, dtype=np.float64) / buckets
    return _surviving(np.unique(_nearest(rising, targets)), reached)


def merge(cells: Counts, starts: NDArray[np.int64]) -> Counts:
    """The sums of runs of cells along the last axis; run k starts at cell ``starts[k]``.

    Examples
    --------
    >>> import numpy as np
    >>> merge(np.array([5, 1, 4, 0, 9]), np.array([0, 2]))
    array([ 6, 13])
    """
    return np.add.reduceat(cells, starts, axis=-1)


def _nearest(rising: Floats, targets: Floats) -> NDArray[np.int64]:
    """Where a rising sequence is nearest to each target; the middle of equal values."""
    above = np.clip(np.searchsorted(rising, targets), 1, rising.size - 1)
    lower, upper = rising[above - 1], rising[above]
    value = np.where(targets - lower <= upper - targets, lower, upper)
    first = np.searchsorted(rising, value, side="left")
    last = np.searchsorted(rising, value, side="right") - 1
    return ((first + last) // 2).astype(np.int64)


def _surviving(cuts: NDArray[np.int64], reached: Floats) -> NDArray[np.int64]:
    """Zero, and the cuts at which the noisy cumulative count is a new maximum below the total."""
    heights = reached[cuts]
    before = np.maximum.accumulate(
        np.concatenate(([0.0], np.where(heights < reached[-1], heights, 0)))
    )
    kept = (heights > before[:-1]) & (heights < reached[-1])
    return np.concatenate((np.zeros(1, dtype=np.int64), cuts[kept]))
