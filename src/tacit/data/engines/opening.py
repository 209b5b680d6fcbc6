"""From addresses, patterns and large files to clients whose records stay where they are.

A table of a database as a party's file names it: never with a password.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tacit.data.clients import Clients
from tacit.data.engines.places import DUCKDB_PREFIX, PARQUET, matched, public_address
from tacit.data.engines.records import Engine, EngineRecords, Progress, unshown
from tacit.data.engines.sql.dialects import DUCKDB, POSTGRES, Dialect
from tacit.data.engines.sql.statements import Relation
from tacit.data.engines.stored import StoredClients
from tacit.data.errors import DataError
from tacit.data.tables.reading import file_names


def from_database(
    address: str,
    table: str | None = None,
    query: str | None = None,
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    unit: str | None = None,
    name: str = "",
    passfile: Path | None = None,
    progress: Progress = unshown,
) -> Clients:
    """Clients whose records stay in a database.

    Parameters
    ----------
    address : ``postgresql://user@host:port/database`` or ``duckdb://file``, without a password:
        libpq takes that from ``PGPASSWORD`` or from the file that ``PGPASSFILE`` names.
    table : the table, with its schema before a dot; or
    query : a query that gives the records.
    score, label, client, unit : as ``tacit.read`` takes them.
    name : the only client's name, where no column names clients.
    passfile : the file of the password; None for libpq's own places.
    progress : begins a pass over so many records, and receives how many more were read.

    Raises
    ------
    DataError : for a table that cannot be read, and for records that cannot be used, as
        ``tacit.read``.
    """
    engine, relation = DatabaseTable(address, table, query, passfile).opened(score, label, client)
    return StoredClients(EngineRecords(engine, relation, name or table or "query", progress), unit)


def relation_of(
    dialect: Dialect,
    table: str | None,
    query: str | None,
    score: str,
    label: str | None,
    client: str | None,
) -> Relation:
    """A table or a query with the columns that are read of it."""
    if query is not None:
        # on a line of its own the bracket is no part of a comment at the query's end
        source = f"({query.strip().rstrip(';')}\n) AS records"
        return Relation(dialect, source, score, label, client)
    return Relation(dialect, dialect.table(table or ""), score, label, client)


def from_files(
    sources: Sequence[str],
    score: str = "score",
    label: str | None = "label",
    client: str | None = None,
    unit: str | None = None,
    progress: Progress = unshown,
) -> Clients:
    """Clients whose records stay in Parquet files: larger than memory, a pattern or a folder.

    Parameters
    ----------
    sources : files, patterns such as ``scores/*.parquet``, and folders.
    score, label, unit : as ``tacit.read`` takes them.
    client : the column of client ids, by which records of all files are put together; None for
        one client a file.
    progress : as ``from_database`` takes it.

    Raises
    ------
    DataError : for a pattern without files, and for records that cannot be used.
    """
    from tacit.data.engines.duckdb_engine import DuckDBEngine, parquet_table  # noqa: PLC0415

    files = matched(sources)
    other = [file for file in files if Path(file).suffix.lower() not in PARQUET]
    if other:
        raise DataError(f"files of a pattern or folder must be Parquet files, got {other[0]}")
    called = files[0] if len(files) == 1 else f"{sources[0]} ({len(files)} files)"
    given = {str(Path(file).absolute()): file for file in files}
    engine = DuckDBEngine(called, files=list(given))
    relation = Relation(DUCKDB, parquet_table(list(given)), score, label, client or FILE_COLUMN)
    records = EngineRecords(engine, relation, progress=progress)
    if client is None:
        records.names = file_names([given[path] for path in records.names])
    return StoredClients(records, unit)


FILE_COLUMN = "filename"
"""The column of DuckDB that says from which file a record is."""


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

        A database may return rows in another order for every message of a run, and what a party
        remembers of its records is by their places. Equal records have equal places.

        Raises
        ------
        DataError : for a table that cannot be read, and records that cannot be used.
        """
        stored = from_database(
            self.address, self.table, self.query, score, label, name=name, passfile=self.passfile
        )
        records = stored.in_memory() if isinstance(stored, StoredClients) else stored
        order = np.lexsort((records.labels, records.scores))
        return replace(records, scores=records.scores[order], labels=records.labels[order])

    def read_classes(
        self, scores: Sequence[str], label: str, names: Sequence[str], name: str
    ) -> Clients:
        """All records with their classes, as one client in memory; as ``classes_of_table``."""
        from tacit.data.engines.categories import classes_of_table  # noqa: PLC0415 -- Arrow

        engine, relation = self.opened(scores[0], None)
        read = classes_of_table(engine, relation, scores, label, names)
        return replace(read, names=(name,))

    def read_groups(
        self, group: str, names: Sequence[str], score: str, label: str, name: str
    ) -> Clients:
        """All records with their private groups, as one client in memory: ``groups_of_table``."""
        from tacit.data.engines.categories import groups_of_table  # noqa: PLC0415 -- Arrow

        engine, relation = self.opened(score, label)
        return replace(groups_of_table(engine, relation, group, names), names=(name,))

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
