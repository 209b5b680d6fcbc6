"""How engines write names, numbers and types in SQL, and what a table's columns mean in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from tacit.data.errors import DataError
from tacit.data.form import LABEL_WORDS
from tacit.data.units import LinearMap

CLIENT, CLASS, CELL, RECORDS = "client", "class", "cell", "records"
TOTAL, CELLS = "total", "cells"
"""The columns of a statement's answer: whose records, their label, their cell, how many; and in
every row how many there are in all rows, and which cells these are."""

INVALID = -1
"""The class or the cell of a record that has no valid label or score."""

NUMBER, INTEGER, BOOLEAN, TEXT, UNKNOWN = "number", "integer", "boolean", "text", "unknown"
DECIMAL = "decimal"
"""What is known about the type of a column; decimals are no floats."""


IN_QUOTES = re.compile(r'"(?:[^"]|"")+"')
BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
DOT = re.compile(r'\.(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A name in quotation marks, one that needs none, and a dot outside of them."""


@dataclass(frozen=True)
class Dialect:
    """What differs between the engines' SQL in the statements that count records.

    Parameters
    ----------
    name : the engine.
    number, text : the types of 64-bit floats and of text.
    quote : the sign around a name; doubled inside of it.
    infinity : the largest value of the type of floats; None for the word's cast.
    given_tables : whether tables of numbers are given to the engine with a statement, by name.
    finite : what says that a score is a finite number; None for comparisons with infinity. DuckDB
        leaves those out where a Parquet file's statistics say so, and they do not count NaN.
    nan : what says that a number is NaN, which some engines take for equal to itself. DuckDB's
        ``ISNAN`` is false where a Parquet file's statistics leave NaN out.
    bucket : the function that says how many of some ascending edges are at most a score; None where
        there is none.
    sha256 : the function that gives the SHA-256 digest of a text, in small hexadecimal digits.
    trim : what removes blanks from the ends of a person's id; by default, those of the engine.
    """

    name: str
    number: str = "DOUBLE"
    text: str = "VARCHAR"
    quote: str = '"'
    infinity: str | None = None
    bucket: str | None = None
    array: str | None = None
    finite: str | None = None
    nan: str = "{number} <> {number} OR {number} = CAST('NaN' AS {floats})"
    given_tables: bool = False
    stores_upper: bool = False
    sha256: str = "SHA2({text}, 256)"
    trim: str = "TRIM({text})"

    def digest(self, person: str, digits: int) -> str:
        """The first digits of the digest of an id of persons."""
        text = self.sha256.format(text=f"CAST({person} AS {self.text})")
        return f"SUBSTR({text}, 1, {digits})"

    def is_nan(self, number: str) -> str:
        """The condition that a number is NaN."""
        return self.nan.format(number=number, floats=self.number)

    def is_finite(self, score: str) -> str:
        """The condition that a score is a finite number: false for NaN, not true for NULL."""
        if self.finite is not None:
            return self.finite.format(score=score)
        infinity = self.infinity or f"CAST('Infinity' AS {self.number})"
        return f"{score} > -{infinity} AND {score} < {infinity}"

    def quoted(self, name: str) -> str:
        """A name as an identifier: SQL in it is a part of the name.

        Raises
        ------
        DataError : for an empty name, or one with a character that ends a text.

        Examples
        --------
        >>> DUCKDB.quoted('score"; DROP TABLE scored; --')
        '"score""; DROP TABLE scored; --"'
        """
        if not name or "\0" in name:
            raise DataError(f"a name in SQL must be a text without a null character, got {name!r}")
        if self.quote == "`" and "\\" in name:
            raise DataError(f"a name in {self.name} must be without backslashes, got {name!r}")
        inside = "\\`" if self.name == "bigquery" else 2 * self.quote
        return f"{self.quote}{name.replace(self.quote, inside)}{self.quote}"

    def stored(self, name: str) -> str:
        """A name as the engine stores it: as written where it is in double quotation marks.

        Examples
        --------
        >>> SNOWFLAKE.stored("score"), SNOWFLAKE.stored('"score"'), POSTGRES.stored("Score")
        ('SCORE', 'score', 'Score')
        """
        if IN_QUOTES.fullmatch(name):
            return name[1:-1].replace('""', '"')
        return name.upper() if self.stores_upper and BARE.fullmatch(name) else name

    def table(self, name: str) -> str:
        """A table's name, with its schema and catalogue before dots that are in no quotation marks.

        Examples
        --------
        >>> SNOWFLAKE.table('clinic."a.b"'), DUCKDB.table("clinic.scored")
        ('"CLINIC"."a.b"', '"clinic"."scored"')
        """
        return ".".join(self.quoted(self.stored(part)) for part in DOT.split(name))

    def source(self, table: str | None, query: str | None) -> str:
        """A table, or a query, as what records are selected from."""
        if query is None:
            return self.table(table or "")
        # on a line of its own the bracket is no part of a comment at the query's end
        return f"({query.strip().rstrip(';')}\n) AS records"

    def literal(self, number: float) -> str:
        """A finite double, with all of its digits and an exponent: engines read it as a float.

        Examples
        --------
        >>> DUCKDB.literal(0.1), POSTGRES.literal(-1e-10)
        ('0.1e0', '-1e-10')
        """
        digits = repr(float(number))
        return digits if "e" in digits else f"{digits}e0"


