"""From addresses, patterns and large files to clients whose records stay where they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tacit.data.clients import Clients
from tacit.data.engines.places import DUCKDB_PREFIX, PARQUET, matched
from tacit.data.engines.records import Engine, EngineRecords, Progress, unshown
from tacit.data.engines.sql.dialects import DUCKDB, POSTGRES, Dialect
from tacit.data.engines.sql.statements import Relation
from tacit.data.engines.stored import StoredClients
from tacit.data.errors import DataError


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
    engine, relation = opened(address, table, query, score, label, client, passfile)
    return StoredClients(EngineRecords(engine, relation, name or table or "query", progress), unit)


def opened(
    address: str,
    table: str | None,
    query: str | None,
    score: str,
    label: str | None,
    client: str | None = None,
    passfile: Path | None = None,
) -> tuple[Engine, Relation]:
    """The engine of a database, and one of its tables; all as ``from_database`` takes them."""
    if (table is None) == (query is None):
        raise DataError("a database needs a table or a query, one of them")
    dialect = DUCKDB if address.startswith(DUCKDB_PREFIX) else POSTGRES
    called = "the query" if table is None else f"table {table}"
    relation = relation_of(dialect, table, query, score, label, client)
    return _engine(address, called, passfile), relation


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
        records.rename(file_names([given[path] for path in records.names]))
    return StoredClients(records, unit)


FILE_COLUMN = "filename"
"""The column of DuckDB that says from which file a record is."""


def file_names(paths: Sequence[str]) -> tuple[str, ...]:
    """What clients are called that are a file each: stems, or paths where stems are the same."""
    stems = [Path(path).name.removesuffix(Path(path).suffix) for path in paths]
    return tuple(
        path if stems.count(stem) > 1 else stem for path, stem in zip(paths, stems, strict=True)
    )


def _engine(address: str, called: str, passfile: Path | None) -> Engine:
    if not address.startswith(DUCKDB_PREFIX):
        from tacit.data.engines.postgres_engine import PostgresEngine  # noqa: PLC0415 -- an extra

        return PostgresEngine(address, called, passfile)
    from tacit.data.engines.duckdb_engine import DuckDBEngine  # noqa: PLC0415 -- slow to import

    file = os.fspath(address.removeprefix(DUCKDB_PREFIX))
    return DuckDBEngine(f"{file}, {called}", database=file)
