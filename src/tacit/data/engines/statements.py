"""Statements that count the records of a table, list them, or say which of them are wrong.

A record's cell is found by a balanced tree of comparisons with the cells' edges: as many
comparisons as the logarithm of the number of cells. The edges are doubles with all of their digits,
so every engine finds the cell that ``tacit`` finds.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.engines.relations import CELLS, INVALID, TOTAL, Dialect, Relation
from tacit.data.persons import DIGITS


def counting_statement(
    relation: Relation,
    edges: Floats,
    low: float = -np.inf,
    high: float = np.inf,
    mark: str | None = None,
) -> str:
    """The statement that counts records by client, class and cell.

    Parameters
    ----------
    relation : the table.
    edges : the inner edges of B cells, ascending, shape (B-1,); a record's cell is the number of
        edges that are at most its score.
    low, high : the least and the largest score there can be. Records beyond, without a score, or
        with one that is not finite, are in the cell -1.
    mark : a word for the cells, which every row of the answer repeats, as it does the number of all
        records: so an answer that lost rows is noticed. None for neither.
    """
    dialect, kept = relation.dialect, "client"
    values = [f"{relation.client_id} AS client"]
    # equal values are grouped first: what each of them means is found once
    for name, column in (("label", relation.label), ("category", relation.group)):
        if column is not None:
            values.append(f"{dialect.quoted(column)} AS {dialect.quoted(name)}")
            kept += f", {dialect.quoted(name)}"
    named = replace(relation, label=relation.label and "label", group=relation.group and "category")
    raw = (
        f"(\nSELECT {', '.join(values)},\n  {relation.score_value} AS score\n"
        f"FROM {relation.chosen}\n) AS scored_records"
    )
    source, cell = searched(raw, edges, dialect, kept)
    counted = listed = total = marked = ""
    if mark is not None:
        # of all records, and before labels are read: some engines put groups of groups together
        counted, listed = f",\n        SUM(COUNT(*)) OVER () AS {TOTAL}", f" {TOTAL},"
        total, marked = f", MAX({TOTAL}) AS {TOTAL}", f",\n  {TOTAL}, '{mark}' AS {CELLS}"
    inside = [dialect.is_finite("score")] if dialect.finite or not np.isfinite(low + high) else []
    inside += [f"score >= {dialect.literal(low)}"] if np.isfinite(low) else []
    inside += [f"score <= {dialect.literal(high)}"] if np.isfinite(high) else []
    return f"""SELECT CAST(client AS {dialect.text}) AS client, class, cell, records{marked}
