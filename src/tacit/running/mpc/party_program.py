"""One party's process in a joint computation: ``python -m tacit.running.mpc.party_program``.

It reads frames on its standard input and answers on its standard output. The first comes from
whoever runs the party: its records, its ledger, its key, and what was agreed. All later ones hold
signed messages of the session's coordinator, which the party answers as in any federation
(``session.client.Party``). It computes with the other parties over their own channels.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from typing import BinaryIO

import numpy as np

from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.ledger.ledger import Ledger
from tacit.privacy.sampling.noise import NoNoise, SystemNoise
from tacit.protocol import mpc
from tacit.protocol.registry import protocol_of
from tacit.results.text import escaped
from tacit.running.mpc.channels import TunnelTransport
from tacit.running.mpc.frames import Frame, FrameError, read_frame
from tacit.running.mpc.spu import load_engine
from tacit.running.session.messages import Agreement, SignedMessageError
from tacit.running.session.party.client import Party
from tacit.running.session.party.debits import Guard, LedgerGuard, fingerprint, unrecorded
from tacit.running.session.reasons import UNFIT

LOCAL = ("127.0.0.1", 0)
FAILED = 1
UNANSWERED = "it cannot answer a message; its own log says why"
UNEXPECTED = (ValueError, TypeError, KeyError, ImportError, OSError)


class Desk:
    """Where a party reads orders and writes answers, from more than one thread.

    When the other end is gone the process ends.
    """

    def __init__(self, orders: BinaryIO, answers: BinaryIO) -> None:
        self._answers, self._lock = answers, threading.Lock()
        self._waiting: queue.Queue[Frame] = queue.Queue()
        threading.Thread(target=self._listen, args=(orders,), daemon=True).start()

    def order(self) -> Frame:
        """The next order."""
        return self._waiting.get()

    def answer(self, frame: Frame) -> None:
        """Send an answer."""
        with self._lock:
            frame.write(self._answers)

    def give_up(self, sentence: str) -> None:
        """Say why, and end the process, whatever its threads are waiting for."""
        try:
            self.answer(Frame.of("failed", reason=sentence))
        finally:
            os._exit(FAILED)

    def _listen(self, orders: BinaryIO) -> None:
        try:
            while (frame := read_frame(orders)) is not None:
                self._waiting.put(frame)
        except FrameError as error:
            self.give_up(f"an order could not be read: {error}")
        os._exit(FAILED)


class Answering:
    """A party of one run behind frames: its beginning, and then signed messages."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._party: Party | None = None

    def obey(self, order: Frame) -> bool:
        """Carry out one order; False once there is no more to do."""
        if order.kind == "stop":
            return False
        if order.kind == "start":
            self._start(order)
        elif order.kind == "message":
            self._desk.answer(Frame({"kind": "message"}, self._answer(order.body)))
        else:
            raise FrameError(f"unknown order {order.kind!r}")
        return True

    def _start(self, order: Frame) -> None:
        if self._party is not None:
            raise FrameError("the party has started already")
        header, arrays = order.header, order.arrays()
        offsets = np.array([0, arrays["scores"].size], dtype=np.int64)
        names, second = (str(header["name"]),), arrays.get("second")
        clients = Clients(arrays["scores"], arrays["labels"], offsets, names, second=second)
        protocol = protocol_of(str(header["protocol"]), header["settings"])
        keys = tuple(bytes.fromhex(key) for key in header["keys"])
        coordinator, per_person = bytes.fromhex(header["coordinator"]), int(header["per_person"])
        agreement = Agreement(protocol, keys, coordinator, per_person=per_person)
        guard = guard_of(agreement, clients, header["ledger"], header["simulated"])
        load_engine()
        timeout, setup_timeout = float(header["timeout"]), float(header["setup_timeout"])
        self._party = Party(
            int(header["index"]),
            Identity.from_bytes(bytes.fromhex(header["identity"])),
            agreement,
            clients,
            NoNoise() if header["silent"] else SystemNoise(),
            guard,
            unit=agreement.unit,
            one_each=True,
            transport=TunnelTransport(LOCAL, None, timeout, setup_timeout, self._desk.give_up),
        )
        self._desk.answer(Frame.of("ready"))

    def _answer(self, message: bytes) -> bytes:
        if self._party is None:
            raise FrameError("the party has no records yet")
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
    FrameError : for a client that exists and has no ledger.
    LedgerError, OSError : where the ledger cannot be opened.
    """
    if ledger is not None:
        opened = Ledger(ledger)
        digest, protocol = fingerprint(opened, clients), agreement.protocol
        return LedgerGuard(opened, clients.name(0), protocol, digest, agreement.per_person)
    if simulated is not True:
        raise FrameError("a real client answers only with a ledger, and none was given")
    return unrecorded


def reason_of(error: Exception) -> str:
    """Why a party gave up, for the aggregator; the text holds no value of the party's records.

    Details about the records go to standard error, which only the party reads.
    """
    quoting = isinstance(error, SignedMessageError) and error.__cause__ is not None
    if quoting or isinstance(error, DataError):
        print(f"tacit: {escaped(str(error))}", file=sys.stderr, flush=True)
        return UNANSWERED if quoting else UNFIT
    return str(error) if isinstance(error, mpc.MPCError) else f"{type(error).__name__}: {error}"


def main() -> None:
    """Serve one run: orders on standard input, answers on standard output.

    What libraries print goes to standard error, so that it cannot mix with the answers.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    desk = Desk(sys.stdin.buffer, answers)
    answering, failed = Answering(desk), True
    try:
        while answering.obey(desk.order()):
            pass
        failed = False
    except (mpc.MPCError, *UNEXPECTED) as error:
        desk.answer(Frame.of("failed", reason=reason_of(error)))
    os._exit(FAILED if failed else 0)


if __name__ == "__main__":
    main()
