"""Whole numbers that follow from each record's class and score, and statements that sum them.

An engine finds the piece of a score, evaluates one cubic, rounds it to a whole number and adds up:
whole numbers add up to the same sum in every order.

A piece, or a cell, is found by a table of bins, which an engine joins. The bin of a score, a
difference times a constant, never falls as the score rises, whatever rounding does, and every
engine rounds differences and products of doubles alike. So edges in lower bins are below the score
and those in higher bins above it: only edges in its own bin are compared with it.

Tables of numbers are given to an engine with a statement, or written into it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.engines.relations import Dialect, Relation
from tacit.data.engines.statements import counting_statement, searched, tree_expression
from tacit.metrics.cells.score_distribution import ScoreDistribution
from tacit.metrics.cells.score_scale import OpenEnd, ScoreScale, signed_codes, signed_scores

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


@dataclass(frozen=True, eq=False)
class ScorePieces:
    """A whole number for every class and score: a rounded cubic in each piece of the scores.

    Parameters
    ----------
    edges : the inner edges of B pieces, ascending, shape (B-1,).
    origins : what is subtracted from a score of each piece, shape (B,).
    coefficients : of the powers 3 to 0 of the difference, negatives' and then positives', shape
        (2, 4, B).
    least, largest : what the whole numbers are clipped to.
    open_ends : of the scale (``ScoreScale``): beyond, the part of the cell is in the score's place.
    """

    edges: Floats
    origins: Floats
    coefficients: Floats
    least: int
    largest: int
    open_ends: tuple[OpenEnd | None, OpenEnd | None] = (None, None)


@dataclass(frozen=True, eq=False)
class ClassFunctions:
    """What is summed over positions: ``a F + b`` of the distribution function of the other class.

    Parameters
    ----------
    functions : of the positions of negatives and of positives, on the same cells of [0, 1]. F of
        the positives is summed over negatives, that of the negatives over positives.
    factors, offsets : a and b of negatives and of positives, shape (2,).
    least, largest : what the rounded numbers are clipped to.
    """

    functions: tuple[ScoreDistribution, ScoreDistribution]
    factors: Floats
    offsets: Floats
    least: int
    largest: int

    def on(self, scale: ScoreScale) -> ScorePieces | None:
        """The same as pieces of scores; None where a coefficient is no number.

        A cubic of a position, which is a line of a score, is a cubic of the score. The pieces cover
        all scores there can be, and follow from public values alone: so a record's whole number
        does not depend on other records, in its last unit neither, and a neighbour moves the sum by
        what one record adds.

        Parameters
        ----------
        scale : gives the positions.
        """
        low = -LARGEST if scale.low is None else scale.low
        high = LARGEST if scale.high is None else scale.high
        with np.errstate(over="ignore"):
            edges = np.union1d(
                scale.borders, least_scores(scale, self.functions[0].edges, low, high)
            )
            edges = edges[(edges > low) & (edges <= high)]
            lefts = np.concatenate(([low], edges))
            origins, positions = _starts_of_pieces(scale, lefts)
            cells, _ = self.functions[0].places(scale(lefts))
        borders = self.functions[0].borders
        starts, widths = borders[:-1], np.diff(borders)
        with np.errstate(over="ignore", invalid="ignore"):
            # the part of a cell below a position is slope * difference + shift
            slope = scale.slopes(lefts) / widths[cells]
            shift = (positions - starts[cells]) / widths[cells]
            made = np.stack([self._cubics(label, cells, slope, shift) for label in (0, 1)])
        if not np.all(np.isfinite(made)):
            return None
        return ScorePieces(edges, origins, made, self.least, self.largest, scale.open_ends)

    def _cubics(self, label: int, cells: Integers, slope: Floats, shift: Floats) -> Floats:
        """Coefficients of the powers 3 to 0 of a difference of scores, shape (4, B)."""
        third, second, first, start = self.functions[1 - label].coefficients[:, cells]
        # Taylor's formula at the shift, with the line's slope for each power
        cubic = np.stack(
            [
                slope**3 * third,
                slope**2 * (second + shift * 3 * third),
                slope * (first + shift * (2 * second + shift * 3 * third)),
                start + shift * (first + shift * (second + shift * third)),
            ]
        )
        made = self.factors[label] * cubic
        made[3] += self.offsets[label]
        return np.asarray(made)


def _starts_of_pieces(scale: ScoreScale, lefts: Floats) -> tuple[Floats, Floats]:
    """What is subtracted from scores of each piece, and the position of that, shape (B,) each.

    A piece starts at its least score, and an open cell at the part 0: differences stay small, and
    so does what rounding does to a cubic of them.
    """
    below, above = scale.open_ends
    is_below = np.full(lefts.shape, False) if below is None else lefts < below[0]
    is_above = np.full(lefts.shape, False) if above is None else lefts >= above[0]
    origins = np.where(is_below | is_above, 0.0, lefts)
    last = (scale.cells - 1) / scale.cells
    return origins, np.where(is_below, 0.0, np.where(is_above, last, scale(lefts)))


@dataclass(frozen=True, eq=False)
class ConstantTable:
    """Columns of whole numbers and doubles under a name.

    Parameters
    ----------
    name : of the table.
    columns : arrays of one length, by name.
    """

    name: str
    columns: dict[str, NDArray[Any]]

    def source(self, dialect: Dialect) -> str:
        """The table as a statement reads it: its name, where the engine is given it, or its rows.

        Examples
        --------
        >>> from tacit.data.engines.relations import DUCKDB, POSTGRES
        >>> table = ConstantTable("t", {"i": np.array([0]), "x": np.array([0.5])})
        >>> table.source(DUCKDB)
        't'
        >>> print(table.source(POSTGRES))
        (SELECT i, CAST(x AS double precision) AS x FROM (VALUES
          (0, 0.5e0)
        ) AS listed(i, x)) AS t
        """
        if dialect.given_tables:
            return self.name
        written = [
            map(str if _whole(column) else dialect.literal, column.tolist())
            for column in self.columns.values()
        ]
        rows = ",\n  ".join(f"({', '.join(row)})" for row in zip(*written, strict=True))
        cast = ", ".join(
            name if _whole(column) else f"CAST({name} AS {dialect.number}) AS {name}"
            for name, column in self.columns.items()
        )
        listed = ", ".join(self.columns)
        return f"(SELECT {cast} FROM (VALUES\n  {rows}\n) AS listed({listed})) AS {self.name}"


def _whole(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "i"


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
    several : the edges of bins with several, and how many edges are at most each of them, shape
        (c,) each.
    """

    low: float
    factor: float
    below: NDArray[np.int32]
    alone: Floats
    several: tuple[Floats, NDArray[np.int64]]

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
    bins = Bins.of(relation, edges, *ends, records)
    if bins is None:
        return counting_statement(relation, edges), ()
    text = f"""SELECT client, class, cell, COUNT(*) AS records
FROM {_placed(relation, edges, bins)} AS placed_records
GROUP BY client, class, cell"""
    return text, (bins.table,)


