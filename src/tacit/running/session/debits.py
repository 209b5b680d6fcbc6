"""What a party writes into its ledger before it answers, and how it declines.

What the module says about the cost of runs, on the party's own terminal and in its log, holds
numbers of the ledger, and is never sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tacit.ledger.accounts import Spending
from tacit.ledger.entries import BudgetError, Entry, LimitError, instant
from tacit.ledger.ledger import Ledger
from tacit.privacy.composition import of_person, stated_cost
from tacit.privacy.cost import Cost, amount_line
from tacit.protocol.conversation import Protocol
from tacit.running.session.messages import Agreement
from tacit.running.speaking import checked_reason


class DeclinedError(Exception):
    """A party does not answer a query, for a public reason.

    Parameters
    ----------
    public : what everyone learns; it holds nothing of the records.

    Raises
    ------
    ValueError : for a reason that ``checked_reason`` refuses.
    """

    def __init__(self, public: str) -> None:
        super().__init__(public)
        self.public = checked_reason(public)


@dataclass(frozen=True)
class Debit:
    """What a party is about to spend.

    Parameters
    ----------
    session : the run.
    round : the message that asks for it.
    step : the name of the step.
    request : SHA-256 of that message.
    cost : what this answer adds to what the run has cost, if all that the run has cost is known.
    whole : what this answer costs alone.
    after : the receipt of the run's last debit that the party knows of; empty for none.
    once : whether the answer leaves at most once, because its keys or masks serve once.
    reads : whether records are read for the answer.
    """

    session: bytes
    round: int
    step: str
    request: bytes
    cost: Cost
    whole: Cost
    after: bytes = b""
    once: bool = False
    reads: bool = False


@dataclass(frozen=True)
class Debited:
    """A debit that is on disk.

    Parameters
    ----------
    receipt : its hash in the ledger.
    earlier : the sum of all earlier debits of the run, where the ledger held debits that the party
        did not know, so that ``Debit.whole`` was debited; None where the party knew all of them.
    """

    receipt: bytes
    earlier: Cost | None = None


Guard = Callable[[Debit], Debited | None]
"""Writes a debit down before the reply is computed, or raises ``DeclinedError``. One that keeps
nothing returns None."""


def unrecorded(debit: Debit) -> None:
    """Write nothing down: for runs in which no party exists, or only to rehearse."""


@dataclass(frozen=True)
class LedgerGuard:
    """Writes every debit of a run into a ledger, and declines what the ledger does not allow.

    A party's state says what its run has paid for. State may be lost, or be an older copy; the
    ledger then holds debits of the run that the state does not know. Their answers may have left.
    So an answer is paid for in full then, as if nothing were known of the run; and only the message
    that those debits are about is answered again. Another one is declined. So is the same message
    where its answer leaves once: two answers under one mask reveal their difference.

    Parameters
    ----------
    ledger : the file that it writes.
    dataset : the name of the records in it.
    agreement : what the run computes, and whose costs it counts.
    fingerprint : the ledger's keyed digest of all records.
    """

    ledger: Ledger
    dataset: str
    agreement: Agreement
    fingerprint: bytes

    def __call__(self, debit: Debit) -> Debited:
        """Debit, durably.

        Raises
        ------
        DeclinedError : with what everyone may know.
        """
        try:
            earlier = self.ledger.unknown_spending(self._entry(debit, debit.whole), debit.after)
            cost = debit.cost if earlier is None else debit.whole
            last = debit.after if earlier is None or debit.once else None
            return Debited(self.ledger.debit(self._entry(debit, cost), last).hash, earlier)
        except BudgetError as error:
            if isinstance(error, LimitError):
                for spending in self.ledger.spending(self.dataset):
                    note_freed(error, self.ledger, spending)
            raise DeclinedError(error.public) from error

    def _entry(self, debit: Debit, cost: Cost) -> Entry:
        protocol = self.agreement.protocol
        return Entry(
            self.dataset,
            self.fingerprint,
            protocol.name,
            f"{debit.round} {debit.step}",
            debit.session.hex(),
            debit.request,
            stated_cost(cost, of_person(protocol.guarantee, self.agreement.per_person)),
        )


def paid_line(protocol: Protocol, spent: Cost, guarantee: Cost, spendings: list[Spending]) -> str:
    """What was answered, what the run has cost so far, and what the limits leave.

    Parameters
    ----------
    protocol : what the run computes.
    spent : what the run has cost so far.
    guarantee : what it may cost.
    spendings : of the data set, by limit.
    """
    run = amount_line(spent.epsilon, spent.delta)
    lines = [f"answered: {protocol.figure} by {protocol.name}; this run has cost {run} so far"]
    lines += [f"the ledger {each.line(guarantee)}" for each in spendings]
    return "; ".join(lines)


def note_freed(error: LimitError, ledger: Ledger, spending: Spending) -> None:
    """Note for the owner when the first spending leaves a rolling window, where one does."""
    period, dataset = spending.limit.period, spending.limit.dataset
    times = [line.time for line in ledger.paid(dataset)]
    if period is None or not times:
        return
    first = next((t for t in times if instant(t) + period > instant(times[-1])), times[-1])
    error.add_note(
        f"budget returns from {instant(first) + period:%Y-%m-%d}; to allow more now: "
        f"tacit ledger limit {ledger.path} --dataset {dataset}"
    )
