"""From addresses, patterns and large files to clients whose records stay where they are, or not.

A table of a database is named as in a party's file, never with a password.

A database may return rows in another order for every message of a run, and what a party remembers
of its records is by their places. So records in memory are in the order of their values: equal
records have equal places.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tacit.data.categories import texts_of
from tacit.data.columns import Columns
from tacit.data.engines.records import (
    Engine,
    EngineRecords,
    Progress,
    checked,
    unshown,
    values_of,
)
from tacit.data.engines.statements import DUCKDB, POSTGRES, Dialect, Relation
from tacit.data.engines.stored import StoredClients
from tacit.data.errors import DataError
from tacit.data.form import FileForm
from tacit.data.reading import FileColumns
from tacit.data.tables import RECORD_FILES, file_names, refuse_twice

SECRETS = ("password", "passwd", "pwd", "passcode", "secret", "token", "scram_", "private_key")
"""Words of the options of an address that hold a password."""

POSTGRES_PREFIXES = ("postgresql://", "postgres://")
DUCKDB_PREFIX = "duckdb://"
PASSWORD = "TACIT_DATABASE_PASSWORD"  # noqa: S105 -- its name
"""The variable of the environment that has the password of a warehouse."""
IBIS_PREFIX = "ibis+"
"""What precedes the address of a warehouse, as Ibis takes it."""
FILE_PREFIXES = (DUCKDB_PREFIX, f"{IBIS_PREFIX}{DUCKDB_PREFIX}")
"""What precedes the file of a database."""
PARQUET = (".parquet", ".pq")
PATTERN_SIGNS = "*?["

FILE_COLUMN = "filename"
"""The column of DuckDB that says from which file a record is."""

LARGE_BYTES = 100_000_000
"""From this size on, Parquet files are counted where they are, not read into memory."""


def is_address(source: str) -> bool:
    """Whether a source is a database's address."""
    return source.startswith((*POSTGRES_PREFIXES, DUCKDB_PREFIX, IBIS_PREFIX))


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
        if not _is_text(file):
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