HALF = "6755399441055744e0"
"""1.5 * 2^52: sums with a number below 2^51 are doubles whose last digit is 1."""


def summing(
    relation: Relation, pieces: ScorePieces, ends: tuple[float, float], records: int
) -> Statement:
    """What a record's class and score give as a whole number, summed by client.

    Engines round or cut off where they cast to a whole number. So a double of which the last digit
    is 1 is added and subtracted before: that rounds, of two equally near ones to the even one.

    Its columns: the client; records; positives; the sum; the least and the largest image. Records
    without a valid label or score are in none of them, so that their number differs from that of
    the table.

    Parameters
    ----------
    relation : the table.
    pieces : the whole numbers.
    ends : the least and the largest image of a score.
    records : how many there are.
    """
    bins = Bins.of(relation, pieces.edges, *ends, records)
    dialect, cubics = relation.dialect, _cubics(pieces)
    number = "constant + part * (linear + part * (square + part * cube))"
    text = f"""SELECT CAST(client AS {dialect.text}) AS client, COUNT(*) AS records,
  SUM(class) AS positives,
  SUM(CASE WHEN number < {dialect.literal(pieces.least)} THEN {pieces.least}
    WHEN number > {dialect.literal(pieces.largest)} THEN {pieces.largest}
    ELSE CAST((number + {HALF}) - {HALF} AS BIGINT) END) AS total,
  MIN(score) AS low, MAX(score) AS high
FROM (
  SELECT client, class, score, {number} AS number
  FROM (
    SELECT client, class, score, constant, linear, square, cube,
{indent(_part(pieces, dialect), 6 * " ")} AS part
    FROM {_placed(relation, pieces.edges, bins)} AS placed_records
    JOIN {cubics.source(dialect)} ON piece = 2 * cell + class
  ) AS parted_records
) AS evaluated_records
GROUP BY client"""
    tables = (cubics,) if dialect.given_tables else ()
    return text, (tables if bins is None else (*tables, bins.table))


