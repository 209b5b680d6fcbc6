"""The cells of many scores by a table of bins, which an engine joins: as ``CellTable`` in memory.

The bin of a score, a difference times a constant, never falls as the score rises, whatever rounding
does, and every engine rounds differences and products of doubles alike. So edges in lower bins are
below the score and those in higher bins above it: only edges in its own bin are compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.engines.sql.tables import ConstantTable

MOST_BINS, LEAST_BINS = 2**14, 2**8
RECORDS_A_BIN = 64
"""About so many bins are made for so many records between the least and the largest score."""


@dataclass(frozen=True)
class EvenCells:
    """Cells of one width, which a score's bin is: no table is joined.

    Parameters
    ----------
    low, factor : the bin of a score s is the floor of ``(s - low) * factor``, from 0 on. All bins
        from B - 1 on are of the last cell.
    """

    low: float
    factor: float

    @classmethod
    def of(cls, edges: Floats, low: float, high: float) -> EvenCells | None:
        """The cells between edges; None where a rounded product would misplace a score.

        As a bin never falls, it is right everywhere if it is at each edge and just below. None also
        where scores are below all bins, or so far above the edges that they have many.

        Parameters
        ----------
        edges : ascending, shape (B-1,), also infinite.
        low, high : the least and the largest score.

        Examples
        --------
        >>> EvenCells.of(np.array([0.25, 0.5, 0.75]), 0.0, 1.0)
        EvenCells(low=0.0, factor=4.0)
        >>> EvenCells.of(np.array([0.1, 0.2, 0.5]), 0.0, 1.0) is None
        True
        """
        if edges.size < 2 or not np.all(np.isfinite(edges)):
            return None
        cells = np.arange(1, edges.size + 1)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            width = (edges[-1] - edges[0]) / edges[1:].size
            start, factor = edges[0] - width, 1 / width
            below = np.nextafter(edges, -np.inf)
            at, before, ends = (
                np.floor((scores - start) * factor)
                for scores in (edges, below, np.array([low, high]))
            )
            right = np.array_equal(at, cells) and bool(np.all(before < cells))
            near = bool(ends[0] >= 0 and ends[1] <= 2 * cells.size)
        return cls(float(start), float(factor)) if right and near else None


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of scores, and the edges in them.

    Parameters
    ----------
    low, factor : the bin of a score s is the floor of ``(s - low) * factor``.
    below : how many edges are in lower bins, shape (n,).
    alone : the only edge of each bin, shape (n,): plus infinity where there is none, and NaN where
        there are several.
    crowded : the edges of bins with several, and how many edges are at most each of them, shape
        (c,) each.
    """

    low: float
    factor: float
    below: NDArray[np.int32]
    alone: Floats
    crowded: tuple[Floats, NDArray[np.int64]]

    @classmethod
    def of(cls, edges: Floats, low: float, high: float, records: int) -> Bins | None:
        """Bins for all scores from ``low`` to ``high``; None where their range has none.

        Parameters
        ----------
        edges : ascending, shape (B-1,), also infinite.
        low, high : the least and the largest score.
        records : how many there are.
        """
        count = min(max(records // RECORDS_A_BIN, LEAST_BINS), MOST_BINS)
        with np.errstate(over="ignore", divide="ignore"):
            width = np.float64(high) - np.float64(low)
            factor = float(count / width)
        if not (np.isfinite(factor) and factor > 0):
            return None
        last = int(np.floor(width * factor))
        places = np.floor((np.clip(edges, low, high) - low) * factor)
        # an edge at or below the least score is below all, one above the largest above all
        places = np.where(edges <= low, -1, np.where(edges > high, last + 1, places))
        inside = (places >= 0) & (places <= last)
        index = places[inside].astype(np.int64)
        in_bin = np.bincount(index, minlength=last + 1)
        below = int(np.count_nonzero(places < 0)) + np.cumsum(in_bin) - in_bin
        alone = np.full(last + 1, np.inf)
        alone[index] = edges[inside]
        alone[in_bin > 1] = np.nan
        several = np.flatnonzero(inside)[in_bin[index] > 1]
        return cls(low, factor, below.astype(np.int32), alone, (edges[several], several + 1))

    @property
    def table(self) -> ConstantTable:
        """The bins as a table that is joined."""
        numbers = np.arange(self.below.size, dtype=np.int32)
        return ConstantTable(
            "tacit_bins", {"bin": numbers, "below": self.below, "alone": self.alone}
        )
