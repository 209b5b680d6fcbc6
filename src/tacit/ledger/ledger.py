"""A client's durable ledger: no reply leaves before its cost is on disk.

The ledger is one SQLite file in write-ahead mode whose every commit waits for the disk. Its entries
say what was asked, when, under which name, and what the answer spent: no counts, scores or labels.
``docs/guides/ledger.md`` says what it protects against and what not.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tacit.crypto import multisets
from tacit.ledger import entries
from tacit.ledger.accounts import Spending
from tacit.ledger.files import Clock, Pages, keyed_digest, microseconds, open_to_read, open_to_write
from tacit.privacy.cost import NOTHING, Adjacency, Cost, amount_line

WRITE = f"INSERT INTO entries VALUES ({', '.join('?' * len(entries.COLUMNS))})"  # noqa: S608


class Ledger(Pages):
    """A client's ledger; made if there is none, readable by its owner only.

    Processes and threads may share a ledger: their debits are serialised. A connection must not be
    taken through a fork.

    Parameters
    ----------
    path : the file, on a local disk. Its key lies next to it, as ``path.key``.
    clock : seconds since 1970. The ledger's own time never goes back, whatever the clock does.

    Raises
    ------
    LedgerError : for a file that is no ledger, is not its owner's only, or whose key is missing.
    OSError : where the files cannot be made or read.

    Examples
    --------
    >>> import tempfile
    >>> from tacit.privacy.cost import Cost
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(f"{folder.name}/budget.db") as ledger:
    ...     set_at = ledger.limit("registry", epsilon=1.5, adjacency=Adjacency.LABEL)
    ...     records = ledger.fingerprint(np.array([0.2, 0.7]), np.array([0, 1]))
    ...     cost = Cost(1.0, adjacency=Adjacency.LABEL)
    ...     query = entries.request_digest(b"the query as it arrived")
    ...     step = "0 noisy_pairs"
    ...     entry = entries.Entry("registry", records, "fedauc", step, "run 1", query, cost)
    ...     receipt = ledger.debit(entry)
    ...     try:
    ...         ledger.debit(replace(entry, session="run 2"))
    ...     except entries.LimitError as error:
    ...         print(error.public)
    declined: the privacy budget does not allow it
    >>> receipt.number
    2
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], clock: Clock = time.time) -> None:
        connection, first_hash, self._key = open_to_write(Path(path))
        super().__init__(Path(path), connection, first_hash)
        self._clock = clock

    @staticmethod
    def open_readonly(path: str | os.PathLike[str]) -> Pages:
        """A ledger to look at, without its key.

        Raises
        ------
        LedgerError : for a file that is no ledger.
        FileNotFoundError : where there is none.
        """
        return Pages(Path(path), *open_to_read(Path(path)))

    def fingerprint(self, *columns: ArrayLike) -> bytes:
        """A keyed digest of records, whatever their order: 32 bytes that say nothing without a key.

        Records of a run have that of their numbers, too (``Clients.marks`` with ``record_key``).

        Parameters
        ----------
        columns : what a record consists of, each shape (M,), of finite numbers,
            whole ones below 2**53 in size.

        Raises
        ------
        ValueError : for no columns, columns of different lengths, or other numbers.
        """
        if not columns:
            raise ValueError("a fingerprint needs at least one column, got none")
        sizes = [np.shape(column) for column in columns]
        if any(len(size) != 1 or size != sizes[0] for size in sizes):
            raise ValueError(f"columns must have one length, got shapes {sizes}")
        if not all(np.isfinite(column).all() and _is_exact(column) for column in columns):
            raise ValueError("a fingerprint needs finite numbers, whole ones below 2**53 in size")
        sums = multisets.enciphered_sums(self.record_key, [*map(multisets.word_of, columns)])
        return multisets.digests_of(self.record_key, sums)[0]

    @property
    def record_key(self) -> bytes:
        """The key of the digests of records, 32 bytes: without it they say nothing."""
        return keyed_digest(self._key, "secret of records")

    def limit(
        self,
        dataset: str,
        epsilon: float,
        delta: float = 0.0,
        period: timedelta | None = None,
        adjacency: Adjacency = Adjacency.RECORD,
        accounting: entries.Accounting = "basic",
    ) -> entries.Receipt:
        """Set a data set's limit; it replaces one at the same adjacency and period.

        What was debited before counts. Several limits hold together. Without any, nothing is
        answered; an infinite one refuses nothing. Parameters are those of ``Limit``.

        Raises
        ------
        ValueError : for values outside ``Limit``'s bounds.
        LedgerError : where the ledger cannot be written or does not verify.
        """
        limit = entries.Limit(dataset, float(epsilon), float(delta), adjacency, period, accounting)
        span = None if period is None else period // entries.MICROSECOND
        said = vars(limit) | {"adjacency": adjacency.value, "period": span}
        with self._write() as clock:
            return self._append(entries.LIMIT, clock, **said)

    def approve(
        self, act: entries.Act, dataset: str, plan: bytes, who: str, session: str | None = None
    ) -> entries.Receipt:
        """Write down what became of the approval of a plan; nothing is spent.

        Parameters
        ----------
        act : an approval was drafted or revoked, or a run under it was answered first.
        dataset : the data set's name.
        plan : SHA-256 of the plan.
        who : the names of those who signed or revoked.
        session : the run that is answered.

        Raises
        ------
        LedgerError : where the ledger cannot be written or does not verify.
        """
        said = {"dataset": dataset, "request": plan, "step": who, "session": session}
        with self._write() as clock:
            return self._append(entries.APPROVAL, clock, epsilon=0.0, delta=0.0, reason=act, **said)

    def debit(self, entry: entries.Entry, last: bytes | None = None) -> entries.Receipt:
        """Write a cost down; on disk when this returns, so that the reply may leave after it.

        A debit under a session and step that were debited before for the same question is another
        debit. Refusals are noted without effect on any sum, once for a session and step.

        Parameters
        ----------
        entry : the question, and what its answer spends.
        last : the receipt's hash of the debit that must be the session's last; empty for none yet.
            None lets the session have any others.

        Raises
        ------
        LimitError : when a limit of the data set would be passed, or there is none.
        ConflictError : when another question was debited under this session and step, or these
            records under another name.
        RepeatedError : when the session has debits after ``last``, for the same question.
        LedgerError : where the ledger cannot be written, as on a full disk, or does not verify.
        """
        refusal: entries.BudgetError | None = None
        with self._write() as clock:
            refusal = (
                self._repetition(entry, last)
                or self._contradiction(entry)
                or self._excess(entry, clock)
            )
            if refusal is None:
                return self._append(entries.DEBIT, clock, **self._fields(entry))
            if (entry.session, entry.step) not in self._accounts.refused:
                reason = type(refusal).__name__
                self._append(entries.REFUSAL, clock, **self._fields(entry), reason=reason)
        raise refusal

    def unknown_spending(self, entry: entries.Entry, after: bytes) -> Cost | None:
        """What a session has cost, where this ledger holds debits that the asker does not know.

        Parameters
        ----------
        entry : the question that is about to be debited.
        after : the receipt's hash of the last debit of the session that the asker knows of; empty
            for none.

        Returns
        -------
        None where the asker knows all debits of the session. Else the sum of all of them: the ones
        that it does not know are about this very question, and their answers may have left.

        Raises
        ------
        ConflictError : where a debit that the asker does not know is about another question: the
            asker goes on from a state that is older than this ledger.
        LedgerError : where this ledger has no debit ``after`` in the session: it is older than the
            asker's state. Or where it cannot be read or does not verify.
        """
        with self._read():
            unknown = self._after(entry, after)
            debits = list(self._accounts.debits_of[entry.session])
        return sum((debit.entry.cost for debit in debits), NOTHING) if unknown else None

    def _after(self, entry: entries.Entry, receipt: bytes) -> list[entries.Line]:
        """The debits of a question's session after a receipt, all of them about this question."""
        debits = self._accounts.debits_of[entry.session]
        known = [debit.hash for debit in debits]
        if receipt and receipt not in known:
            raise entries.LedgerError(
                f"{self.path} has no debit {receipt.hex()[:16]} of this session, and was debited "
                "with it: an older copy was restored"
            )
        unknown = debits[known.index(receipt) + 1 if receipt else 0 :]
        question = (entry.step, self._keyed(entry.request))
        if any((debit.step, debit.request) != question for debit in unknown):
            raise entries.ConflictError(
                f"session {entry.session!r} went on to step {debits[-1].step!r}, and what asks for "
                f"step {entry.step!r} does not know of it: an older state was restored"
            )
        return unknown

    def _repetition(self, entry: entries.Entry, last: bytes | None) -> entries.RepeatedError | None:
        if last is None or not self._after(entry, last):
            return None
        return entries.RepeatedError(
            f"step {entry.step!r} of session {entry.session!r} was debited before, and what asks "
            "for it does not know of it: an older state was restored, or the program ended before "
            "its answer left"
        )

    @contextlib.contextmanager
    def _write(self) -> Iterator[int]:
        """One transaction, alone in the ledger from its first look to its commit; gives the
        clock."""
        with self._guarded():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up()
                yield microseconds(self._clock)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _append(self, kind: entries.Kind, clock: int, **values: Any) -> entries.Receipt:
        """Add a line to the chain, in the transaction that is open."""
        chain = self._accounts.chain
        line = entries.Line(chain.number + 1, kind, chain.moment(clock), clock, **values)
        line = replace(line, hash=line.chained(chain.hash))
        self._connection.execute(WRITE, tuple(getattr(line, name) for name in entries.COLUMNS))
        return entries.Receipt(line.number, line.hash, entries.instant(line.time))

    def _fields(self, entry: entries.Entry) -> dict[str, Any]:
        """An entry as a line has it: its request keyed, its cost in fields of their own."""
        said = vars(entry) | {"request": self._keyed(entry.request)}
        cost = said.pop("cost")
        return said | {
            "epsilon": float(cost.epsilon),
            "delta": float(cost.delta),
            "rho": None if cost.rho is None else float(cost.rho),
            "adjacency": None if cost.adjacency is None else cost.adjacency.value,
        }

    def _keyed(self, request: bytes) -> bytes:
        """A query may follow from records (as ranks do), so its digest is keyed too."""
        return keyed_digest(self._key, "request", request)

    def _contradiction(self, entry: entries.Entry) -> entries.ConflictError | None:
        before = self._accounts.answered.get((entry.session, entry.step))
        question = replace(entry, request=self._keyed(entry.request))
        if before is not None and replace(before, cost=entry.cost) != question:
            return entries.ConflictError(
                f"step {entry.step!r} of session {entry.session!r} was answered for another "
                "request, protocol or data set"
            )
        name = self._accounts.names.get(entry.fingerprint)
        if name is not None and name != entry.dataset:
            return entries.ConflictError(
                f"these records are booked as {name!r}, got {entry.dataset!r}: "
                "one name holds one budget, so give them their first name again"
            )
        return None

    def _excess(self, entry: entries.Entry, clock: int) -> entries.LimitError | None:
        if entry.dataset not in self._accounts.windows:
            return entries.LimitError(
                f"no limit is set for data set {entry.dataset!r}; "
                "set one with Ledger.limit or: tacit ledger limit"
            )
        passed = self._accounts.passed(entry.dataset, entry.cost, clock)
        return None if passed is None else entries.LimitError(_excess_message(entry, passed))