FROM (
  SELECT client, class, cell, CAST(SUM(records) AS BIGINT) AS records{total}
  FROM (
    SELECT client, cell, records,{listed}
      {indent(named.class_value, 6 * " ").lstrip()} AS class
    FROM (
      SELECT {kept}, cell, COUNT(*) AS records{counted}
      FROM (
        SELECT {kept},
          CASE WHEN {" AND ".join(inside)} THEN
{indent(cell, 12 * " ")}
          ELSE {INVALID} END AS cell
        FROM {source}
      ) AS placed_records
      GROUP BY {kept}, cell
    ) AS grouped_records
  ) AS classed_records
  GROUP BY client, class, cell
) AS counted_records
ORDER BY client, class, cell"""


def cell_expression(score: str, edges: Floats, dialect: Dialect) -> str:
    """The number of ascending edges that are at most the score.

    It is a function of the dialect where there is one, else a balanced tree of comparisons. An edge
    of plus infinity is above every score.

    Examples
    --------
    >>> from tacit.data.engines.relations import DUCKDB
    >>> print(cell_expression("s", np.array([0.25, 0.5]), DUCKDB))
    CASE WHEN s >= 0.5e0 THEN
      2
    ELSE
      CASE WHEN s >= 0.25e0 THEN
        1
      ELSE
        0
      END
    END
    """
    # among equal edges only the last decides: no score is between them
    values, first = np.unique(edges[::-1], return_index=True)
    counts = edges.size - first
    finite = np.isfinite(values)
    below = int(np.count_nonzero(edges == -np.inf))
    if dialect.bucket is None or not finite.any():
        return tree_expression(score, values[finite], counts[finite], dialect, below)
    # equal edges stay: a score above them is above each of them
    bucket = dialect.bucket.format(score=score, edges=_listed(edges[np.isfinite(edges)], dialect))
    return f"{below} + {bucket}" if below else bucket


def _listed(numbers: Floats, dialect: Dialect) -> str:
    """Numbers in SQL, in lines of 4; infinity as the type of floats has it."""
    infinity = dialect.infinity or f"CAST('Infinity' AS {dialect.number})"
    listed = [dialect.literal(each) if np.isfinite(each) else infinity for each in numbers]
    lines = [", ".join(listed[start : start + 4]) for start in range(0, len(listed), 4)]
    return ",\n  ".join(lines)


def searched(
    source: str, edges: Floats, dialect: Dialect, kept: str = "client, class"
) -> tuple[str, str]:
    """Records with what their cells are found by, and the expression of the cell.

    Where a dialect has arrays, a first query finds the score's bin, of as many equal ones as there
    are edges, and how many edges are in lower bins: they are below the score, because a bin never
    falls as the score rises. Each further query is a step of a binary search among the edges of the
    bin: it adds the step to the place where the score is at least the edge there. Edges of equal
    distance need one, and none where rounding leaves the bins' ends at the edges.

    Parameters
    ----------
    source : a query of every record's score and other columns, in brackets and named.
    edges : the inner edges of B cells, ascending, shape (B-1,).
    dialect : the engine's.
    kept : the other columns.

    Examples
    --------
    >>> from tacit.data.engines.relations import SPARK
    >>> source, cell = searched("t", np.array([0.25]), SPARK)
    >>> print(source)
    (
    SELECT client, class, score,
      place + CASE WHEN score >= ARRAY(
      0.25e0, CAST('Infinity' AS DOUBLE)
    )[place] THEN 1 ELSE 0 END AS place
    FROM (
    SELECT client, class, score,
      0 AS place
    FROM t
    ) AS searched_records
    ) AS searched_records
    >>> cell
    'place'
    """
    finite = edges[np.isfinite(edges)]
    if dialect.array is None or not finite.size:
        return source, cell_expression("score", edges, dialect)
    place, most = _first_place(finite, dialect)
    steps = [1 << power for power in reversed(range(most.bit_length()))]
    # the first step is the longest: no place that it asks for is beyond these
    listed = _listed(np.append(finite, np.full(sum(steps[:1]), np.inf)), dialect)
    for step in (None, *steps):
        if step is not None:
            ahead = f"place + {step - 1}" if step > 1 else "place"
            edge = dialect.array.format(numbers=listed, place=ahead)
            place = f"place + CASE WHEN score >= {edge} THEN {step} ELSE 0 END"
        source = (
            f"(\nSELECT {kept}, score,\n  {place} AS place\nFROM {source}\n) AS searched_records"
        )
    below = int(np.count_nonzero(edges == -np.inf))
    return source, f"{below} + place" if below else "place"


def _first_place(edges: Floats, dialect: Dialect) -> tuple[str, int]:
    """How many finite edges are in lower bins than the score, and the most edges of a bin.

    Bins that end at the edges leave none to compare: each edge is then in a bin above that of the
    number before it, and in doubles, too, a bin never falls as the score rises.
    """
    count = edges.size
    with np.errstate(all="ignore"):
        width = (edges[-1] - edges[0]) / (count - 1)
        even = (edges[0] - width, 1 / width, count)
        ends = np.arange(count + 1)
        if all(
            np.array_equal(_bin(scores, *even), bins)
            for scores, bins in ((edges, ends[1:]), (np.nextafter(edges, -np.inf), ends[:-1]))
        ):
            return _bin_expression(*even, dialect), 0
        other = (edges[0], count / (edges[-1] - edges[0]), count - 1)
    if dialect.array is None or not 0 < other[1] < np.inf:
        return "0", count
    bins = _bin(edges, *other).astype(np.int64)
    number = _bin_expression(*other, dialect)
    below = np.searchsorted(bins, ends[:-1])
    if np.array_equal(below, bins):
        return number, 1  # each bin has one edge
    listed = ", ".join(map(str, below))
    return dialect.array.format(numbers=listed, place=number), int(np.bincount(bins).max())


def _bin(scores: Floats, low: float, factor: float, last: int) -> Floats:
    """The bin of each score, as the statement finds it: floor((s - low) * factor), in 0 to last."""
    return np.floor(np.clip((scores - low) * factor, 0, last))


def _bin_expression(low: float, factor: float, last: int, dialect: Dialect) -> str:
    moved = f"(score - ({dialect.literal(low)})) * {dialect.literal(factor)}"
    return f"CAST(FLOOR(LEAST(GREATEST({moved}, 0e0), {dialect.literal(last)})) AS INT)"


def tree_expression(
    score: str, values: Floats, counts: Integers, dialect: Dialect, below: int = 0
) -> str:
    """The count of the largest value that is at most the score, by a balanced tree.

    Parameters
    ----------
    score : the score in SQL.
    values : ascending and finite, shape (B,); of equal ones the last counts.
    counts : of each value, shape (B,).
    dialect : the engine's.
    below : what it is for a score below all values.
    """
    if not values.size:
        return str(below)
    middle = values.size // 2
    upper, lower = slice(middle + 1, None), slice(middle)
    above = tree_expression(score, values[upper], counts[upper], dialect, int(counts[middle]))
    under = tree_expression(score, values[lower], counts[lower], dialect, below)
    return (
        f"CASE WHEN {score} >= {dialect.literal(values[middle])} THEN\n{indent(above, '  ')}\n"
        f"ELSE\n{indent(under, '  ')}\nEND"
    )


def records_statement(relation: Relation) -> str:
    """The statement that lists every record's client, class and score.

    Then its second value, its score of every class as ``class_0`` and so on, and its person's
    digest, where it has such.
    """
    client = "" if relation.client is None else f"{relation.client_value} AS client, "
    listed = "".join(
        f", {replace(relation, score=column).score_value} AS {name}"
        for name, column in relation.more_numbers.items()
    )
    if relation.person is not None:
        listed += f", {relation.dialect.digest(relation.person_id, DIGITS)} AS person"
    return (
        f"SELECT {client}{relation.class_value} AS class, {relation.score_value} AS score{listed} "
        f"FROM {relation.chosen}"
    )


def ascending_statement(relation: Relation) -> str:
    """The statement that lists every record in ascending order of its score.

    Its columns are those of ``records_statement``. A dialect that is given tables has ``code`` in
    place of class and client, which is ``2 * whose + class``: whole numbers are sorted faster than
    names. The table ``tacit_clients`` has the clients' indices; records of other clients, and
    records without a valid label, have no code.
    """
    if not relation.dialect.given_tables:
        return f"{records_statement(relation)} ORDER BY score"
    code, joined = "class", ""
    if relation.client is not None:
        code, joined = "2 * whose + class", "LEFT JOIN tacit_clients USING (client)"
    return f"""SELECT score, CAST(CASE WHEN class >= 0 THEN {code} END AS INTEGER) AS code
