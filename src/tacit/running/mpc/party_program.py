"""One party's process in a joint computation: ``python -m tacit.running.mpc.party_program``.

It reads orders from a connection that it inherits, and answers there. The first comes from whoever
runs the party: its records, its ledger, its key, and what was agreed. All later ones hold signed
messages of the session's coordinator, which the party answers as in any federation
(``session.party.client.Party``). It computes with the other parties over their own channels.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.ledger.ledger import Ledger
from tacit.privacy.sampling.noise import NoNoise, SystemNoise
from tacit.protocol import mpc
from tacit.protocol.fields import MessageError
from tacit.protocol.registry import protocol_of
from tacit.protocol.values import decode_values, encode_values
from tacit.running.mpc.channels import TunnelTransport
from tacit.running.mpc.spu import load_engine
from tacit.running.session.messages import Agreement, SignedMessageError
from tacit.running.session.party.client import Party
from tacit.running.session.party.debits import Guard, LedgerGuard, fingerprint, unrecorded
from tacit.running.session.reasons import UNFIT
from tacit.running.speaking import tell_owner

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
        self._waiting: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def order(self) -> dict[str, Any]:
        """The next order."""
        return self._waiting.get()

    def answer(self, kind: str, **values: Any) -> None:
        """Send an answer."""
        with self._lock:
            self._connection.send_bytes(encode_values({"kind": kind, **values}))

    def give_up(self, sentence: str) -> None:
        """Say why, and end the process, whatever its threads are waiting for."""
        try:
            self.answer("failed", reason=sentence)
        finally:
            os._exit(FAILED)

    def _listen(self) -> None:
        try:
            while True:
                self._waiting.put(decode_values(self._connection.recv_bytes()))
        except MessageError as error:
            self.give_up(f"an order could not be read: {error}")
        except (EOFError, OSError):
            os._exit(FAILED)


class Answering:
    """A party of one run behind orders: its beginning, and then signed messages."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._party: Party | None = None

    def obey(self, order: dict[str, Any]) -> bool:
        """Carry out one order; False once there is no more to do."""
        kind = order["kind"]
        if kind == "stop":
            return False
        if kind == "start":
            self._start(order)
        elif kind == "message":
            self._desk.answer("message", message=self._answer(order["message"]))
        else:
            raise mpc.MPCError(f"unknown order {kind!r}")
        return True

    def _start(self, order: dict[str, Any]) -> None:
        if self._party is not None:
            raise mpc.MPCError("the party has started already")
        scores, labels, second = order["scores"], order["labels"], order["second"]
        offsets = np.array([0, scores.size], dtype=np.int64)
        clients = Clients(scores, labels, offsets, (order["name"],), second=second)
        agreement = Agreement(
            protocol_of(order["protocol"], order["settings"]),
            order["keys"],
            order["coordinator"],
            per_person=order["per_person"],
        )
        guard = guard_of(agreement, clients, order["ledger"], order["simulated"])
        load_engine()
        timeout, setup_timeout = order["timeout"], order["setup_timeout"]
        self._party = Party(
            order["index"],
            Identity.from_bytes(order["identity"]),
            agreement,
            clients,
            NoNoise() if order["silent"] else SystemNoise(),
            guard,
            unit=agreement.unit,
            misfit="",
            transport=TunnelTransport(LOCAL, None, timeout, setup_timeout, self._desk.give_up),
        )
        self._desk.answer("ready")

    def _answer(self, message: bytes) -> bytes:
        if self._party is None:
            raise mpc.MPCError("the party has no records yet")
        reply = self._party.answer(message)
        if self._party.failure:
            raise mpc.MPCError(self._party.failure)
        return reply


def guard_of(agreement: Agreement, clients: Clients, ledger: str | None, simulated: bool) -> Guard:
    """What a party's debits go to: its ledger, under the party's name as the data set.

    Parameters
    ----------
    agreement : what the run computes, and whose costs it counts.
    clients : the party's records, a batch of one named client.
    ledger : the path of its ledger; None only for a client that does not exist.
    simulated : whether it does not exist.

    Raises
    ------
    MPCError : for a client that exists and has no ledger.
    LedgerError, OSError : where the ledger cannot be opened.
    """
    if ledger is not None:
        opened = Ledger(ledger)
        digest, protocol = fingerprint(opened, clients), agreement.protocol
        return LedgerGuard(opened, clients.name(0), protocol, digest, agreement.per_person)
    if simulated is not True:
        raise mpc.MPCError("a real client answers only with a ledger, and none was given")
    return unrecorded


def reason_of(error: Exception) -> str:
    """Why a party gave up, for the aggregator; the text holds no value of the party's records.

    Details about the records go to standard error, which only the party reads.
    """
    quoting = isinstance(error, SignedMessageError) and error.__cause__ is not None
    if quoting or isinstance(error, DataError):
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
    answering, failed = Answering(desk), True
    try:
        while answering.obey(desk.order()):
            pass
        failed = False
    except (mpc.MPCError, *UNEXPECTED) as error:
        desk.answer("failed", reason=reason_of(error))
    os._exit(FAILED if failed else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
