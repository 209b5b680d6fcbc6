"""From addresses, patterns and large files to clients whose records stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tacit.data.clients import Clients
from tacit.data.engines.database_table import DatabaseTable
from tacit.data.engines.places import PARQUET, matched
from tacit.data.engines.records import EngineRecords, Progress, unshown
from tacit.data.engines.sql.dialects import DUCKDB
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