FROM (
  SELECT {relation.client_value} AS client, {relation.class_value} AS class,
    {relation.score_value} AS score
  FROM {relation.chosen}
) AS listed_records {joined}
ORDER BY score"""


def summary_statement(relation: Relation) -> str:
    """The statement that says of every client: records, positives, and what is not valid.

    Its columns: the client; records; positives; labels other than 0 and 1, and groups that are not
    agreed; scores that are missing or not finite; the least and the largest score.
    """
    finite = relation.dialect.is_finite("score")
    return f"""SELECT CAST(client AS {relation.dialect.text}) AS client, COUNT(*) AS records,
  SUM(CASE WHEN MOD(class, 2) = 1 THEN 1 ELSE 0 END) AS positives,
  SUM(CASE WHEN class = {INVALID} THEN 1 ELSE 0 END) AS wrong_labels,
  SUM(CASE WHEN {finite} THEN 0 ELSE 1 END) AS wrong_scores,
  MIN(score) AS low, MAX(score) AS high
FROM {relation.scored}
GROUP BY scored_records.client"""


def left_out_statement(relation: Relation) -> str:
    """The statement that counts by client the records that are left out for want of a value.

    Its columns: the client; records without a score or second value; those without a label alone.
    """
    scores = " OR ".join(relation.lacks(name) for name in relation.needed if name != relation.label)
    return f"""SELECT CAST(client AS {relation.dialect.text}) AS client,
  SUM(no_score) AS no_score, SUM(1 - no_score) AS no_label
FROM (
  SELECT {relation.client_id} AS client, CASE WHEN {scores} THEN 1 ELSE 0 END AS no_score
  FROM {relation.incomplete}
) AS left_out_records
GROUP BY client"""


def values_statement(relation: Relation, column: str, most: int) -> str:
    """The statement that lists the different values of a column as text, at most so many."""
    return f"SELECT DISTINCT {relation.as_text(column)} FROM {relation.chosen} LIMIT {most}"


def first_wrong_statement(relation: Relation) -> str:
    """The statement that shows a record whose label, score or group is not valid, as stored."""
    dialect = relation.dialect
    wrong = f"NOT COALESCE({dialect.is_finite(relation.score_value)}, FALSE)"
    label = "'0'" if relation.label is None else dialect.quoted(relation.label)
    group = "''" if relation.group is None else relation.as_text(relation.group)
    return (
        f"SELECT {relation.as_text(relation.score)} AS score, "
        f"CAST({label} AS {dialect.text}) AS label, {relation.client_value} AS client, "
        f"{group} AS category FROM {relation.chosen} "
        f"WHERE {wrong} OR {relation.class_value} = {INVALID} LIMIT 1"
    )