def _is_text(name: str) -> bool:
    """Whether a file's name has only characters of UTF-8, which DuckDB needs."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


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

    def opened(self, columns: Columns) -> tuple[Engine, Relation]:
        """The engine of the database, and the table with its columns.

        Raises
        ------
        DataError : for a table together with a query, or none of them, and where the engine is not
            there.
        """
        if (self.table is None) == (self.query is None):
            raise DataError("a database needs a table or a query, one of them")
        called = "the query" if self.table is None else f"table {self.table}"
        if self.address.startswith(DUCKDB_PREFIX):
            from tacit.data.engines.connections import DuckDBEngine  # noqa: PLC0415 -- slow

            file, dialect = self.address.removeprefix(DUCKDB_PREFIX), DUCKDB
            engine: Engine = DuckDBEngine(f"{file}, {called}", database=file)
        elif self.address.startswith(IBIS_PREFIX):
            from tacit.data.engines.ibis_tables import connected  # noqa: PLC0415 -- as needed

            called, address = f"{self.public_address}, {called}", self.address[len(IBIS_PREFIX) :]
            secret = os.environ.get(PASSWORD)
            warehouse = connected(called, address, self.table, self.query, secret)
            return warehouse, relation_of(warehouse.dialect, warehouse.records, columns)
        else:
            from tacit.data.engines.connections import PostgresEngine  # noqa: PLC0415 -- slow

            called, dialect = f"{self.public_address}, {called}", POSTGRES
            engine = PostgresEngine(called, self.address, self.passfile)
        return engine, relation_of(dialect, dialect.source(self.table, self.query), columns)


def relation_of(dialect: Dialect, table: str, columns: Columns) -> Relation:
    """A table with the columns that are read of it.

    Parameters
    ----------
    dialect, table : as ``Relation`` takes them.
    columns : what is read; of several scores, one of each class, the groups are the classes.
    """
    several = columns.scores if len(columns.scores) > 1 else ()
    lacking = (*columns.scores, columns.second, columns.label) if columns.drop else ()
    return Relation(
        dialect,
        table,
        columns.scores[0],
        columns.label,
        columns.client,
        group=columns.group,
        groups=columns.classes,
        person=columns.person,
        second=columns.second,
        by_class=several,
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
    sources: Sequence[str],
    columns: FileColumns,
    *,
    table: str | None = None,
    query: str | None = None,
    group: str | None = None,
    group_names: Sequence[str] = (),
    scores: tuple[str, ...] = (),
    only_counts: bool = False,
    progress: Progress = unshown,
    passfile: Path | None = None,
) -> StoredClients | None:
    """Clients whose records stay where they are; None where they are to be read into memory.

    Records of databases, patterns and folders stay, and those of large files if only counts are
    asked for. What an engine does not know, as files that differ, needs memory.

    Parameters
    ----------
    sources : files, patterns and folders, or one address of a database.
    columns : what is read of them.
    table, query : of a database, one of them.
    group, group_names : the column of groups or classes, and their agreed names; without names
        those of public groups are read off the records.
    scores : the columns of scores of each class; empty where a record has one score.
    only_counts : whether the records are only counted.
    progress, passfile : as ``from_database`` takes them.

    Raises
    ------
    DataError : as ``from_database`` and ``from_files``.
    """
    by_file = any(isinstance(value, Mapping) for value in vars(columns).values())
    form = columns.form
    if by_file or isinstance(form, Mapping):
        return None
    if form != FileForm(form.positive):
        return None
    named: dict[str, Any] = vars(columns) | {"progress": progress, "scores": scores}
    named |= {"group": group, "group_names": group_names}
    if is_address(sources[0]):
        return from_database(sources[0], table, query, passfile=passfile, **named)
    if any(map(is_pattern, sources)):
        are_stored = all(Path(file).suffix.lower() in PARQUET for file in matched(sources))
    else:
        are_stored = only_counts and is_large(sources)
    return from_files(sources, **named) if are_stored else None


def from_database(
    address: str,
    table: str | None = None,
    query: str | None = None,
    progress: Progress = unshown,
    passfile: Path | None = None,
    **columns: Any,
) -> StoredClients:
    """Clients whose records stay in a database.

    Parameters
    ----------
    address : ``postgresql://user@host:port/database``, ``duckdb://file``, or ``ibis+`` with an
        address of Ibis, without a password: libpq takes that from ``PGPASSWORD`` or from the file
        that ``PGPASSFILE`` names, Ibis from ``TACIT_DATABASE_PASSWORD``.
    table : the table, with its schema before a dot; or
    query : a query that gives the records.
    progress : begins a pass over so many records, and receives how many more were read.
    passfile : the file of a password; None for libpq's own places.
    columns : score, label, client, second, unit, person, missing and form, as ``tacit.read`` takes
        them; ``group`` and ``group_names``, the column of groups or classes and their agreed names;
        ``scores``, the columns of scores of each class.

    Raises
    ------
    DataError : for a table that cannot be read, and for records that cannot be used, as
        ``tacit.read``.
    """
    read = _columns_of(**columns)
    engine, relation = DatabaseTable(address, table, query, passfile).opened(read)
    names = {"": table or "query"} if read.client is None else None
    return _clients_of(engine, relation, read, names, progress)


def from_ibis(table: Any, progress: Progress = unshown, **columns: Any) -> StoredClients:
    """Clients whose records stay in a warehouse.

    Parameters
    ----------
    table : a table expression of Ibis: ``connection.table(...)``, ``connection.sql(...)``, or what
        is made of them.
    progress, columns : as ``from_database`` takes them.

    Raises
    ------
    DataError : for a table that cannot be read, and for records that cannot be used.
    """
    from tacit.data.engines.ibis_tables import IbisEngine  # noqa: PLC0415 -- slow to import

    read, engine = _columns_of(**columns), IbisEngine("the table of Ibis", table)
    names = {"": "table"} if read.client is None else None
    relation = relation_of(engine.dialect, engine.records, read)
    return _clients_of(engine, relation, read, names, progress)


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
    from tacit.data.engines.connections import DuckDBEngine, parquet_table  # noqa: PLC0415

    files, read = matched(sources), _columns_of(**columns)
    other = [file for file in files if Path(file).suffix.lower() not in PARQUET]
    if other:
        raise DataError(f"files of a pattern or folder must be Parquet files, got {other[0]}")
    called = files[0] if len(files) == 1 else f"{sources[0]} ({len(files)} files)"
    given = [str(Path(file).absolute()) for file in files]
    engine, names = DuckDBEngine(called, files=given), None
    if read.client is None:
        read = replace(read, client=FILE_COLUMN)
        names = dict(zip(given, file_names(files), strict=True))
    by_number = read.person is not None and names is not None
    relation = relation_of(DUCKDB, parquet_table(given, by_number), read)
    return _clients_of(engine, relation, read, names, progress)


def _clients_of(
    engine: Engine,
    relation: Relation,
    columns: Columns,
    names: Mapping[str, str] | None,
    progress: Progress,
) -> StoredClients:
    """The clients of a table; groups without agreed names are read off it."""
    relation, categories = checked(engine, relation, columns.form), relation.groups
    if relation.group is not None and (relation.by_class or not categories):
        found = tuple(values_of(engine, relation, relation.group))
        relation = replace(relation, groups=found)
        if categories:
            relation = replace(relation, groups=texts_of(categories, found))
    made = StoredClients(
        EngineRecords(engine, relation, names, progress, categories=categories), columns.unit
    )
    # who reads records is told of those that are left out
    _ = made.left_out
    return made
