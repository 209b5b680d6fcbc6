"""A ledger's files, and how they are read: entries, sums, and whether they were tampered with.

A ledger's files: the SQLite database, and the key of its digests next to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Self

from tacit import files
from tacit.ledger import entries
from tacit.ledger.accounts import Accounts, Spending
from tacit.privacy.cost import Cost

APPLICATION = 0x74414354
VERSION = 1
KEY_BYTES, NAME_BYTES = 32, 16
WAIT_SECONDS = 30.0

NUMBERED = ("number INTEGER PRIMARY KEY", *entries.COLUMNS[1:])

SCHEMA = f"""
CREATE TABLE identity (version INTEGER, name BLOB, key_check BLOB);
CREATE TABLE entries ({", ".join(NUMBERED)});
PRAGMA application_id = {APPLICATION};
"""


def keyed_digest(key: bytes, purpose: str, content: bytes = b"") -> bytes:
    """HMAC-SHA256 of a content, 32 bytes, apart for each purpose.

    Without the ledger's secret key a digest cannot be matched to records.
    """
    return hmac.digest(key, purpose.encode() + b"\0" + content, "sha256")


KEY_CHECK = "key"
"""The purpose of the digest by which a ledger recognises its key."""


def open_to_write(path: Path) -> tuple[sqlite3.Connection, bytes, bytes]:
    """A ledger to write in, made if there is none: connection, first hash and key.

    The writes of its connection are durable.

    Raises
    ------
    LedgerError : for a file that is no ledger, that others may read or write, or whose key is
        missing or another ledger's.
    OSError : where the files cannot be made or read.
    """
    if not path.exists():
        _make(path)
    key = _read_key(path)
    files.check_private(path, entries.LedgerError)
    connection = _connected(path, path.absolute().as_uri())
    with closed_on_error(connection, path):
        first_hash, key_check = _identity(connection, path)
        if not hmac.compare_digest(key_check, keyed_digest(key, KEY_CHECK)):
            raise entries.LedgerError(f"{key_path(path)} is not the key of {path}")
        _make_durable(connection, path)
    return connection, first_hash, key


def open_to_read(path: Path) -> tuple[sqlite3.Connection, bytes]:
    """A ledger to read, without its key: connection and first hash.

    Its folder need not be one in which this process may write.

    Raises
    ------
    LedgerError : for a file that is no ledger.
    FileNotFoundError : where there is none.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise entries.LedgerError(f"{path} is not a ledger: it is no regular file")
    uri = path.absolute().as_uri()
    beside = path.with_name(f"{path.name}-wal")
    unchanging = not beside.exists() and not os.access(path.parent, os.W_OK)
    mode = "mode=ro&immutable=1" if unchanging else "mode=ro"
    connection = _connected(path, f"{uri}?{mode}")
    with closed_on_error(connection, path):
        return connection, _identity(connection, path)[0]


