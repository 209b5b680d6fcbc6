"""Statements that list the records of a table, or say how many, which values, and wrong ones."""

from __future__ import annotations

from dataclasses import replace

from tacit.data.engines.statements import INVALID, Relation
from tacit.data.persons import DIGITS


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
    group = "''" if relation.group is None else relation.group_value
    return (
        f"SELECT CAST({dialect.quoted(relation.score)} AS {dialect.text}) AS score, "
        f"CAST({label} AS {dialect.text}) AS label, {relation.client_value} AS client, "
        f"{group} AS category FROM {relation.chosen} "
        f"WHERE {wrong} OR {relation.class_value} = {INVALID} LIMIT 1"
    )
