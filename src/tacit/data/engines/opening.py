"""From addresses, patterns and large files to clients whose records stay where they are, or not.

A table of a database is named as in a party's file, never with a password.

A database may return rows in another order for every message of a run, and what a party remembers
of its records is by their places. So records in memory are in the order of their values: equal
records have equal places.
"""

from __future__ import annotations

import glob
import os
import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tacit.data.categories import texts_of
from tacit.data.columns import Columns
from tacit.data.engines.adding import cluster_of, named_errors
from tacit.data.engines.records import (
    Engine,
    EngineRecords,
    Known,
    Progress,
    checked,
    unshown,
    values_of,
)
from tacit.data.engines.relations import DUCKDB, POSTGRES, Relation
from tacit.data.engines.stored import StoredClients
from tacit.data.errors import DataError
from tacit.data.form import FileForm
from tacit.data.reading import FileColumns
from tacit.data.tables import RECORD_FILES, file_names, refuse_twice

SECRETS = (
    *("password", "passwd", "pwd", "passcode", "secret", "token", "scram_", "private_key"),
    *("credential", "api_key", "apikey"),
)
"""Words of the options of an address that hold a password."""

POSTGRES_PREFIXES = ("postgresql://", "postgres://")
DUCKDB_PREFIX = "duckdb://"
PASSWORD = "TACIT_DATABASE_PASSWORD"  # noqa: S105 -- its name
"""The variable of the environment that has the password of a warehouse."""
IBIS_PREFIX = "ibis+"
"""What precedes the address of a warehouse, as Ibis takes it."""
PYTHON_PREFIX = "python:"
"""What precedes the file of a program and, after a colon, its function that gives a table."""
FILE_PREFIXES = (DUCKDB_PREFIX, f"{IBIS_PREFIX}{DUCKDB_PREFIX}", PYTHON_PREFIX)
"""What precedes the file of a database or a program."""
PARQUET = (".parquet", ".pq")
PATTERN_SIGNS = "*?["

FILE_COLUMN = "filename"
"""The column of DuckDB that says from which file a record is."""

PERSONS_MEMORY = 1000
"""Megabytes of an engine in this process that draws which of a person's records count."""

LARGE_BYTES = 100_000_000
"""From this size on, Parquet files are counted where they are, not read into memory."""


def is_address(source: str) -> bool:
    """Whether a source is a database's address."""
    return source.startswith((*POSTGRES_PREFIXES, DUCKDB_PREFIX, IBIS_PREFIX, PYTHON_PREFIX))


def is_pattern(source: str) -> bool:
    """Whether a source is a pattern or a folder of files, and not a file."""
    path = Path(source)
    return path.is_dir() or (any(sign in source for sign in PATTERN_SIGNS) and not path.exists())


def is_large(sources: Sequence[str]) -> bool:
    """Whether Parquet files are too large to be read into memory for counts alone."""
    files = [Path(source) for source in sources]
    if not all(file.suffix.lower() in PARQUET and file.is_file() for file in files):
        return False
    return sum(file.stat().st_size for file in files) >= LARGE_BYTES


def files_of(sources: Sequence[str]) -> list[str]:
    """The files that are read: those of patterns and folders, too.

    Raises
    ------
    DataError : as ``matched``, where there is a pattern or folder.
    """
    return matched(sources) if any(map(is_pattern, sources)) else list(sources)


def matched(sources: Sequence[str]) -> list[str]:
    """The files of patterns and folders, in order of their names.

    Raises
    ------
    DataError : for a pattern or folder without files, and a file that is found twice.
    """
    files: list[str] = []
    for source in sources:
        if Path(source).is_dir():
            matches = _in_folder(Path(source))
        elif is_pattern(source):
            matches = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 -- also absolute
        else:
            matches = [source]
        if not matches:
            raise DataError(f"no file is found for {source}")
        files += matches
    for file in files:
        if not Path(file).is_file():
            raise DataError(f"{file} does not exist")
        # characters that are none of UTF-8, which DuckDB needs, stand for bytes of the name
        if file.encode(errors="ignore").decode() != file:
            raise DataError(f"the name of a file must be UTF-8, got {file!r}: rename it")
    refuse_twice(files)
    return files


