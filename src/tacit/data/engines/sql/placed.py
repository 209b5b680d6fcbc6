"""Statements that find each record's cell by a table of bins, and sum what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.data.engines.sql.bins import Bins, EvenCells
from tacit.data.engines.sql.dialects import Dialect
from tacit.data.engines.sql.pieces import ScorePieces
from tacit.data.engines.sql.statements import Relation, cell_expression, indented, tree_expression
from tacit.data.engines.sql.tables import ConstantTable


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement, and the tables of numbers that an engine is given beside it.

    Parameters
    ----------
    text : of the statement.
    tables : those that are not written in it.
    """

    text: str
    tables: tuple[ConstantTable, ...] = ()


def even_counts(relation: Relation, cells: EvenCells) -> Statement:
    """The records by client, class and bin; the bin of a score that is not finite is NULL.

    Parameters
    ----------
    relation : the table.
    cells : of which bins are made; some may be above all cells.
    """
    dialect = relation.dialect
    client = "''" if relation.client is None else dialect.quoted(relation.client)
    low, factor = dialect.literal(cells.low), dialect.literal(cells.factor)
    return Statement(f"""SELECT client, class, cell, COUNT(*) AS records
FROM (
  SELECT {client} AS client, {relation.class_value} AS class,
    TRY_CAST(FLOOR(({relation.score_value} - ({low})) * {factor}) AS INTEGER) AS cell
  FROM {relation.table}
) AS placed_records
GROUP BY client, class, cell""")


def binned_counts(relation: Relation, edges: Floats, bins: Bins) -> Statement:
    """The records by client, class and cell, of an engine that is given tables.

    Parameters
    ----------
    relation : the table.
    edges : the inner edges of B cells, ascending, shape (B-1,).
    bins : those of the edges.
    """
    text = f"""SELECT client, class, cell, COUNT(*) AS records
FROM {_placed(relation, edges, bins)} AS placed_records
GROUP BY client, class, cell"""
    return Statement(text, (bins.table,))


def summing_statement(relation: Relation, pieces: ScorePieces, bins: Bins | None) -> Statement:
    """What a record's class and score give as a whole number, summed by client.

    Its columns: the client; records; positives; the sum. Records without a valid label or score are
    in none of them, so that their number differs from that of the table.

    Parameters
    ----------
    relation : the table.
    pieces : the whole numbers.
    bins : those of the pieces' edges; None for the dialect's own way to find a cell.
    """
    dialect, cubics = relation.dialect, _cubics(pieces)
    number = "constant + part * (linear + part * (square + part * cube))"
    rounded = dialect.whole.format(number="number")
    text = f"""SELECT CAST(client AS {dialect.text}) AS client, COUNT(*) AS records,
  SUM(class) AS positives,
  SUM(CASE WHEN number < {dialect.literal(pieces.least)} THEN {pieces.least}
    WHEN number > {dialect.literal(pieces.largest)} THEN {pieces.largest}
    ELSE {rounded} END) AS total
FROM (
  SELECT client, class, {number} AS number
  FROM (
    SELECT client, class, constant, linear, square, cube,
{indented(_part(pieces, dialect), 6)} AS part
    FROM {_placed(relation, pieces.edges, bins)} AS placed_records
    JOIN {cubics.source(dialect)} ON piece = 2 * cell + class
  ) AS parted_records
) AS evaluated_records
GROUP BY client"""
    tables = (cubics,) if dialect.given_tables else ()
    return Statement(text, tables if bins is None else (*tables, bins.table))


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
        knot, width = map(dialect.literal, below)
        # w / (w + k - s)
        cases.append(f"WHEN score < {knot} THEN {width} / ({width} + ({knot} - score))")
    if above is not None:
        knot, width = map(dialect.literal, above)
        # 1 - w / (w + s - k)
        cases.append(f"WHEN score >= {knot} THEN 1e0 - {width} / ({width} + (score - ({knot})))")
    if not cases:
        return "score - origin"
    listed = "\n  ".join(cases)
    return f"CASE {listed}\n  ELSE score - origin END"


def _placed(relation: Relation, edges: Floats, bins: Bins | None) -> str:
    """The valid records with their cells, in brackets."""
    dialect = relation.dialect
    client = "''" if relation.client is None else dialect.quoted(relation.client)
    read = f"""SELECT {client} AS client, {relation.class_value} AS class,
    {relation.score_value} AS score
  FROM {relation.table}"""
    if bins is None:
        cell = indented(cell_expression("score", edges, dialect), 4)
        return f"""(
  SELECT client, class, score,
{cell} AS cell
  FROM (
  {read}
  ) AS scored_records
  WHERE class >= 0 AND {dialect.is_finite("score")}
)"""
    low, factor = dialect.literal(bins.low), dialect.literal(bins.factor)
    return f"""(
  SELECT client, class, score,
{indented(_cell(bins, dialect), 4)} AS cell
  FROM (
    SELECT client, class, score,
      TRY_CAST(FLOOR((score - ({low})) * {factor}) AS INTEGER) AS bin
    FROM (
  {read}
    ) AS scored_records
    WHERE class >= 0
  ) AS binned_records
  JOIN {bins.table.source(dialect)} USING (bin)
)"""


def _cell(bins: Bins, dialect: Dialect) -> str:
    """How many edges are at most the score: those of lower bins, and of its own."""
    alone = "below + CAST(score >= alone AS INTEGER)"
    values, counts = bins.crowded
    if not values.size:
        return alone
    tree = tree_expression("score", values, counts, dialect)
    return f"CASE WHEN ISNAN(alone) THEN GREATEST(below,\n{indented(tree, 2)})\nELSE {alone} END"
