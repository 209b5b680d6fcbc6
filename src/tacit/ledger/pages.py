"""A ledger as it is read: entries, sums, and whether it was tampered with."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tacit.ledger.accounts import Accounts, StepCost
from tacit.ledger.entries import COLUMNS, BrokenChainError, Chain, Line, lines_of
from tacit.ledger.errors import LedgerError
from tacit.ledger.files import Identity
from tacit.privacy.cost import Cost

Clock = Callable[[], float]

READ = f"SELECT {', '.join(COLUMNS)} FROM entries WHERE number > ? ORDER BY number"  # noqa: S608
END_OF_TIME = 253_402_300_800


class Pages:
    """A ledger to be read: entries, sums, and whether it was tampered with.

    Sums cover the entries at the time of the call; reading does not disturb a writer.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, identity: Identity) -> None:
        self.path = path
        self._connection = connection
        self._accounts = Accounts(Chain(identity.first_hash))
        self._first_hash = identity.first_hash
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    @property
    def head(self) -> bytes:
        """The hash of the last entry, 32 bytes: noted elsewhere, it binds all entries up to it."""
        with self._read():
            return self._accounts.chain.hash

    def lines(self) -> list[Line]:
        """All entries as they stand, without following the chain."""
        with self._guarded():
            return list(lines_of(self._connection.execute(READ, (0,))))

    def verify(self, head: bytes | None = None) -> int:
        """Follow the chain from its beginning, and return the number of entries.

        A changed, removed, inserted or reordered entry breaks the chain. An end that was cut off,
        or a ledger written anew from its beginning, shows only against a head noted before: the
        chain must have had it after some entry.

        Raises
        ------
        LedgerError : names the first entry that does not fit, or that ``head`` is not of this
        ledger.
        """
        chain, known = Chain(self._first_hash), head is None or head == self._first_hash
        with self._guarded():
            for line in lines_of(self._connection.execute(READ, (0,))):
                chain.follow(line)
                known = known or line.hash == head
        if not known and head is not None:
            raise LedgerError(
                f"{self.path} does not verify: none of its {chain.number} entries has the head "
                f"{head.hex()}; entries were cut off, or the ledger was written anew"
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

    def spending(self, dataset: str, clock: Clock = time.time) -> list[StepCost]:
        """What was spent under every limit of a data set, in its window up to now."""
        with self._read():
            return self._accounts.spending(dataset, microseconds(clock))

    @contextlib.contextmanager
    def _read(self) -> Iterator[None]:
        with self._guarded():
            self._catch_up()
            yield

    def _catch_up(self) -> None:
        """Take in what was written since, by whichever process."""
        rows = self._connection.execute(READ, (self._accounts.chain.number,))
        self._accounts.take(lines_of(rows))

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raise errors of the block as errors of the ledger, so that no reply leaves."""
        if os.getpid() != self._process:
            raise LedgerError(
                f"{self.path} was opened before a fork; open it again in this process"
            )
        try:
            with self._lock:
                yield
        except sqlite3.Error as error:
            raise LedgerError(f"{self.path} cannot be used: {error}") from None
        except BrokenChainError as error:
            raise LedgerError(f"{self.path} does not verify: {error}") from None


def microseconds(clock: Clock) -> int:
    """What a clock says, as lines hold it.

    Raises
    ------
    LedgerError : for a time before 1970 or after the year 9999, or none.
    """
    seconds = clock()
    if not 0 <= seconds < END_OF_TIME:
        raise LedgerError(f"the clock must give seconds from 1970 to 9999, got {seconds}")
    return int(seconds * 1e6)