BLANKS = "".join(filter(str.isspace, map(chr, range(2**14))))
"""What memory removes from the ends of a person's id."""


def _trim(blanks: str) -> str:
    return f"TRIM({{text}}, {' || '.join(f'CHR({ord(each)})' for each in blanks)})"


DUCKDB = Dialect(
    "duckdb",
    finite="ISFINITE({score})",
    nan="NOT (ISFINITE({number}) OR ISINF({number}))",
    given_tables=True,
    sha256="SHA256({text})",
    trim=_trim(BLANKS),
)
POSTGRES = Dialect(
    "postgres",
    "double precision",
    "text",
    bucket="width_bucket({score}, CAST(ARRAY[\n  {edges}\n] AS double precision[]))",
    sha256="ENCODE(SHA256(CONVERT_TO({text}, 'UTF8')), 'hex')",
    trim=_trim("\t\n\v\f\r "),
)
BIGQUERY = Dialect(
    "bigquery",
    "FLOAT64",
    "STRING",
    "`",
    infinity="CAST('inf' AS FLOAT64)",
    bucket="RANGE_BUCKET({score}, [\n  {edges}\n])",
    sha256="TO_HEX(SHA256({text}))",
)
SNOWFLAKE = Dialect(
    "snowflake", stores_upper=True, infinity="CAST('inf' AS DOUBLE)", trim=_trim(BLANKS)
)
DATABRICKS, SPARK = (
    Dialect(
        name,
        text="STRING",
        quote="`",
        array="ARRAY(\n  {numbers}\n)[{place}]",
        # CHR gives no character above 255 there
        trim=f"BTRIM({{text}}, DECODE(UNHEX('{BLANKS.encode().hex()}'), 'UTF-8'))",
    )
    for name in ("databricks", "spark")
)
TRINO = Dialect(
    "trino",
    infinity="infinity()",
    bucket="width_bucket({score}, ARRAY[\n  {edges}\n])",
    sha256="LOWER(TO_HEX(SHA256(TO_UTF8({text}))))",
)
DIALECTS = {
    each.name: each for each in (DUCKDB, POSTGRES, BIGQUERY, SNOWFLAKE, DATABRICKS, SPARK, TRINO)
}
"""All engines for which statements are written, by name."""


