"""A table of a database as a party's file names it, never with a password, and its records.

A database may return rows in another order for every message of a run, and what a party remembers
of its records is by their places. So records in memory are in the order of their values: equal
records have equal places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.arrays import Floats
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.data.engines.places import DUCKDB_PREFIX, public_address
from tacit.data.engines.records import Engine, EngineRecords, require_columns
from tacit.data.engines.sql.dialects import DUCKDB, POSTGRES
from tacit.data.engines.sql.statements import INVALID, Relation, relation_of
from tacit.data.engines.stored import StoredClients
from tacit.data.errors import DataError
from tacit.data.tables.frames import Columns, collect

CATEGORY, LABEL = "category", "class"
"""The columns of a statement's answer beside those of scores."""


@dataclass(frozen=True)
class DatabaseTable:
    """Where a party's records are, if they are in a database.

    Parameters
    ----------
    address : of the database, as ``from_database`` takes it.
    table, query : one of them.
    passfile : the file of a password, as libpq reads it; None for libpq's own places.
    """

    address: str
    table: str | None = None
    query: str | None = None
    passfile: Path | None = None

    def __str__(self) -> str:
        """What messages call it: without user and password."""
        called = "a query" if self.table is None else f"table {self.table}"
        return f"{called} of {self.public_address}"

    @property
    def public_address(self) -> str:
        """The address without its user.

        Raises
        ------
        DataError : for an address with a password.
        """
        if self.address.startswith(DUCKDB_PREFIX):
            return self.address
        return public_address(self.address)

    def at(self, home: Path) -> DatabaseTable:
        """The same with whole paths, those in it being relative to a folder."""
        address = self.address
        if address.startswith(DUCKDB_PREFIX):
            address = f"{DUCKDB_PREFIX}{home / address.removeprefix(DUCKDB_PREFIX)}"
        passfile = None if self.passfile is None else home / self.passfile
        return DatabaseTable(address, self.table, self.query, passfile)

    def settings(self) -> dict[str, str]:
        """The keys of a party's file that name it."""
        named = {"records": self.address, "table": self.table, "query": self.query}
        named["passfile"] = None if self.passfile is None else str(self.passfile)
        return {key: value for key, value in named.items() if value is not None}

    def read(self, score: str, label: str | None, name: str) -> Clients:
        """All records as one client, in memory, in the order of their scores and labels.

        Raises
        ------
        DataError : for a table that cannot be read, and records that cannot be used.
        """
        records = StoredClients(EngineRecords(*self.opened(score, label), name)).in_memory()
        order = np.lexsort((records.labels, records.scores))
        return replace(records, scores=records.scores[order], labels=records.labels[order])

    def read_classes(
        self, scores: Sequence[str], label: str, names: Sequence[str], name: str
    ) -> Clients:
        """One client, in memory, with the class of every record and its score of every class.

        Parameters
        ----------
        scores : the columns of scores, one for each class.
        label : the column of labels: the classes' names, or their indices from 0.
        names : the agreed classes, in the order of the columns.
        name : the client's.

        Raises
        ------
        DataError : for a column that is not there, a value that is missing or not finite, and a
            label that is no class.
        """
        engine, relation = self.opened(scores[0], None)
        require_columns(engine, engine.kinds(relation), (*scores, label))
        numbered = [replace(relation, score=column) for column in scores]
        listed = {f"score {index}": each.score_value for index, each in enumerate(numbered)}
        table = _listed(engine, relation, listed | {CATEGORY: _as_text(relation, label)})
        matrix = np.stack([_numbers(engine, table, column) for column in listed], axis=1)
        made = Categories.of_values(names, _texts(table, label, engine), matrix)
        order = np.lexsort((made.of_record, *matrix.T))
        blank = np.zeros(order.size)
        clients = Clients.from_arrays(blank, blank).with_categories(made.taken(order))
        return replace(clients, names=(name,))

    def read_groups(
        self, group: str, names: Sequence[str], score: str, label: str, name: str
    ) -> Clients:
        """One client, in memory, with the private group of every record.

        Parameters
        ----------
        group : the column of groups.
        names : the agreed groups.
        score, label : the other columns.
        name : the client's.

        Raises
        ------
        DataError : as ``read_classes``, and for a record of none of the agreed groups.
        """
        engine, relation = self.opened(score, label)
        require_columns(engine, engine.kinds(relation), (score, label, group))
        values = {"score": relation.score_value, LABEL: relation.class_value}
        table = _listed(engine, relation, values | {CATEGORY: _as_text(relation, group)})
        scores, labels = _numbers(engine, table, "score"), table[LABEL].to_numpy()
        if np.any(labels == INVALID):
            raise DataError(f"labels must be 0 or 1 in all records of {engine.source}")
        made = Categories.of_values(names, _texts(table, group, engine))
        order = np.lexsort((made.of_record, labels, scores))
        clients = Clients.from_arrays(scores[order], labels[order])
        return replace(clients.with_categories(made.taken(order)), names=(name,))

    def opened(
        self, score: str, label: str | None, client: str | None = None
    ) -> tuple[Engine, Relation]:
        """The engine of the database, and the table with its columns.

        Raises
        ------
        DataError : for a table beside a query, or none of them, and where the engine is not there.
        """
        if (self.table is None) == (self.query is None):
            raise DataError("a database needs a table or a query, one of them")
        called = "the query" if self.table is None else f"table {self.table}"
        named = self.table, self.query, score, label, client
        if self.address.startswith(DUCKDB_PREFIX):
            from tacit.data.engines.duckdb_engine import DuckDBEngine  # noqa: PLC0415 -- slow

            file = self.address.removeprefix(DUCKDB_PREFIX)
            relation = relation_of(DUCKDB, *named)
            return DuckDBEngine(f"{file}, {called}", database=file), relation
        from tacit.data.engines.postgres_engine import PostgresEngine  # noqa: PLC0415 -- an extra

        relation = relation_of(POSTGRES, *named)
        return PostgresEngine(self.address, called, self.passfile), relation


def _as_text(relation: Relation, column: str) -> str:
    return f"CAST({relation.dialect.quoted(column)} AS {relation.dialect.text})"


def _listed(engine: Engine, relation: Relation, expressions: dict[str, str]) -> pa.Table:
    """The values of some expressions for every record, as columns of these names."""
    quoted = relation.dialect.quoted
    chosen = ", ".join(f"{value} AS {quoted(name)}" for name, value in expressions.items())
    batches = list(engine.batches(f"SELECT {chosen} FROM {relation.table}"))
    if not sum(batch.num_rows for batch in batches):
        raise DataError(f"{engine.source} has no records")
    return pa.Table.from_batches(batches)


def _numbers(engine: Engine, table: pa.Table, name: str) -> Floats:
    columns = Columns(name, None, None, None)
    return collect(table.select([name]).to_batches(), columns, engine.source).scores


def _texts(table: pa.Table, called: str, engine: Engine) -> Any:
    values = table[CATEGORY]
    if values.null_count:
        raise DataError(f"column {called!r} has no value in some records of {engine.source}")
    return np.array(values.to_pylist(), dtype=np.str_)