def _cubics(pieces: ScorePieces) -> ConstantTable:
    """The coefficients of every piece, of negatives and of positives."""
    numbers = np.arange(2 * pieces.origins.size, dtype=np.int32)
    columns: dict[str, NDArray[Any]] = {
        "piece": numbers,
        "origin": np.repeat(pieces.origins, 2),
    }
    for power, name in enumerate(("cube", "square", "linear", "constant")):
        columns[name] = pieces.coefficients[:, power].T.ravel()
    return ConstantTable("tacit_cubics", columns)


def _part(pieces: ScorePieces, dialect: Dialect) -> str:
    """What the cubic is of: a difference, or in an open cell the part of it below the score."""
    below, above = pieces.open_ends
    cases = []
    if below is not None:
        border, width = map(dialect.literal, below)
        # w / (w + k - s)
        cases.append(f"WHEN score < {border} THEN {width} / ({width} + ({border} - score))")
    if above is not None:
        border, width = map(dialect.literal, above)
        # 1 - w / (w + s - k)
        cases.append(
            f"WHEN score >= {border} THEN 1e0 - {width} / ({width} + (score - ({border})))"
        )
    if not cases:
        return "score - origin"
    listed = "\n  ".join(cases)
    return f"CASE {listed}\n  ELSE score - origin END"


def _placed(relation: Relation, edges: Floats, bins: Bins | None) -> str:
    """The valid records with their cells, in brackets."""
    dialect = relation.dialect
    if bins is None:
        source, cell = searched(relation.scored, edges, dialect)
        return f"""(
  SELECT client, class, score,
{indent(cell, 4 * " ")} AS cell
  FROM {source}
  WHERE class >= 0 AND {dialect.is_finite("score")}
)"""
    low, factor = dialect.literal(bins.low), dialect.literal(bins.factor)
    return f"""(
  SELECT client, class, score,
{indent(_cell(bins, dialect), 4 * " ")} AS cell
  FROM (
    SELECT client, class, score,
      TRY_CAST(FLOOR((score - ({low})) * {factor}) AS INTEGER) AS bin
    FROM {relation.scored}
    WHERE class >= 0
  ) AS binned_records
  JOIN {bins.table.source(dialect)} USING (bin)
)"""


def _cell(bins: Bins, dialect: Dialect) -> str:
    """How many edges are at most the score: those of lower bins, and of its own."""
    alone = "below + CAST(score >= alone AS INTEGER)"
    values, counts = bins.several
    if not values.size:
        return alone
    tree = tree_expression("score", values, counts, dialect)
    return f"CASE WHEN ISNAN(alone) THEN GREATEST(below,\n{indent(tree, '  ')})\nELSE {alone} END"