def _in_folder(folder: Path) -> list[str]:
    """The Parquet files of a folder, which holds no other files of records."""
    files = (path for path in folder.rglob("*") if path.is_file())
    paths = sorted(str(path) for path in files if path.name.lower().endswith(RECORD_FILES))
    for file in paths:
        if not file.lower().endswith(PARQUET):
            raise DataError(
                f"a folder of records holds Parquet files only, and {folder} has {file}: name "
                "files, or a pattern of Parquet files such as 'folder/*.parquet'"
            )
    return paths


def public_address(address: str) -> str:
    """An address as messages may show it: host and database, without the user.

    Raises
    ------
    DataError : for an address with a password, or of another form, which the message does not
        repeat: what cannot be read as an address may hold a password.

    Examples
    --------
    >>> public_address("postgresql://reader@db.example:5432/clinic?sslmode=require")
    'postgresql://db.example:5432/clinic'
    >>> public_address("ibis+snowflake://reader@account/lake/ads?warehouse=small")
    'ibis+snowflake://account/lake/ads'
    """
    parts = _address_parts(address)
    options = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if parts.password is not None or any(word in name for name in options for word in SECRETS):
        places = "PGPASSWORD, or write it into a file that PGPASSFILE names"
        raise DataError(
            "a password must not be part of an address, where plans, logs and lists of processes "
            f"show it: set {PASSWORD if address.startswith(IBIS_PREFIX) else places}"
        )
    host = parts.netloc.rpartition("@")[2]
    scheme = parts.scheme if address.startswith(IBIS_PREFIX) else "postgresql"
    return f"{scheme}://{host}{parts.path}"


def _address_parts(address: str) -> SplitResult:
    """The parts of an address; none where ``@`` follows the host, which a password may precede."""
    malformed = DataError(
        "an address must have the form postgresql://user@host:port/database, without a password, "
        "and with %40 for @ in a name"
    )
    if not address.startswith((*POSTGRES_PREFIXES, IBIS_PREFIX)):
        raise malformed
    try:
        parts = urlsplit(address)
    except ValueError:
        raise malformed from None
    if "@" in parts.path + parts.query + parts.fragment or parts.fragment:
        raise malformed
    return parts


@dataclass(frozen=True)
class DatabaseTable:
    """Where a party's records are, if they are in a database.

    Parameters
    ----------
    address : of the database, as ``from_database`` takes it.
    table, query : one of them.
    passfile : the file of a password, as libpq reads it; None for libpq's own places.

    Raises
    ------
    DataError : for a table together with a query, or none of them, but for a program; and for an
        address with a password.
    """

    address: str
    table: str | None = None
    query: str | None = None
    passfile: Path | None = None

    def __post_init__(self) -> None:
        given = (self.table is not None) + (self.query is not None)
        if self.address.startswith(PYTHON_PREFIX) and given:
            raise DataError(f"{self.address} is a program: it needs no table and no query")
        if not self.address.startswith(PYTHON_PREFIX) and given != 1:
            raise DataError("a database needs a table or a query, one of them")
        _ = self.public_address

    def __str__(self) -> str:
        """What messages call it: without user and password."""
        if self.address.startswith(PYTHON_PREFIX):
            return self.address
        called = "a query" if self.table is None else f"table {self.table}"
        return f"{called} of {self.public_address}"

    @property
    def public_address(self) -> str:
        """The address without its user."""
        if self.address.startswith((DUCKDB_PREFIX, PYTHON_PREFIX)):
            return self.address
        return public_address(self.address)

    def at(self, home: Path) -> DatabaseTable:
        """The same with whole paths, those in it being relative to a folder."""
        address = self.address
        for prefix in FILE_PREFIXES:
            if address.startswith(prefix):
                address = f"{prefix}{home / address.removeprefix(prefix)}"
        passfile = None if self.passfile is None else home / self.passfile
        return DatabaseTable(address, self.table, self.query, passfile)

    def settings(self) -> dict[str, str]:
        """The keys of a party's file that name it."""
        named = {"records": self.address, "table": self.table, "query": self.query}
        named["passfile"] = None if self.passfile is None else str(self.passfile)
        return {key: value for key, value in named.items() if value is not None}

    def opened(self, memory: int | None = None) -> Engine:
        """The engine of the database, with the table or query as its records.

        Parameters
        ----------
        memory : of an engine in this process, in megabytes.

        Raises
        ------
        DataError : where the engine is not there.
        """
        called = "the query" if self.table is None else f"table {self.table}"
        called = f"{self.public_address.removeprefix(DUCKDB_PREFIX)}, {called}"
        if self.address.startswith(IBIS_PREFIX):
            from tacit.data.engines.ibis_tables import connected  # noqa: PLC0415 -- as needed

            address, secret = self.address.removeprefix(IBIS_PREFIX), os.environ.get(PASSWORD)
            return connected(called, address, self.table, self.query, secret)
        from tacit.data.engines import connections  # noqa: PLC0415 -- slow to import

        if self.address.startswith(DUCKDB_PREFIX):
            file = self.address.removeprefix(DUCKDB_PREFIX)
            records = DUCKDB.source(self.table, self.query)
            return connections.DuckDBEngine(called, file, records=records, memory=memory)
        records = POSTGRES.source(self.table, self.query)
        return connections.PostgresEngine(called, self.address, self.passfile, records)


