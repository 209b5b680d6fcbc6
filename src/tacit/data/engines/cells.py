"""Cells of scores, found by an engine to the last bit as in memory.

A cell is found by a table of bins, which an engine joins. The bin of a score, a difference times a
constant, never falls as the score rises, whatever rounding does, and every engine rounds
differences and products of doubles alike. So edges in lower bins are below the score and those in
higher bins above it: only edges in its own bin are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.engines.statements import (
    ConstantTable,
    Dialect,
    Relation,
    counting_statement,
    indented,
    tree_expression,
)
from tacit.metrics.cells.score_scale import signed_codes, signed_scores

LARGEST = float(np.finfo(np.float64).max)


def least_scores(
    rising: Callable[[Floats], Floats],
    levels: Floats,
    low: float = -LARGEST,
    high: float = LARGEST,
) -> Floats:
    """The least double whose image reaches each level, shape (B,): plus infinity where none does.

    So ``score >= least`` says the same of a score as ``rising(score) >= level``, to the last bit,
    for any map that does not fall, and an engine needs neither the map nor a logarithm.

    Parameters
    ----------
    rising : a map that does not fall, of arrays of shape (B,).
    levels : shape (B,).
    low, high : the least and the largest score there can be; no score is below the first.

    Examples
    --------
    >>> least_scores(lambda score: score / 100, np.array([0.5, 2.0]), 0.0, 100.0).tolist()
    [50.0, inf]
    """
    ends = signed_codes([low, high])
    below = np.full(levels.shape, ends[0] - 1, dtype=np.int64)
    reached = np.full(levels.shape, ends[1] + 1, dtype=np.int64)
    # differences of codes of different signs would overflow, and halves do not
    while np.any(open_still := below + 1 < reached):
        middle = (below >> 1) + (reached >> 1) + (below & reached & 1)
        middle = np.where(open_still, middle, np.clip(reached, *ends))
        enough = rising(signed_scores(middle)) >= levels
        reached = np.where(open_still & enough, middle, reached)
        below = np.where(open_still & ~enough, middle, below)
    return np.where(reached > ends[1], np.inf, signed_scores(np.minimum(reached, ends[1])))


MOST_BINS, LEAST_BINS = 2**14, 2**8
RECORDS_A_BIN = 64
"""About so many bins are made for so many records between the least and the largest score."""


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
    def of(
        cls, relation: Relation, edges: Floats, low: float, high: float, records: int
    ) -> Bins | None:
        """Bins for all scores from ``low`` to ``high``; None where their range has none.

        None also for an engine that is given no tables.

        Parameters
        ----------
        relation : the table.
        edges : ascending, shape (B-1,), also infinite.
        low, high : the least and the largest score.
        records : how many there are.
        """
        count = min(max(records // RECORDS_A_BIN, LEAST_BINS), MOST_BINS)
        with np.errstate(over="ignore", divide="ignore"):
            width = np.float64(high) - np.float64(low)
            factor = float(count / width)
        if not (relation.dialect.given_tables and np.isfinite(factor) and factor > 0):
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


Statement = tuple[str, tuple[ConstantTable, ...]]
"""A statement, and the tables of numbers that an engine is given with it."""


def counting(
    relation: Relation, edges: Floats, ends: tuple[float, float], records: int
) -> Statement:
    """The records by client, class and cell, by a table of bins where the engine is given one.

    Parameters
    ----------
    relation : the table.
    edges : the inner edges of B cells, ascending, shape (B-1,).
    ends : the least and the largest score.
    records : how many there are.
    """
    dialect, bins = relation.dialect, Bins.of(relation, edges, *ends, records)
    if bins is None:
        return counting_statement(relation, edges), ()
    low, factor = dialect.literal(bins.low), dialect.literal(bins.factor)
    text = f"""SELECT client, class, cell, COUNT(*) AS records
FROM (
  SELECT client, class,
{indented(_cell(bins, dialect), 4)} AS cell
  FROM (
    SELECT client, class, score,
      TRY_CAST(FLOOR((score - ({low})) * {factor}) AS INTEGER) AS bin
    FROM {relation.scored}
    WHERE class >= 0
  ) AS binned_records
  JOIN {bins.table.name} USING (bin)
) AS placed_records
GROUP BY client, class, cell"""
    return text, (bins.table,)


def _cell(bins: Bins, dialect: Dialect) -> str:
    """How many edges are at most the score: those of lower bins, and of its own."""
    alone = "below + CAST(score >= alone AS INTEGER)"
    values, counts = bins.crowded
    if not values.size:
        return alone
    tree = tree_expression("score", values, counts, dialect)
    return f"CASE WHEN ISNAN(alone) THEN GREATEST(below,\n{indented(tree, 2)})\nELSE {alone} END"
