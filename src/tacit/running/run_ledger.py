"""The ledger of runs in one process: a run is debited in whole before anything is computed.

Parties debit message by message, since a coordinator may ask them anything. Here one program asks
and answers, and its user sees all of it: one debit of the whole guarantee, durable before the first
step, covers whatever of the run is seen, also of one that breaks off.
"""

from __future__ import annotations

import os
import secrets

from tacit.data.clients import Clients
from tacit.ledger.entries import Entry, request_digest
from tacit.ledger.ledger import Ledger
from tacit.privacy.composition import stated_cost
from tacit.privacy.cost import Cost
from tacit.running.session.debits import fingerprint

UNDEBITED = "this simulation debited no ledger"


def debit_run(
    path: str | os.PathLike[str], dataset: str | None, records: Clients, protocol: str, cost: Cost
) -> None:
    """Debit a run, durably.

    Parameters
    ----------
    path : the ledger's file, which must be there.
    dataset : the records' name in it; None for its only data set.
    records : all records, also those of persons that do not count.
    protocol : its name.
    cost : the most that the run may cost, about the unit of privacy.

    Raises
    ------
    BudgetError : where the ledger does not allow it, or cannot be read or written.
    ValueError : for no name, where the ledger does not have one data set.
    OSError : for a ledger that is not there, or cannot be opened.
    """
    with Ledger.open_readonly(path) as pages:  # it makes none
        known = pages.datasets() if dataset is None else [dataset]
    if len(known) != 1:
        listed = ", ".join(map(repr, known)) or "none"
        raise ValueError(
            f"{os.fspath(path)} must have one data set where the run names none, got {listed}: "
            "name the records' data set as the federation"
        )
    session = secrets.token_bytes(16)
    with Ledger(path) as ledger:
        asked = (protocol, "0 whole run", session.hex(), request_digest(session))
        mark = fingerprint(ledger, records)
        ledger.debit(Entry(known[0], mark, *asked, stated_cost(cost, cost)))
