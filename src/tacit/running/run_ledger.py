"""The ledger of runs in one process: a run is debited in whole before anything is computed.

Parties debit message by message, since a coordinator may ask them anything. Here one program asks
and answers, and its user sees all of it: one debit of the whole guarantee, durable before the first
step, covers whatever of the run is seen, also of one that breaks off. It may count too much, as
where labels that were flipped before cost nothing again, and never too little.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass

from tacit.data.clients import Clients
from tacit.ledger.entries import Entry, request_digest
from tacit.ledger.ledger import Ledger
from tacit.privacy.composition import stated_cost
from tacit.privacy.cost import Cost
from tacit.running.session.debits import fingerprint, limit_line

UNDEBITED = "this simulation debited no ledger"

WITHOUT = "none: nothing remembers what was spent (--ledger FILE)"

STEP = "0 whole run"
"""The step of the only debit of a run in one process."""


@dataclass(frozen=True, eq=False)
class RunLedger:
    """A ledger, and the records about which runs in this process debit it.

    Parameters
    ----------
    path : the ledger's file, which must be there.
    dataset : the records' name in it; None for the only data set of the ledger.
    """

    path: str | os.PathLike[str]
    dataset: str | None

    def debit(self, records: Clients, protocol: str, cost: Cost) -> None:
        """Debit a run, durably.

        Parameters
        ----------
        records : all records, also those of persons that do not count.
        protocol : its name.
        cost : the most that the run may cost, about the unit of privacy.

        Raises
        ------
        BudgetError : where the ledger does not allow it, or cannot be read or written.
        ValueError : for a ledger with several data sets and no name.
        OSError : for a ledger that is not there, or cannot be opened.
        """
        dataset, session = self.named(), secrets.token_bytes(16)
        with Ledger(self.path) as ledger:
            mark, request = fingerprint(ledger, records), request_digest(session)
            named = (dataset, mark, protocol, STEP, session.hex(), request)
            ledger.debit(Entry(*named, stated_cost(cost, cost)))

    def named(self) -> str:
        """The name of the records in the ledger.

        Raises
        ------
        LedgerError, ValueError, OSError : as ``debit``.
        """
        with Ledger.open_readonly(self.path) as pages:
            known = pages.datasets()
        if self.dataset is None and len(known) != 1:
            listed = ", ".join(map(repr, known)) or "none"
            raise ValueError(
                f"{os.fspath(self.path)} must have one data set where the run names none, has "
                f"{listed}: name the records' data set as the federation"
            )
        return known[0] if self.dataset is None else self.dataset

    def lines(self, cost: Cost) -> list[str]:
        """What is left under each limit of the records, for runs of a cost."""
        dataset = self.named()
        with Ledger.open_readonly(self.path) as pages:
            return [f"{dataset} {limit_line(each, cost)}" for each in pages.spending(dataset)]
