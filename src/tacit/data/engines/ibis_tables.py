"""Tables of warehouses by Ibis, which has their drivers, their dialects and the way to Arrow.

A statement is written in the backend's dialect where ``tacit`` has one, else in plain SQL that
sqlglot, which Ibis has, writes in the backend's: comparisons with doubles with all their digits, so
every engine finds the same cells. The records are a table expression, a query inside the statement.

Ibis is told the types of an answer. It would ask the backend, by a view in the user's schema or by
methods that a newer driver no longer has, and ``tacit`` reads with the rights to read alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from tacit.data.engines import relations
from tacit.data.engines.adding import named_errors
from tacit.data.engines.pieces import ConstantTable
from tacit.data.engines.relations import DIALECTS, DUCKDB, Dialect, Relation
from tacit.data.errors import DataError
from tacit.extras import extra

RECORDS = "tacit_records"
"""The table expression's name in statements."""

FINITE = "ABS({score}) <= 1.7976931348623157e308"
PLAIN = replace(DUCKDB, finite=FINITE, nan="ISNAN({number})", given_tables=False, trim=Dialect.trim)
"""What sqlglot writes in every dialect; NaN is above all numbers or not comparable."""

SAME = {"duckdb": replace(DUCKDB, given_tables=False), "pyspark": DIALECTS["spark"]}
"""Dialects by the name of Ibis' backend, where it is another."""


class IbisEngine:
    """The backend of a table expression.

    Parameters
    ----------
    source : what errors call the table.
    table : the table expression; statements read it as ``records``.

    Raises
    ------
    DataError : for an expression of no backend, or of several.
    """

    most_cells = 1 << 12  # sqlglot reads a statement of 4,096 cells in 5 s
    batch_rows = 1 << 17
    records = RECORDS

    def __init__(self, source: str, table: Any) -> None:
        self.source = source
        self._sqlglot = extra("sqlglot", "a table of Ibis needs Ibis", "'tacit[ibis]'")
        with named_errors(source):
            self._backend = table.get_backend()
            self._schema = table.schema()
            query = self._backend.compile(table)
            self._records = self._sqlglot.parse_one(query, read=self._backend.dialect)

    @property
    def dialect(self) -> Dialect:
        """In which statements are written."""
        return SAME.get(self._backend.name, DIALECTS.get(self._backend.name, PLAIN))

    def kinds(self, relation: Relation) -> dict[str, str]:
        """The kind of every column by its name: of the table, or of what was drawn of it."""
        if relation.table == RECORDS:
            return {name: _kind_of(kind) for name, kind in self._schema.items()}
        drawn = dict.fromkeys((relation.client, relation.group), relations.TEXT)
        drawn |= {relation.score: relations.NUMBER, relation.label: relation.label_kind}
        drawn |= dict.fromkeys(relation.more_numbers.values(), relations.NUMBER)
        return {name: kind for name, kind in drawn.items() if name is not None}

    def kept(self, query: str) -> tuple[IbisEngine, str]:
        """The query itself: a session that only reads makes no table."""
        return self, f"({query}\n) AS kept_records"

    def rows(self, statement: str, tables: Sequence[ConstantTable] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement's answer."""
        with named_errors(self.source):
            answer = self._backend.to_pyarrow(self._answer(statement))
            return list(zip(*(column.to_pylist() for column in answer.columns), strict=True))

    def batches(
        self, statement: str, tables: Sequence[ConstantTable] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a statement's answer in batches, in their order."""
        with named_errors(self.source):
            answer = self._answer(statement)
            if self._backend.name == "duckdb":
                # Ibis calls fetch_record_batch, which DuckDB 2 no longer has
                relation = self._backend.con.sql(self._backend.compile(answer))
                reader = relation.to_arrow_reader(self.batch_rows)
            else:
                reader = self._backend.to_pyarrow_batches(answer, chunk_size=self.batch_rows)
            try:
                yield from reader
            finally:
                reader.close()

    def _answer(self, statement: str) -> Any:
        """A statement as a table expression, in its order."""
        words, backend = self._sqlglot.expressions, self._backend
        read = "duckdb" if self.dialect is PLAIN else backend.dialect
        tree = self._sqlglot.parse_one(statement, read=read)
        order = tree.args.get("order")
        tree.set("order", None)  # of a query inside a query it is not kept
        for each in list(tree.find_all(words.Table)):
            if each.name == RECORDS:
                each.replace(self._records.subquery(RECORDS))
        kinds = {each.alias_or_name: self._type_of(each) for each in tree.selects}
        answer = backend.sql(tree.sql(backend.dialect), schema=kinds)
        return answer if order is None else answer.order_by([each.name for each in order])

    def _type_of(self, column: Any) -> Any:
        """Ibis' type of a column of an answer: counts, codes and cells are whole numbers."""
        words, value = self._sqlglot.expressions, column.unalias()
        if isinstance(value, words.Column) and value.this.quoted:
            return self._schema[value.name]
        if value.is_string or value.is_type(*words.DataType.TEXT_TYPES):
            return "string"
        floats = value.is_type(*words.DataType.REAL_TYPES) or isinstance(
            value, words.Min | words.Max
        )
        return "float64" if floats else "int64"


def _kind_of(kind: Any) -> str:
    """The kind of a column of Ibis' type."""
    if kind.is_boolean():
        return relations.BOOLEAN
    if kind.is_numeric():
        exact = relations.DECIMAL if kind.is_decimal() else relations.NUMBER
        return relations.INTEGER if kind.is_integer() else exact
    return relations.TEXT if kind.is_string() else str(kind)


def connected(
    source: str, address: str, table: str | None, query: str | None, password: str | None = None
) -> IbisEngine:
    """A table or a query of the database at an address.

    Parameters
    ----------
    source : what errors call it.
    address : as ``ibis.connect`` takes it.
    table : with its schema and catalogue before dots; or
    query : one SELECT statement.
    password : which is no part of the address.

    Raises
    ------
    DataError : where it cannot be opened, and for other statements.
    ImportError : without Ibis.
    """
    ibis = extra("ibis", "a warehouse needs Ibis", "'tacit[ibis]'")
    more: dict[str, Any] = {} if password is None else {"password": password}
    if address.startswith("duckdb:"):
        more["read_only"] = True
    with named_errors(source, unquote(urlsplit(address).username or "")):
        backend = ibis.connect(address, **more)
        if query is None:
            database, _, name = str(table).rpartition(".")
            return IbisEngine(source, backend.table(name, database=database or None))
        sqlglot = extra("sqlglot", "a warehouse needs Ibis", "'tacit[ibis]'")
        parts = [each for each in sqlglot.parse(query, read=backend.dialect) if each is not None]
        if len(parts) == 1 and isinstance(parts[0], sqlglot.expressions.Query):
            return IbisEngine(source, backend.sql(parts[0].sql(backend.dialect)))
    raise DataError(f"{source} must be one SELECT statement")