def _relation_of(engine: Engine, columns: Columns) -> Relation:
    """An engine's records with the columns that are read; classes are groups with a score each."""
    lacking = (*columns.scores, columns.second, columns.label) if columns.drop else ()
    return Relation(
        engine.dialect,
        engine.records,
        columns.scores[0],
        columns.label,
        columns.client,
        group=columns.group,
        groups=columns.classes,
        person=columns.person,
        second=columns.second,
        by_class=columns.scores if len(columns.scores) > 1 else (),
        needed=tuple(name for name in lacking if name is not None),
    )


def _columns_of(
    group: str | None = None,
    group_names: Sequence[str] = (),
    scores: tuple[str, ...] = (),
    **columns: Any,
) -> Columns:
    """What is read of all sources alike, of the arguments of ``from_database``."""
    return FileColumns(**columns).of_files("", group, group_names, scores)[""]


def stored_clients(
    source: Sequence[str] | DatabaseTable,
    columns: Columns,
    only_counts: bool,
    progress: Progress = unshown,
    known: Known = None,
    as_one: bool = False,
) -> StoredClients | None:
    """Clients whose records stay where they are; None where these are to be read into memory.

    Records of databases, patterns and folders stay, and those of large files if only counted.

    Parameters
    ----------
    source : a database's table; or files, patterns and folders.
    columns : what is read of them.
    only_counts : whether records are only counted.
    progress : as ``from_database`` takes it.
    known : as ``EngineRecords`` takes it.
    as_one : whether all files are one client's, where no column names clients.
    """
    if columns.form != FileForm(columns.form.positive, percent=columns.form.percent):
        return None  # an engine does not know how such values are written
    if isinstance(source, DatabaseTable):
        return _database_clients(source, columns, progress, known)
    if any(map(is_pattern, source)):
        stay = all(Path(file).suffix.lower() in PARQUET for file in matched(source))
    else:
        stay = only_counts and is_large(source)
    return _file_clients(source, columns, progress, known, as_one) if stay else None


def from_database(
    address: str,
    table: str | None = None,
    query: str | None = None,
    progress: Progress = unshown,
    **columns: Any,
) -> StoredClients:
    """Clients whose records stay in a database.

    Parameters
    ----------
    address : ``postgresql://user@host:port/database``, ``duckdb://file``, or ``ibis+`` with an
        address of Ibis, without a password: libpq takes that from ``PGPASSWORD`` or from the file
        that ``PGPASSFILE`` names, Ibis from ``TACIT_DATABASE_PASSWORD``. Or ``python:file:name``: a
        function of a program, which is run, and gives what ``from_table`` takes.
    table : the table, with its schema before a dot; or
    query : a query that gives the records.
    progress : begins a pass over so many records, and receives how many more were read.
    columns : score, label, client, second, unit, person, missing and form, as ``tacit.read`` takes
        them; ``group`` and ``group_names``, the column of groups or classes and their agreed names;
        ``scores``, the columns of scores of each class.

    Raises
    ------
    DataError : for a table that cannot be read, and for records that cannot be used, as
        ``tacit.read``.
    """
    return _database_clients(DatabaseTable(address, table, query), _columns_of(**columns), progress)


