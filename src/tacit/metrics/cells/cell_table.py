"""The cells of many scores: a table in place of a search among all edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.metrics.cells.score_code import cells_of

BINS = 2**14
"""Number of equal bins of the range of edges; their table stays in a processor's cache."""


class CellTable:
    """How many ascending edges are at most a score, as ``cells_of`` counts them.

    The bin of a score, a difference times a constant, never falls as the score rises, whatever
    rounding does. So all edges in lower bins are below the score, and those in higher bins above
    it: only edges in the same bin are compared with it, and searched where there are several.

    Parameters
    ----------
    edges : ascending and finite, shape (B,), B at least 1.

    Examples
    --------
    >>> CellTable(np.array([0.25, 0.5])).cells(np.array([0.1, 0.25, 0.4, 7.0])).tolist()
    [0, 1, 1, 2]
    """

    def __init__(self, edges: Floats) -> None:
        self._edges = edges
        # a score at or above the last edge is compared with infinity, and stays in the last cell
        self._ends = np.append(edges, np.inf)
        self._low = float(edges[0])
        with np.errstate(over="ignore", divide="ignore"):
            factor = float(np.float64(BINS) / (edges[-1] - edges[0]))
        self._factor = factor if np.isfinite(factor) else 0.0
        in_bin = np.bincount(self._bins(edges), minlength=BINS)
        self._below = np.concatenate([[0], np.cumsum(in_bin)[:-1]]).astype(np.int64)
        self._crowded = in_bin > 1
        self._has_crowds = bool(self._crowded.any())

    def cells(self, scores: Floats) -> NDArray[np.int64]:
        """The cell of every score, from 0, shape (M,)."""
        bins = self._bins(scores)
        cells = self._below[bins]
        cells += scores >= self._ends[cells]
        if self._has_crowds:
            several = np.flatnonzero(self._crowded[bins])
            cells[several] = cells_of(scores[several], self._edges)
        return cells

    def _bins(self, scores: Floats) -> NDArray[np.int64]:
        with np.errstate(over="ignore", invalid="ignore"):
            places = (scores - self._low) * self._factor
        # fmax and fmin give a number for NaN, too
        np.fmax(places, 0.0, out=places)
        np.fmin(places, BINS - 1, out=places)
        return places.astype(np.int64)
