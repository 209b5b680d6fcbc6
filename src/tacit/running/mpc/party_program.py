"""One party's process in a joint computation: ``python -m tacit.running.mpc.party_program``.

It reads orders from a connection that it inherits, and answers there. The first comes from the
process that runs the party: its records, its ledger, its key, and what was agreed. All later ones
are signed messages of the session's coordinator, which the party answers as in any federation
(``session.party.Party``). It computes with the other parties over their own channels, and
ends when the connection does.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import numpy as np

import tacit.protocol as tp
from tacit.crypto.identities import Identity
from tacit.ledger.ledger import Ledger
from tacit.protocol import mpc
from tacit.protocol.values import decode_values, encode_values
from tacit.running.mpc.channels import TunnelTransport
from tacit.running.mpc.spu import load_engine
from tacit.running.session import debits, messages
from tacit.running.session.party import Party
from tacit.running.speaking import UNFIT, tell_owner

LOCAL = ("127.0.0.1", 0)
FAILED = 1
UNANSWERED = "it cannot answer a message; its own log says why"
UNEXPECTED = (ValueError, TypeError, KeyError, ImportError, OSError)


class Desk:
    """Where a party reads orders and writes answers, from more than one thread.

    When the other end is gone the process ends.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self._waiting: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def order(self) -> bytes:
        """The next order."""
        return self._waiting.get()

    def answer(self, **values: bytes | str) -> None:
        """Send an answer."""
        with self._lock:
            self._connection.send_bytes(encode_values(values))

    def give_up(self, sentence: str) -> NoReturn:
        """Say why, and end the process, whatever its threads are waiting for."""
        try:
            self.answer(failed=sentence)
        finally:
            os._exit(FAILED)

    def _listen(self) -> None:
        try:
            while True:
                self._waiting.put(self._connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def started(beginning: dict[str, Any], lost: Callable[[str], None]) -> Party:
    """The party of a run's first order.

    Parameters
    ----------
    beginning : its records, its key and ledger, and what was agreed. The data set has its name in
        the ledger; only a client that does not exist may have none.
    lost : told why when the connection to another party is lost.

    Raises
    ------
    MPCError : for a client that exists and has no ledger.
    LedgerError, OSError : where the ledger cannot be opened.
    """
    scores, name = beginning["scores"], beginning["name"]
    offsets = np.array([0, scores.size], dtype=np.int64)
    clients = tp.Clients(scores, beginning["labels"], offsets, (name,), second=beginning["second"])
    agreement = messages.Agreement(
        tp.protocol_of(beginning["protocol"], beginning["settings"]),
        beginning["keys"],
        beginning["coordinator"],
        per_person=beginning["per_person"],
    )
    guard: debits.Guard = debits.unrecorded
    if beginning["ledger"] is not None:
        ledger = Ledger(beginning["ledger"])
        mark, _ = clients.marks(ledger.record_key)
        guard = debits.LedgerGuard(ledger, name, agreement, mark)
    elif beginning["simulated"] is not True:
        raise mpc.MPCError("a real client answers only with a ledger, and none was given")
    load_engine()
    timeout, setup_timeout = beginning["timeout"], beginning["setup_timeout"]
    return Party(
        beginning["index"],
        Identity.from_bytes(beginning["identity"]),
        agreement,
        clients,
        tp.NoNoise() if beginning["silent"] else tp.SystemNoise(),
        guard,
        unit=agreement.unit,
        misfit="",
        transport=TunnelTransport(LOCAL, None, timeout, setup_timeout, lost),
    )


def reason_of(error: Exception) -> str:
    """Why a party gave up, for the aggregator; the text holds no value of the party's records.

    Details about the records go to standard error, which only the party reads.
    """
    quoting = isinstance(error, messages.SignedMessageError) and error.__cause__ is not None
    if quoting or isinstance(error, tp.DataError):
        tell_owner(str(error))
        return UNANSWERED if quoting else UNFIT
    return str(error) if isinstance(error, mpc.MPCError) else f"{type(error).__name__}: {error}"


def main(connection: int) -> None:
    """Serve one run: orders and answers by an open connection.

    Parameters
    ----------
    connection : its file descriptor.
    """
    desk = Desk(Connection(connection))
    try:
        party, reply = started(decode_values(desk.order()), desk.give_up), b""
        while not party.failure:
            desk.answer(reply=reply)
            reply = party.answer(desk.order())
        desk.give_up(party.failure)
    except (mpc.MPCError, *UNEXPECTED) as error:
        desk.give_up(reason_of(error))


if __name__ == "__main__":
    main(int(sys.argv[1]))
