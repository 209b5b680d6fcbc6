"""Connections to DuckDB, for files larger than memory and its own databases, and to PostgreSQL.

A DuckDB database may be somebody else's, with views that read files and settings where they are
evaluated. So DuckDB reads the named files and its own temporary folder alone, loads no extension,
and takes no variable of the calling program for a table. Its statements end within a moment of
Ctrl-C, and it sorts records in bounded memory, with temporary files.

PostgreSQL is read in one read-only transaction that sees one state of the table. A password is
never part of an address: libpq reads it from the environment (``PGPASSWORD``) or from a file that
only its owner may read (``PGPASSFILE``, by default ``~/.pgpass``).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import duckdb
import pyarrow as pa

from tacit.data.engines import relations
from tacit.data.engines.adding import without_user
from tacit.data.engines.pieces import ConstantTable
from tacit.data.engines.ranking import Ascending
from tacit.data.errors import DataError
from tacit.data.tables import reason, stamp
from tacit.extras import extra

Answer = TypeVar("Answer")

AGAIN_SECONDS = 0.05


def interruptible(work: Callable[[], Answer], interrupt: Callable[[], object]) -> Answer:
    """What a statement returns; it runs in a thread, so that Ctrl-C reaches this one meanwhile.

    Parameters
    ----------
    work : runs the statement.
    interrupt : makes the engine end it; called until it has, as it may not have begun.

    Raises
    ------
    KeyboardInterrupt : where it was interrupted, when the statement has ended.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                interrupt()
                wait([future], AGAIN_SECONDS)
            raise
        finally:
            # an error that it holds has this frame in its traceback, and would keep the engine
            del future


MEMORY, MOST_THREADS = 100, 8
"""Megabytes of the engine for each of its threads, for two at least, and how many these may be.
What needs more goes to a temporary folder, which is removed; threads without such memory of their
own would end a sort."""

NO_PROXY = "none"
"""In place of the environment's, which may hold a password, and which a view could read."""

LOCKED = ("enable_external_access = false", "lock_configuration = true")

REPLACED = """SELECT DISTINCT function_name FROM duckdb_functions()
WHERE database_name = 'given' AND schema_name = 'main' AND lower(function_name) IN (
  SELECT function_name FROM duckdb_functions() WHERE database_name = 'system')
ORDER BY function_name"""
"""DuckDB's functions that a database redefines: statements would call those in their place."""

FULL_DISK = ("failed to offload", "No space left on device")
"""Words of DuckDB's errors where its temporary files do not fit on their disk."""

FULL_MEMORY = "Out of Memory Error"
"""Words of DuckDB's error where so many records do not fit into its memory, even with files."""

NUMBERS = ("DOUBLE", "FLOAT", "REAL")


def _kind_of(declared: str) -> str:
    """The kind of a column of this type of DuckDB."""
    if any(word in declared for word in ("[", "(", "STRUCT", "INTERVAL")):
        return relations.DECIMAL if declared.startswith("DECIMAL") else declared
    if declared == "BOOLEAN":
        return relations.BOOLEAN
    if declared.startswith(("VARCHAR", "ENUM")):
        return relations.TEXT
    if "INT" in declared:
        return relations.INTEGER
    return relations.NUMBER if any(word in declared for word in NUMBERS) else declared