@dataclass(frozen=True)
class Relation:
    """A table with the columns that are read of it.

    Parameters
    ----------
    dialect : the engine's.
    table : the table, or a query in brackets, as SQL.
    score, label : the names of the columns; None for records without labels.
    client : the column of clients; None where all records are one client's.
    score_kind, label_kind : what is known about the types of scores and labels.
    maps : through which scores go one after another.
    group, groups : the column of private groups and their agreed names, which are strata of the
        classes; None and none where records have no groups.
    person : the column of persons; None where nothing says whose records these are.
    person_kind : what is known about the type of persons.
    second : the column of second values; None where records have none.
    by_class : the columns of scores of each class; empty where a record has one score.
    words : labels as text, and what they mean; None for labels that are 0 or 1.
    needed : columns without whose values a record is left out.
    where : columns, and the text that they hold in the records that are read; of others none is.
    """

    dialect: Dialect
    table: str
    score: str
    label: str | None
    client: str | None = None
    label_kind: str = UNKNOWN
    maps: tuple[LinearMap, ...] = ()
    group: str | None = None
    groups: tuple[str, ...] = ()
    person: str | None = None
    person_kind: str = UNKNOWN
    second: str | None = None
    by_class: tuple[str, ...] = ()
    words: tuple[tuple[str, int], ...] | None = None
    needed: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    score_kind: str = UNKNOWN

    @property
    def chosen(self) -> str:
        """The records that are read: those of the table, or a query in brackets."""
        return self._that([f"NOT ({self.lacks(name)})" for name in self.needed])

    @property
    def incomplete(self) -> str:
        """The records that are left out for want of a value, as ``chosen``."""
        return self._that([f"({' OR '.join(map(self.lacks, self.needed))})"])

    def _that(self, conditions: list[str]) -> str:
        """The records of the table that meet some conditions besides ``where``."""
        held = [f"{self.as_text(column)} = {text_literal(value)}" for column, value in self.where]
        listed = "\n  AND ".join(held + conditions)
        if not listed:
            return self.table
        return f"(\nSELECT * FROM {self.table}\nWHERE {listed}\n) AS chosen_records"

    def as_text(self, column: str) -> str:
        """A column's value as text."""
        return f"CAST({self.dialect.quoted(column)} AS {self.dialect.text})"

    def lacks(self, column: str) -> str:
        """The condition that a record has no value in a column of scores or labels: no NULL."""
        quoted = self.dialect.quoted(column)
        missing = f"{quoted} IS NULL"
        if column == self.label and self.words is not None:
            listed = ", ".join(text_literal(word) for word, _ in self.words)
            return f"{missing} OR {self.as_text(column)} NOT IN ({listed})"
        if column == self.label and self.label_kind == BOOLEAN:
            return missing
        return f"{missing} OR {self.dialect.is_nan(f'CAST({quoted} AS {self.dialect.number})')}"

    @property
    def more_numbers(self) -> dict[str, str]:
        """The columns of second values and of scores of each class, by what answers call them."""
        more = {"second": self.second} if self.second is not None else {}
        return more | {f"class_{number}": name for number, name in enumerate(self.by_class)}

    @property
    def strata(self) -> int:
        """The number of groups, and 1 where there are none."""
        return max(len(self.groups), 1)

    @property
    def score_value(self) -> str:
        """The score as a double; with ends of its images, NULL where it is not finite."""
        value = f"CAST({self.dialect.quoted(self.score)} AS {self.dialect.number})"
        for each in self.maps:
            value = linear_expression(value, each, self.dialect)
        return value

    @property
    def class_value(self) -> str:
        """1 for a positive record, 0 for a negative one, and -1 for any other label.

        2 more for each group that is named before the record's own; -1 for none of the groups.
        """
        if self.group is None:
            return self._label_value
        cases = [f"WHEN {text_literal(name)} THEN {2 * n}" for n, name in enumerate(self.groups)]
        return (
            f"CASE WHEN {self._label_value} >= 0 THEN COALESCE({self._label_value} + "
            f"CASE {self.as_text(self.group)} {' '.join(cases)} END, {INVALID}) ELSE {INVALID} END"
        )

    @property
    def _label_value(self) -> str:
        if self.label is None:
            return "0"
        label = self.dialect.quoted(self.label)
        if self.words is not None:
            cases = " ".join(f"WHEN {text_literal(word)} THEN {n}" for word, n in self.words)
            return f"CASE {self.as_text(self.label)} {cases} ELSE {INVALID} END"
        if self.label_kind == BOOLEAN:
            positive, negative = label, f"NOT {label}"
        elif self.label_kind in {NUMBER, INTEGER, DECIMAL}:
            positive, negative = f"{label} = 1", f"{label} = 0"
        else:
            text = f"LOWER(TRIM({self.as_text(self.label)}))"
            positive, negative = (_means_label(text, label) for label in (1, 0))
        return f"CASE WHEN {positive} THEN 1\n  WHEN {negative} THEN 0\n  ELSE {INVALID} END"

    @property
    def scored(self) -> str:
        """A query of every record's client, class and score, in brackets."""
        return f"""(
SELECT {self.client_id} AS client,
  {self.class_value} AS class,
  {self.score_value} AS score
FROM {self.chosen}
) AS scored_records"""

    @property
    def client_id(self) -> str:
        """The client's id as it is stored; an empty text where all records are one client's."""
        return "''" if self.client is None else self.dialect.quoted(self.client)

    @property
    def client_value(self) -> str:
        """The client's id as text; an empty text where all records are one client's."""
        return "''" if self.client is None else f"CAST({self.client_id} AS {self.dialect.text})"

    @property
    def person_id(self) -> str:
        """The person's id: an integer, or a text without blanks at its ends."""
        person = self.dialect.quoted(self.person or "")
        if self.person_kind == INTEGER:
            return person
        return self.dialect.trim.format(text=f"CAST({person} AS {self.dialect.text})")


