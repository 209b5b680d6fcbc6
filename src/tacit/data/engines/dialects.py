"""How engines write names, numbers and types in SQL.

Small tables of numbers are given with a statement, or written into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from tacit.data.errors import DataError


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
    bucket : the function that says how many of some ascending edges are at most a score; None where
        there is none.
    """

    name: str
    number: str = "DOUBLE"
    text: str = "VARCHAR"
    quote: str = '"'
    infinity: str | None = None
    bucket: str | None = None
    finite: str | None = None
    given_tables: bool = False

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
        return f"{self.quote}{name.replace(self.quote, self.escaped_quote)}{self.quote}"

    @property
    def escaped_quote(self) -> str:
        """The sign around names, as it is written inside of a name."""
        return "\\`" if self.name == "bigquery" else 2 * self.quote

    def table(self, name: str) -> str:
        """A table's name, with its schema and catalogue before dots."""
        return ".".join(self.quoted(part) for part in name.split("."))

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


DUCKDB = Dialect("duckdb", finite="ISFINITE({score})", given_tables=True)
POSTGRES = Dialect(
    "postgres",
    "double precision",
    "text",
    bucket="width_bucket({score}, CAST(ARRAY[\n  {edges}\n] AS double precision[]))",
)
BIGQUERY = Dialect(
    "bigquery",
    "FLOAT64",
    "STRING",
    "`",
    infinity="CAST('inf' AS FLOAT64)",
    bucket="RANGE_BUCKET({score}, [\n  {edges}\n])",
)
SNOWFLAKE = Dialect("snowflake", infinity="CAST('inf' AS DOUBLE)")
DATABRICKS, SPARK = (Dialect(name, text="STRING", quote="`") for name in ("databricks", "spark"))
TRINO = Dialect(
    "trino", infinity="infinity()", bucket="width_bucket({score}, ARRAY[\n  {edges}\n])"
)
DIALECTS = {
    each.name: each for each in (DUCKDB, POSTGRES, BIGQUERY, SNOWFLAKE, DATABRICKS, SPARK, TRINO)
}
"""All engines for which statements are written, by name."""


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
        >>> import numpy as np
        >>> from tacit.data.engines.dialects import DUCKDB, POSTGRES
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
        written = [_written(column, dialect) for column in self.columns.values()]
        rows = ",\n  ".join(f"({', '.join(row)})" for row in zip(*written, strict=True))
        cast = ", ".join(
            name if _whole(column) else f"CAST({name} AS {dialect.number}) AS {name}"
            for name, column in self.columns.items()
        )
        listed = ", ".join(self.columns)
        return f"(SELECT {cast} FROM (VALUES\n  {rows}\n) AS listed({listed})) AS {self.name}"


def _whole(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "i"


def _written(column: NDArray[Any], dialect: Dialect) -> list[str]:
    """The numbers of a column as they are written."""
    if _whole(column):
        return [str(number) for number in column.tolist()]
    return [dialect.literal(number) for number in column.tolist()]