class DuckDBEngine:
    """A connection to DuckDB, in memory for files, or to a database that is only read.

    Parameters
    ----------
    source : what errors call the table.
    database : the file of a database; None for files of records.
    files : the absolute paths of files of records, which must not change while they are read.
    records : what statements read, as SQL.
    memory : of the engine, in megabytes; None for ``MEMORY`` for each thread.

    Raises
    ------
    DataError : for a database that cannot be opened, or that replaces functions of DuckDB.
    """

    dialect = relations.DUCKDB
    most_cells = 1 << 13
    batch_rows = 1 << 17

    def __init__(
        self,
        source: str,
        database: str | None = None,
        files: Sequence[str] = (),
        records: str = "",
        memory: int | None = None,
    ) -> None:
        self.source, self.records = source, records
        self._files, self._database = tuple(files), database
        self._parent: DuckDBEngine | None = None
        if database is not None and not Path(database).is_file():
            raise DataError(f"{database} does not exist")
        self._spill = tempfile.mkdtemp(prefix="tacit-")
        weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)
        config: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
            "temp_directory": self._spill,
            "home_directory": self._spill,
            "http_proxy": NO_PROXY,
        }
        # DuckDB asks for the pattern's permission, and then for the file's
        allowed = [
            relations.plain_text(path) for file in files for path in (file, _literal_path(file))
        ]
        with self._named_errors():
            self._connection = duckdb.connect(":memory:", config=config)
            if database is not None:
                self._attach(str(Path(database).absolute()))
            # it knows the processors that a container may use
            ((found,),) = self._connection.execute("SELECT current_setting('threads')").fetchall()
            threads = min(found, MOST_THREADS)
            memory = memory or MEMORY * max(threads, 2)
            limits = (f"threads = {threads}", f"memory_limit = '{memory}MB'")
            for setting in (*limits, f"allowed_paths = [{', '.join(allowed)}]", *LOCKED):
                self._connection.execute(f"SET {setting}")
        weakref.finalize(self, self._connection.close)
        self._stamps = [stamp(file) for file in self._files]

    def _attach(self, database: str) -> None:
        # without the type DuckDB loads an extension for other kinds of databases
        given = f"{relations.plain_text(database)} AS given (READ_ONLY, TYPE duckdb)"
        self._connection.execute(f"ATTACH {given}")
        replaced = [name for (name,) in self._connection.execute(REPLACED).fetchall()]
        if replaced:
            raise DataError(
                f"{self.source} cannot be read: the database must not define DuckDB's own "
                f"functions again, got {', '.join(map(repr, replaced))}"
            )
        self._connection.execute("USE given")

    def kinds(self, relation: relations.Relation) -> dict[str, str]:
        """The kind of every column by its name."""
        statement = f"DESCRIBE SELECT * FROM {relation.table}"
        with self._named_errors():
            if len(self._connection.extract_statements(statement)) != 1:
                raise DataError(f"{self.source} must be one SELECT statement")
        rows = self.rows(statement)
        return {str(row[0]): _kind_of(str(row[1])) for row in rows}

    def rows(self, statement: str, tables: Sequence[ConstantTable] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement's answer; ``tables`` are small tables in memory that it reads."""
        with self._named_errors(), self._given(tables):
            made = self._run(lambda: self._connection.execute(statement).fetchall())
        self._check_files()
        return made

    @contextmanager
    def _given(self, tables: Sequence[ConstantTable]) -> Iterator[None]:
        """Temporary tables, of which the engine knows the range of keys: it joins by an index."""
        made = []
        try:
            for table in tables:
                self._connection.register(f"{table.name}_columns", pa.table(table.columns))
                copied = f"SELECT * FROM {table.name}_columns"
                self._connection.execute(f"CREATE TEMP TABLE {table.name} AS {copied}")
                made.append(table.name)
                self._connection.unregister(f"{table.name}_columns")
            yield
        finally:
            for name in made:
                self._connection.execute(f"DROP TABLE temp.{name}")

    def batches(
        self, statement: str, tables: Sequence[ConstantTable] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a statement's answer in batches, in their order."""
        rows = self.batch_rows
        with self._named_errors(), self._given(tables):
            reader = self._run(lambda: self._connection.sql(statement).to_arrow_reader(rows))
            try:
                while (batch := self._run(partial(next, reader, None))) is not None:
                    yield batch
            finally:
                # the tables stay in use while a result is open
                reader.close()
        self._check_files()

    def kept(self, query: str) -> tuple[DuckDBEngine, str]:
        """A temporary table of a query's rows, which is removed with the engine that reads it."""
        made = copy(self)
        # a connection that is closed closes those that were made of it
        made._parent, made._connection = self, self._connection.cursor()
        weakref.finalize(made, made._connection.close)
        if self._database is not None:
            made.rows("USE given")
        made.rows(f"CREATE TEMP TABLE kept_records AS {query}")
        return made, "kept_records"

    def sorted(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """The rows of a reader in ascending order of their scores, in batches."""
        self._connection.register("given_rows", reader)
        yield from self.batches("SELECT * FROM given_rows ORDER BY score")

    def _run(self, work: Callable[[], Answer]) -> Answer:
        return interruptible(work, self._connection.interrupt)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            said = reason(error)
            if any(sign in said for sign in FULL_DISK):
                said = (
                    f"no space is left in {Path(self._spill).parent} for the engine's temporary "
                    "files; make some, or name another folder by TMPDIR"
                )
            elif FULL_MEMORY in said:
                said += "; read fewer records, or take a protocol that needs no ranks"
            raise DataError(f"{self.source} cannot be read: {said}") from None

    def _check_files(self) -> None:
        if [stamp(file) for file in self._files] != self._stamps:
            raise DataError(f"{self.source} changed while it was being read")


def parquet_table(files: Sequence[str], by_number: bool = False) -> str:
    """Parquet files as one table, with the file of each record in the column ``filename``.

    Columns are those of the files, not of their folders' names. A column has the type that holds
    the values of all files: with the first file's type DuckDB would round those of the others.

    Parameters
    ----------
    files : absolute paths: DuckDB takes others for addresses, as ``file:/scores.parquet``.
    by_number : whether the engine stores and compares files' names as numbers, which takes less
        where records are sorted.
    """
    listed = ", ".join(relations.plain_text(_literal_path(file)) for file in files)
    options = "filename = true, union_by_name = true, hive_partitioning = false"
    table = f"read_parquet([{listed}], {options})"
    if not by_number:
        return table
    names = ", ".join(map(relations.plain_text, files))
    numbered = f"* REPLACE (CAST(filename AS ENUM({names})) AS filename)"
    return f"(SELECT {numbered} FROM {table}) AS numbered_files"


def _literal_path(file: str) -> str:
    """The pattern that only this file matches: DuckDB takes every path for a pattern."""
    return re.sub(r"[*?[]", r"[\g<0>]", file)


SCHEMA = pa.schema([("score", pa.float64()), ("code", pa.int64())])


def sorted_by_score(records: Iterable[Ascending]) -> Iterator[Ascending]:
    """Scores and codes in ascending order of the scores; equal scores in any order.

    Parameters
    ----------
    records : scores and codes of records in batches, in any order.

    Raises
    ------
    DataError : where there is no space for temporary files; and what the batches raise.
    """
    errors = list[BaseException]()

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            for scores, codes in records:
                yield pa.record_batch([pa.array(scores), pa.array(codes)], SCHEMA)
        except BaseException as error:
            # the engine would make a text of it
            errors.append(error)
            raise

    engine = DuckDBEngine("the records' temporary copy")
    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    try:
        for batch in engine.sorted(reader):
            yield batch.column("score").to_numpy(), batch.column("code").to_numpy()
    except DataError:
        if errors:
            raise errors[0] from None
        raise


CONNECT_SECONDS = 10

POSTGRES_KINDS = {
    "boolean": relations.BOOLEAN,
    **dict.fromkeys(("smallint", "integer", "bigint"), relations.INTEGER),
    **dict.fromkeys(("real", "double precision"), relations.NUMBER),
    "numeric": relations.DECIMAL,
    **dict.fromkeys(("text", "character varying", "character"), relations.TEXT),
}
"""The kind of a column by the name of its type in PostgreSQL."""


class PostgresEngine:
    """A connection that only reads.

    Parameters
    ----------
    source : what errors call the table.
    address : as ``postgresql://user@host:port/database``, without a password.
    passfile : the file of the password; None for libpq's own places.
    records : what statements read, as SQL.

    Raises
    ------
    DataError : where no one answers there.
    ImportError : without the driver.
    """

    dialect = relations.POSTGRES
    most_cells = 1 << 16  # one path of a decision tree is followed a record; rows are sent slowly
    batch_rows = 1 << 16

    def __init__(
        self, source: str, address: str, passfile: Path | None = None, records: str = ""
    ) -> None:
        self.source, self.records = source, records
        self._driver = extra("psycopg", "PostgreSQL needs a driver", "'tacit[postgres]'")
        self._user = _user_of(address)
        with self._named_errors():
            more = {} if passfile is None else {"passfile": str(passfile)}
            # a database in SQL_ASCII would send texts, with them its types' names, as bytes
            self._connection = self._driver.connect(
                address, connect_timeout=CONNECT_SECONDS, client_encoding="UTF8", **more
            )
            weakref.finalize(self, self._connection.close)
            if self._connection.info.parameter_status("server_encoding") == "UTF8":
                # it has all characters of memory's blanks
                self.dialect = replace(relations.POSTGRES, trim=relations.DUCKDB.trim)
            self._connection.read_only = True
            self._connection.isolation_level = self._driver.IsolationLevel.REPEATABLE_READ

    def kinds(self, relation: relations.Relation) -> dict[str, str]:
        """The kind of every column by its name."""
        with self._named_errors(), self._connection.cursor() as cursor:
            # a prepared statement is one: a query cannot end the transaction that only reads
            cursor.execute(f"SELECT * FROM {relation.table} LIMIT 0", prepare=True)
            column_types = [(each.name, each.type_code) for each in cursor.description or ()]
            cursor.execute(
                "SELECT code, format_type(code::oid, NULL) FROM unnest(%s::bigint[]) AS code",
                ([code for _, code in column_types],),
            )
            words: dict[int, str] = dict(cursor.fetchall())
        return {
            name: POSTGRES_KINDS.get(words[code], str(words[code])) for name, code in column_types
        }

    def rows(self, statement: str, tables: Sequence[ConstantTable] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement's answer, which has all its tables in it."""
        with self._named_errors():
            return list(self._connection.execute(statement, prepare=True).fetchall())

    def batches(
        self, statement: str, tables: Sequence[ConstantTable] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a statement's answer in batches, by a cursor on the server."""
        with self._named_errors(), self._connection.cursor("tacit_records", binary=True) as cursor:
            cursor.execute(statement)
            names = [each.name for each in cursor.description or ()]
            while rows := cursor.fetchmany(self.batch_rows):
                columns = [pa.array(values) for values in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, names)

    def kept(self, query: str) -> tuple[PostgresEngine, str]:
        """The query itself: a session that only reads makes no table."""
        return self, f"({query}\n) AS kept_records"

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            said = without_user(reason(error), self._user)
            raise DataError(f"{self.source} cannot be read: {said}") from None


def _user_of(address: str) -> str:
    """The user of an address or of the environment; empty where neither says one."""
    parts = urlsplit(address)
    named = dict(parse_qsl(parts.query)).get("user") or unquote(parts.username or "")
    return named or os.environ.get("PGUSER", "")
