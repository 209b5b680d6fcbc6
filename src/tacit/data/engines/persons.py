"""Statements about whose records a table has, and which of a person's records count.

A statement draws as ``tacit.data.persons`` does, by the same digests. A table has no order of its
records, so the place of a record among the person's at a client is that in order of the values that
are read: score, then any other number, then label, then group. Records that are equal in all of
these have different places, and it does not matter which has which: nothing that is read tells them
apart. So what counts follows from the records and the seed, in whatever order an engine returns
rows.

For every seed, a person who is there or not, or whose records have other values, changes at most k
counted records: no draw of another person knows of it. Flipped labels change which record has which
label, and not which scores count: a score's place follows from scores alone. Under a guarantee
about scores, where labels are known, other scores may give the labels other places. In every order
each set of k of the person's records is drawn with the same probability, so two such tables may be
taken to count the same records: the guarantee is then over the draw, and of one state of the table.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent

from tacit.data.engines.relations import UNKNOWN, Relation
from tacit.data.persons import DIGITS


def counted_relation(
    relation: Relation, per_person: int, seed: bytes, called: str | None = None
) -> Relation:
    """The records that count, as a query in brackets: of each person at each client at most k.

    Parameters
    ----------
    relation : the table with its column of persons.
    per_person : k.
    seed : secret random bytes, which are written into the query.
    called : what the draw calls a client, as SQL of the column ``client``; None for its id as text.
    """
    dialect, quoted = relation.dialect, relation.dialect.quoted
    columns = {"score": relation.score_value}
    if relation.person_kind == UNKNOWN:
        # of a table that is not at hand it is not known that every record has a person
        columns["score"] = (
            f"CASE WHEN {_has_no_person(relation)} THEN NULL ELSE {columns['score']} END"
        )
    for name, column in (("label", relation.label), ("category", relation.group)):
        columns |= {} if column is None else {name: quoted(column)}
    columns |= {} if relation.client is None else {"client": relation.client_id}
    columns |= {name: quoted(column) for name, column in relation.more_numbers.items()}
    listed = ", ".join(map(quoted, columns))
    named = ",\n  ".join(f"{value} AS {quoted(name)}" for name, value in columns.items())
    client = quoted("client") if relation.client is not None else None
    whose = "person" if client is None else f"{client}, person"
    if called is None:
        called = "''" if client is None else f"CAST({client} AS {dialect.text})"
    digest, place = dialect.digest("person", DIGITS), f"CAST(place AS {dialect.text})"
    lot = dialect.sha256.format(text=f"'{seed.hex()}' || {digest} || {place} || ':' || {called}")
    # labels last: they change no number's place
    numbers = ", ".join(map(quoted, ("score", *relation.more_numbers)))
    by_value = f"{numbers}, {'' if relation.group is None else 'MOD(class, 2), '}class"
    # engines sort twice at once where one window reads another's rows, and a named query is kept
    query = f"""WITH placed_records AS (
  SELECT {listed}, person,
    COUNT(*) OVER (PARTITION BY {whose}) AS records,
    ROW_NUMBER() OVER (PARTITION BY {whose} ORDER BY {by_value}) AS place
  FROM (
SELECT {named},
  {relation.person_id} AS person,
  {relation.class_value} AS class
FROM {relation.chosen}
  ) AS named_records
)
SELECT {listed}
FROM placed_records
WHERE records <= {per_person}
UNION ALL
SELECT {listed}
FROM (
  SELECT {listed},
    ROW_NUMBER() OVER (PARTITION BY {whose} ORDER BY lot) AS turn
  FROM (
    SELECT {listed}, person,
      {lot} AS lot
    FROM placed_records
    WHERE records > {per_person}
  ) AS drawn_records
) AS ordered_records
WHERE turn <= {per_person}"""
    return replace(
        relation,
        table=f"(\n{indent(query, '  ')}\n) AS counted_records",
        score="score",
        label=None if relation.label is None else "label",
        client=None if relation.client is None else "client",
        group=None if relation.group is None else "category",
        person=None,
        second=None if relation.second is None else "second",
        by_class=tuple(name for name in relation.more_numbers if name != "second"),
        needed=(),
        where=(),
    )


def no_person_statement(relation: Relation) -> str:
    """The statement that has a row where a record has no person, or an empty one."""
    return f"SELECT 1 AS found FROM {relation.chosen} WHERE {_has_no_person(relation)} LIMIT 1"


def _has_no_person(relation: Relation) -> str:
    return f"COALESCE(CAST({relation.person_id} AS {relation.dialect.text}), '') = ''"


def spread_statement(relation: Relation) -> str:
    """The statement that says how many persons have records at two clients or more."""
    client = relation.client_id
    return f"""SELECT COUNT(*) AS persons
FROM (
  SELECT {relation.person_id} AS person
  FROM {relation.chosen}
  GROUP BY {relation.person_id}
  HAVING MIN({client}) <> MAX({client})
) AS spread_persons"""
