"""PostgreSQL: a table or a query, in one read-only transaction that sees one state of the table.

A password is never part of an address: libpq reads it from the environment (``PGPASSWORD``) or from
a file that only its owner may read (``PGPASSFILE``, by default ``~/.pgpass``).
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from tacit.data.engines.places import public_address
from tacit.data.engines.sql.dialects import ConstantTable
from tacit.data.engines.sql.statements import BOOLEAN, NUMBER, TEXT, Relation
from tacit.data.errors import DataError
from tacit.extras import extra

MOST_CELLS = 1 << 16
"""PostgreSQL follows one path of a decision tree a record, and sends rows slowly."""

BATCH_ROWS = 1 << 16
CONNECT_SECONDS = 10

NUMBERS = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
TEXTS = ("text", "character varying", "character")
KINDS = {"boolean": BOOLEAN, **dict.fromkeys(NUMBERS, NUMBER), **dict.fromkeys(TEXTS, TEXT)}


class PostgresEngine:
    """A connection that only reads.

    Parameters
    ----------
    address : as ``postgresql://user@host:port/database``, without a password.
    table : what errors call the table.
    passfile : the file of the password; None for libpq's own places.

    Raises
    ------
    DataError : for a password in the address, and where nobody answers there.
    ImportError : without the driver.
    """

    most_cells = MOST_CELLS

    def __init__(self, address: str, table: str, passfile: Path | None = None) -> None:
        self.source = f"{public_address(address)}, {table}"
        self._driver = extra("psycopg", "PostgreSQL needs a driver", "'tacit[postgres]'")
        self._user = _user_of(address)
        with self._named_errors():
            more = {} if passfile is None else {"passfile": str(passfile)}
            # a database in SQL_ASCII would send texts, with them its types' names, as bytes
            self._connection = self._driver.connect(
                address, connect_timeout=CONNECT_SECONDS, client_encoding="UTF8", **more
            )
            weakref.finalize(self, self._connection.close)
            self._connection.read_only = True
            self._connection.isolation_level = self._driver.IsolationLevel.REPEATABLE_READ

    def kinds(self, relation: Relation) -> dict[str, str]:
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
        return {name: KINDS.get(words[code], str(words[code])) for name, code in column_types}

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
            while rows := cursor.fetchmany(BATCH_ROWS):
                columns = [pa.array(values) for values in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, names)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            reason = (str(error).strip().splitlines() or ["failed without a reason"])[0]
            message = _without_user(reason.rstrip("."), self._user)
            raise DataError(f"{self.source} cannot be read: {message}") from None


def _user_of(address: str) -> str:
    """The user of an address or of the environment; empty where neither says one."""
    parts = urlsplit(address)
    named = dict(parse_qsl(parts.query)).get("user") or unquote(parts.username or "")
    return named or os.environ.get("PGUSER", "")


def _without_user(reason: str, user: str) -> str:
    """What a server said, without the user that it repeats, in whatever language it says so.

    Examples
    --------
    >>> _without_user('authentication failed for user "reader"', "reader")
    'authentication failed for user "..."'
    """
    if not user:
        return reason
    return re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", "...", reason)