def _is_exact(column: ArrayLike) -> bool:
    """Whether no whole number is one that float64 rounds."""
    values = np.asarray(column)
    return values.dtype.kind == "f" or bool(np.all(np.abs(values.astype(float)) < 2.0**53))


def _excess_message(entry: entries.Entry, passed: Spending) -> str:
    """For the owner: what the limit is, what is spent, and what was asked."""
    limit, cost, zcdp = passed.limit, entry.cost, passed.limit.accounting == "zcdp"
    budget = amount_line(cost.epsilon, cost.delta).replace("epsilon inf", "epsilon without limit")
    at = f"at {cost.adjacency.value} adjacency" if cost.adjacency else "at no adjacency"
    span = "" if limit.period is None else f" per {str(limit.period).removesuffix(', 0:00:00')}"
    lost = f", {passed.unlimited} debits without limit" if passed.unlimited else ""
    rho = f" (rho {passed.rho:g}, by zcdp)" if zcdp else ""
    return (
        f"limit {amount_line(limit.epsilon, limit.delta)}{span} at {limit.adjacency.value} "
        f"adjacency, {amount_line(passed.epsilon, passed.delta)}{rho}{lost} spent; "
        f"{entry.protocol} asks data set {entry.dataset!r} for {budget} more {at}"
    )