def _database_clients(
    database: DatabaseTable, columns: Columns, progress: Progress = unshown, known: Known = None
) -> StoredClients:
    """``from_database`` of columns that are put together; ``known`` as ``EngineRecords`` has it."""
    if database.address.startswith(PYTHON_PREFIX):
        file, _, function = database.address.removeprefix(PYTHON_PREFIX).rpartition(":")
        with named_errors(database.address):
            named = runpy.run_path(file or function).get(function)
            if not callable(named):
                raise DataError(f"{database.address} names no function: write python:FILE:FUNCTION")
            return _table_clients(named(), columns, progress, known)
    engine = database.opened(_memory_of(columns))
    return _clients_of(engine, columns, {"": database.table or "query"}, progress, known)


def from_table(table: Any, progress: Progress = unshown, **columns: Any) -> StoredClients:
    """Clients whose records stay on a cluster, or in a warehouse.

    Parameters
    ----------
    table : a Spark frame, a Ray dataset, or a table expression of Ibis: ``connection.table(...)``,
        ``connection.sql(...)``, or what is made of them.
    progress, columns : as ``from_database`` takes them.

    Raises
    ------
    DataError : for a table that cannot be read, and for records that cannot be used.
    """
    return _table_clients(table, _columns_of(**columns), progress)


def _table_clients(
    table: Any, columns: Columns, progress: Progress, known: Known = None
) -> StoredClients:
    if type(table).__module__.partition(".")[0] != "ibis":
        from tacit.data.engines.cluster import ClusterRecords  # noqa: PLC0415 -- few need it

        return StoredClients(ClusterRecords(cluster_of(table), columns), columns.unit)
    from tacit.data.engines.ibis_tables import IbisEngine  # noqa: PLC0415 -- slow to import

    engine = IbisEngine("the table of Ibis", table)
    return _clients_of(engine, columns, {"": "table"}, progress, known)


def from_files(
    sources: Sequence[str], progress: Progress = unshown, **columns: Any
) -> StoredClients:
    """Clients whose records stay in Parquet files: larger than memory, a pattern or a folder.

    Parameters
    ----------
    sources : files, patterns such as ``scores/*.parquet``, and folders.
    progress, columns : as ``from_database`` takes them. Records of one client id are put together,
        whatever their files; without a column of client ids each file is a client.

    Raises
    ------
    DataError : for a pattern without files, and for records that cannot be used.
    """
    return _file_clients(sources, _columns_of(**columns), progress)


def _file_clients(
    sources: Sequence[str],
    columns: Columns,
    progress: Progress = unshown,
    known: Known = None,
    as_one: bool = False,
) -> StoredClients:
    """``from_files`` of columns that are put together.

    Parameters
    ----------
    sources, columns, progress : the files, and what is read of them.
    known : as ``EngineRecords`` takes it.
    as_one : whether all files are one client's, where no column names clients.
    """
    from tacit.data.engines.connections import DuckDBEngine, parquet_table  # noqa: PLC0415 -- slow

    files = matched(sources)
    other = [file for file in files if Path(file).suffix.lower() not in PARQUET]
    if other:
        raise DataError(f"files of a pattern or folder must be Parquet files, got {other[0]}")
    called = files[0] if len(files) == 1 else f"{sources[0]} ({len(files)} files)"
    given, names = [str(Path(file).absolute()) for file in files], {"": sources[0]}
    by_file = columns.client is None and not as_one
    if by_file:
        columns = replace(columns, client=FILE_COLUMN)
        names = dict(zip(given, file_names(files), strict=True))
    records = parquet_table(given, by_number=by_file and columns.person is not None)
    engine = DuckDBEngine(called, files=given, records=records, memory=_memory_of(columns))
    return _clients_of(engine, columns, names, progress, known)


def _memory_of(columns: Columns) -> int | None:
    """Memory of an engine in this process: a draw of persons' records sorts all of them."""
    return PERSONS_MEMORY if columns.person is not None else None


def _clients_of(
    engine: Engine,
    columns: Columns,
    names: Mapping[str, str],
    progress: Progress,
    known: Known = None,
) -> StoredClients:
    """The clients of an engine's records; groups without agreed names are read off them."""
    relation = checked(engine, _relation_of(engine, columns), columns.form)
    categories = relation.groups
    if relation.group is not None and (relation.by_class or not categories):
        found = tuple(values_of(engine, relation, relation.group))
        relation = replace(relation, groups=texts_of(categories, found) if categories else found)
    named = names if relation.client is None or "" not in names else {}
    made = StoredClients(
        EngineRecords(engine, relation, named, progress, categories=categories, known=known),
        columns.unit,
    )
    # who reads records is told of those that are left out
    _ = made.left_out
    return made