def _means_label(text: str, label: int) -> str:
    """The condition that a text is a word for a label, with any zeros behind a decimal point."""
    words = [word for word, meant in LABEL_WORDS.items() if meant == label]
    listed = ", ".join(map(text_literal, words))
    # a DECIMAL is written as 1.00, a double of Trino as 1.0E0
    bare = str(label).replace("0", "")
    zeros = f"REPLACE({text}, '0', '') IN ('{bare}.', '{bare}.e')"
    return f"{text} IN ({listed})\n  OR ({text} LIKE '{label}.%' AND {zeros})"


def plain_text(text: str) -> str:
    """A text in SQL, for engines to which a backslash is a character as any other."""
    return "'" + text.replace("'", "''") + "'"


def text_literal(text: str) -> str:
    """A text in SQL, of characters that all dialects write alike.

    Raises
    ------
    DataError : for a quotation mark, a backslash or a line's end, which they do not.

    Examples
    --------
    >>> text_literal("day ward")
    "'day ward'"
    """
    if set(text) & set("'\\\n\r\0"):
        raise DataError(f"a group or label in a database cannot be called {text!r:.60}")
    return f"'{text}'"


def linear_expression(score: str, mapped: LinearMap, dialect: Dialect) -> str:
    """The image of a score in SQL.

    Examples
    --------
    >>> linear_expression("s", LinearMap(0.5, 2.0), DUCKDB)
    '((s - (0.5e0)) / 2.0e0)'
    >>> print(linear_expression("s", LinearMap(high=1.0), DUCKDB))
    CASE WHEN ISFINITE(s) THEN
      CASE WHEN s > 1.0e0 THEN 1.0e0
      ELSE s END END
    """
    moved = score
    if mapped.moves:
        shift, divisor = dialect.literal(mapped.shift), dialect.literal(mapped.divisor)
        moved = f"(({score} - ({shift})) / {divisor})"
    ends = [
        (sign, end) for sign, end in (("<", mapped.low), (">", mapped.high)) if np.isfinite(end)
    ]
    if not ends:
        return moved
    cases = "\n  ".join(
        f"WHEN {moved} {sign} {dialect.literal(end)} THEN {dialect.literal(end)}"
        for sign, end in ends
    )
    # engines take NaN for the largest number, which would become an end
    return f"CASE WHEN {dialect.is_finite(score)} THEN\n  CASE {cases}\n  ELSE {moved} END END"