def _connected(path: Path, place: str) -> sqlite3.Connection:
    """A connection to the file of a ledger, whose address ``place`` is."""
    try:
        return sqlite3.connect(
            place, uri=True, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise entries.LedgerError(f"{path} cannot be used as a ledger: {error}") from None


def key_path(path: Path) -> Path:
    """Where a ledger's key lies."""
    return path.with_name(f"{path.name}.key")


@contextlib.contextmanager
def closed_on_error(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Close a connection that cannot be used, and name its file."""
    try:
        yield
    except sqlite3.Error as error:
        connection.close()
        raise entries.LedgerError(f"{path} cannot be used as a ledger: {error}") from None
    except BaseException:
        connection.close()
        raise


def _make(path: Path) -> None:
    """Make key and ledger, each whole or not at all, even if others do so at the same time."""
    path.parent.stat()
    files.create_private(key_path(path), secrets.token_bytes(KEY_BYTES))
    try:
        with files.draft_of(path) as draft:
            files.create_private(draft, b"")
            _fill(draft, keyed_digest(_read_key(path), KEY_CHECK))
            files.publish(draft, path)
    except sqlite3.Error as error:
        raise entries.LedgerError(f"{path} cannot be made: {error}") from None


def _fill(draft: Path, key_check: bytes) -> None:
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(SCHEMA)
        values = (VERSION, secrets.token_bytes(NAME_BYTES), key_check)
        connection.execute("INSERT INTO identity VALUES (?, ?, ?)", values)
    finally:
        connection.close()


def _read_key(path: Path) -> bytes:
    beside = key_path(path)
    try:
        secret = beside.read_bytes()
    except FileNotFoundError:
        raise entries.LedgerError(
            f"{beside} is missing: the ledger cannot go on without its key"
        ) from None
    if len(secret) != KEY_BYTES:
        raise entries.LedgerError(f"{beside} must have {KEY_BYTES} bytes, got {len(secret)}")
    files.check_private(beside, entries.LedgerError)
    return secret


def _identity(connection: sqlite3.Connection, path: Path) -> tuple[bytes, bytes]:
    """The hash before the first entry, and the digest that the ledger's key must give.

    The hash is SHA-256 of a prefix, the ledger's name of random bytes, and the digest.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION:
        raise entries.LedgerError(f"{path} is not a ledger")
    version, name, key_check = connection.execute("SELECT * FROM identity").fetchone()
    if version != VERSION:
        raise entries.LedgerError(f"{path} has version {version}; this program reads {VERSION}")
    identity = entries.CHAIN + b" identity" + name + key_check
    return hashlib.sha256(identity).digest(), key_check


def _make_durable(connection: sqlite3.Connection, path: Path) -> None:
    """Every commit waits for the disk."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise entries.LedgerError(f"{path} must be in write-ahead mode, got {mode}")
    for setting in ("synchronous = FULL", "fullfsync = ON", "checkpoint_fullfsync = ON"):
        connection.execute(f"PRAGMA {setting}")


Clock = Callable[[], float]

READ = f"SELECT {', '.join(entries.COLUMNS)} FROM entries WHERE number > ? ORDER BY number"  # noqa: S608
END_OF_TIME = 253_402_300_800


class Pages:
    """A ledger to be read: entries, sums, and whether it was tampered with.

    Sums cover the entries at the time of the call; reading does not disturb a writer.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, first_hash: bytes) -> None:
        self.path = path
        self._connection = connection
        self._accounts = Accounts(entries.Chain(first_hash))
        self._first_hash = first_hash
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @property
    def head(self) -> bytes:
        """The hash of the last entry, 32 bytes: noted elsewhere, it binds all entries up to it."""
        with self._read():
            return self._accounts.chain.hash

    def lines(self) -> list[entries.Line]:
        """All entries as they stand, without following the chain."""
        with self._guarded():
            return list(entries.lines_of(self._connection.execute(READ, (0,))))

    def verify(self, head: bytes | None = None) -> int:
        """Follow the chain from its beginning, and return the number of entries.

        A changed, removed, inserted or reordered entry breaks the chain. An end that was cut off,
        or a ledger rewritten from its beginning, shows only against a head noted before: the
        chain must have had it after some entry.

        Raises
        ------
        LedgerError : names the first entry that does not fit, or that ``head`` is not of this
        ledger.
        """
        chain, known = entries.Chain(self._first_hash), head is None or head == self._first_hash
        with self._guarded():
            for line in entries.lines_of(self._connection.execute(READ, (0,))):
                chain.follow(line)
                known = known or line.hash == head
        if not known and head is not None:
            raise entries.LedgerError(
                f"{self.path} does not verify: none of its {chain.number} entries has the head "
                f"{head.hex()}; entries were cut off, or the ledger was written again"
            )
        return chain.number

    def datasets(self) -> list[str]:
        """The names of all data sets with limits or debits."""
        with self._read():
            return self._accounts.datasets()

    def history(self, dataset: str | None = None) -> Counter[Cost]:
        """Every cost that was debited, with how often; of all data sets together by default."""
        with self._read():
            return self._accounts.history(dataset)

    def spending(self, dataset: str, clock: Clock = time.time) -> list[Spending]:
        """What was spent under every limit of a data set, in its window up to now."""
        with self._read():
            return self._accounts.spending(dataset, microseconds(clock))

    def paid(self, dataset: str) -> list[entries.Line]:
        """The debits of a data set that cost something, in order."""
        lines = [line for line in self.lines() if line.kind == entries.DEBIT and line.epsilon]
        return [line for line in lines if line.dataset == dataset]

    def approvals(self, dataset: str, plan: bytes) -> list[entries.Line]:
        """What became of the approvals of a plan for a data set, in order (``Ledger.approve``)."""
        with self._read():
            acts = self._accounts.approvals
            return [act for act in acts if (act.dataset, act.request) == (dataset, plan)]

    def now(self, clock: Clock = time.time) -> datetime:
        """The ledger's time, which is never before its last entry, whatever the clock says."""
        with self._read():
            return entries.instant(self._accounts.chain.moment(microseconds(clock)))

    @contextlib.contextmanager
    def _read(self) -> Iterator[None]:
        with self._guarded():
            self._catch_up()
            yield

    def _catch_up(self) -> None:
        """Take in what was written since, by whichever process."""
        rows = self._connection.execute(READ, (self._accounts.chain.number,))
        self._accounts.take(entries.lines_of(rows))

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raise errors of the block as errors of the ledger, so that no reply leaves."""
        if os.getpid() != self._process:
            raise entries.LedgerError(
                f"{self.path} was opened before a fork; open it again in this process"
            )
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise entries.LedgerError(f"{self.path} cannot be used: {error}") from None
        except entries.BrokenChainError as error:
            raise entries.LedgerError(f"{self.path} does not verify: {error}") from None


def microseconds(clock: Clock) -> int:
    """What a clock says, as lines hold it.

    Raises
    ------
    LedgerError : for a time before 1970 or after the year 9999, or none.
    """
    seconds = clock()
    if not 0 <= seconds < END_OF_TIME:
        raise entries.LedgerError(f"the clock must give seconds from 1970 to 9999, got {seconds}")
    return int(seconds * 1e6)
