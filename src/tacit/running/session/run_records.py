"""The records of a run: looked at when it begins, and again before each answer that reads them.

A message that no record is read for opens no file and no database: what it needs to know of the
records is kept with the run. An answer from records is paid for after a pass over them has shown
that they are those with which the run began.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, cast

from tacit import files
from tacit.data.clients import Clients
from tacit.data.engines.records import ChangedError, Known
from tacit.data.engines.stored import Stored, StoredClients
from tacit.data.errors import DataError
from tacit.ledger.ledger import Ledger
from tacit.protocol import values
from tacit.protocol.fields import MessageError
from tacit.running.session import debits

RUN, RECORDS_MARK = "run", "records"
"""The endings of a run's files: where it stands, and what is kept of the records it began with."""
CHANGED_RECORDS = "this party's records changed since the run began"
LOST_MARK = "this party has no note of the records with which the run began"


class UnreadableError(OSError):
    """Records that cannot be read now: the message is not answered, and may be sent again."""


class RunRecords:
    """A party's records in one run.

    Parameters
    ----------
    read : reads the records, or opens what they are stored in, of which this is known.
    ledger : whose key the digests are made with, so that without it they say nothing.
    folder : the party's state.
    session : the run.

    Raises
    ------
    DataError : for records that cannot be used.
    """

    def __init__(
        self, read: Callable[[Known], Clients], ledger: Ledger, folder: Path, session: str
    ) -> None:
        self._ledger, self._folder = ledger, folder
        self._path = folder / f"{session}.{RECORDS_MARK}"
        self._kept = self._of_file(self._path)
        self._read = cache(partial(read, self._kept.get("stored")))

    @cached_property
    def clients(self) -> Clients:
        """The records; of stored ones what is kept of them, until a step asks for more."""
        kept = self._kept.get("stored")
        if kept is None:
            return self._read()
        return StoredClients(cast(Stored, _Remembered(self._read, kept)), by_value=True)

    @property
    def fingerprint(self) -> bytes:
        """The ledger's keyed digest of the records with which the run began."""
        return bytes(self._kept["fingerprint"] if self._kept else self._beginning["fingerprint"])

    def guarded(self, guard: debits.Guard) -> debits.Guard:
        """The guard, which declines where the records are not those that the run began with.

        Figures of two steps about different records would mean nothing, and what a run keeps by the
        place of a record (turns, ranks, which of a person's records count) would be another's in
        another order. What the run was debited before stands: answers to it have left.
        """

        def checked(debit: debits.Debit) -> debits.Debited | None:
            try:
                self._check(debit)
            except DataError as error:
                raise UnreadableError(str(error)) from None
            return guard(debit)

        return checked

    def _check(self, debit: debits.Debit) -> None:
        if not self._kept:
            if self._path.with_suffix(f".{RUN}").exists():
                raise debits.DeclinedError(LOST_MARK)
            files.write_private(self._path, values.encode_values(self._beginning))
        elif debit.reads or self.clients.at_hand:
            try:
                changed = self._kept["mark"] != self._marks[1]
            except ChangedError as error:
                raise debits.DeclinedError(CHANGED_RECORDS) from error
            if changed:
                raise debits.DeclinedError(CHANGED_RECORDS)

    @cached_property
    def _marks(self) -> tuple[bytes, bytes]:
        """The fingerprint and the digest of the records as they are now."""
        return self._read().marks(self._ledger.record_key)

    @cached_property
    def _beginning(self) -> dict[str, Any]:
        """What is kept of the records as they are now."""
        records, (fingerprint, mark) = self._read(), self._marks
        kept = {"fingerprint": fingerprint, "mark": mark}
        if not isinstance(records, StoredClients):
            return kept
        return kept | {"stored": records.stored.summary}

    @staticmethod
    def _of_file(path: Path) -> dict[str, Any]:
        """What a file keeps; nothing, where there is none that can be read."""
        try:
            return values.decode_values(path.read_bytes())
        except (FileNotFoundError, MessageError):
            return {}


class _Remembered:
    """Stored records of which a summary is known, and which are opened when more is asked for."""

    def __init__(self, read: Callable[[], Clients], summary: dict[str, Any]) -> None:
        vars(self).update(summary)
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(cast(StoredClients, self._read()).stored, name)
