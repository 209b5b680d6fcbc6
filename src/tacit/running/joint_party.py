"""One party's process in a joint computation: ``python -m tacit.running.joint_party``.

It takes orders on its standard input and answers on its standard output, in frames. The first order
comes from whoever runs the party: its records, its ledger, and what was agreed. All later ones may
come from the aggregator, so the party checks them against what was agreed: it answers the
protocol's steps, each once and after its debit, and lets no record into more pairs than agreed.
What it hands in of joint computations is sealed: shares for the aggregator or for another party, or
values of its own pairs with noise.
"""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.sealed import seal
from tacit.data.clients import Clients
from tacit.privacy.ledger import Ledger
from tacit.protocols.conversation import Protocol
from tacit.protocols.messages import encode
from tacit.protocols.registry import protocol_of
from tacit.running.debits import DeclinedError, Guard, LedgerGuard, fingerprint, unrecorded
from tacit.running.joint_engine import JointError, SharedRun, link, load_engine, transfers_for
from tacit.running.joint_frames import Frame, FrameError, read_frame
from tacit.running.joint_holder import Holder, RankWork
from tacit.running.joint_tunnel import Credentials, Peer, Tunnel
from tacit.running.joint_work import PairWork, box_place

FAILED = 1


class Desk:
    """Where a party reads orders and writes answers, from more than one thread.

    When the other end is gone the process ends: nobody would take its answers.
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


class Party:
    """A party's state: its records, its work in joint computations, and at most one session."""

    def __init__(self, desk: Desk, directory: Path) -> None:
        self._desk, self._directory = desk, directory
        self._holder: Holder | None = None
        self._work: PairWork | RankWork | None = None
        self._tunnel: Tunnel | None = None
        self._run: SharedRun | None = None
        self._session, self._aggregator = "", b""
        self._timeout, self._setup_timeout = 0.0, 0.0
        self._context: Any = None

    def obey(self, order: Frame) -> bool:
        """Carry out one order; False once there is no more to do."""
        if order.kind == "stop":
            return False
        known = {
            "start": self._start,
            "answer": self._answer,
            "admit": self._admit,
            "open": self._open,
            "link": self._link,
            "pairs": self._pairs,
            "alone": self._alone,
            "show key": self._show_key,
            "submit": self._submit,
            "rank": self._rank,
            "place": self._place,
            "unlink": self._unlink,
            "close": self._close,
        }
        if order.kind not in known:
            raise FrameError(f"unknown order {order.kind!r}")
        known[order.kind](order)
        return True

    def _start(self, order: Frame) -> None:
        if self._holder is not None:
            raise FrameError("the party has started already")
        given, arrays = order.header, order.arrays()
        clients = Clients(
            arrays["scores"],
            arrays["labels"],
            np.array([0, arrays["scores"].size], dtype=np.int64),
            (str(given["name"]),),
            second=arrays.get("second"),
        )
        protocol = protocol_of(str(given["protocol"]), given["settings"])
        guard = guard_of(protocol, clients, given["ledger"], given["simulated"])
        index, silent = int(given["index"]), bool(given["silent"])
        self._holder = Holder(protocol, clients, index, silent, guard)
        self._timeout = float(given["timeout"])
        self._setup_timeout = float(given["setup_timeout"])
        load_engine()
        self._aggregator = bytes.fromhex(given["aggregator"])
        self._desk.answer(Frame.of("ready"))

    def _answer(self, order: Frame) -> None:
        self._desk.answer(Frame({"kind": "reply"}, self._own.answer(order.body)))

    def _admit(self, order: Frame) -> None:
        if self._work is not None:
            raise FrameError("a joint ask was admitted already")
        self._work = self._own.work(order.body)
        self._desk.answer(Frame.of("admitted"))

    def _open(self, order: Frame) -> None:
        if self._tunnel is not None:
            raise FrameError("a session is open already")
        credentials = Credentials.new(f"party {self._own.index}")
        own = Path(tempfile.mkdtemp(dir=self._directory))
        self._tunnel = Tunnel(credentials, own, self._setup_timeout, self._desk.give_up)
        self._desk.answer(
            Frame.of("opened", certificate=credentials.certificate, port=self._tunnel.port)
        )

    def _link(self, order: Frame) -> None:
        if self._tunnel is None or self._run is not None:
            raise FrameError("a link needs an open session without one")
        began = time.perf_counter()
        peers = [Peer(**each) for each in order.header["peers"]]
        rank, self._session = int(order.header["rank"]), str(order.header["session"])
        sockets = self._tunnel.open(rank, peers)
        self._context = link(self._session, rank, sockets, self._timeout, self._setup_timeout)
        self._run = SharedRun(self._context, transfers_for(int(order.header["items"])))
        self._desk.answer(Frame.of("linked", seconds=time.perf_counter() - began))

    def _pairs(self, order: Frame) -> None:
        if self._run is None or not isinstance(self._work, PairWork):
            raise FrameError("pairs need an admitted ask and a linked session")
        places, leading = order.array("places"), order.array("leading")
        chunk = int(order.header["chunk"])
        began = time.perf_counter()
        parts = self._work.shares(self._run, places, leading, chunk)
        for part, shares in enumerate(parts):
            self._hand_in("pairs", part, {"shares": shares.view(np.int64)})
        self._desk.answer(Frame.of("done", **self._finished(began)))

    def _alone(self, order: Frame) -> None:
        if not isinstance(self._work, PairWork):
            raise FrameError("pairs need an admitted ask")
        first, second = order.array("first"), order.array("second")
        self._session = str(order.header["session"])
        self._hand_in("alone", 0, {"values": self._work.alone(first, second)})

    def _show_key(self, order: Frame) -> None:
        self._desk.answer(Frame.of("key", key=self._own.receiver.public.hex()))

    def _submit(self, order: Frame) -> None:
        session, keys = str(order.header["session"]), _keys(order)
        self._desk.answer(Frame.of("submitted", self._ranks.submitted(session, keys)))

    def _rank(self, order: Frame) -> None:
        if self._run is None:
            raise FrameError("ranks need a linked session")
        sizes = [int(size) for size in order.header["sizes"]]
        began = time.perf_counter()
        boxes, keys = order.arrays(), _keys(order)
        made = self._ranks.ranked(self._run, self._session, boxes, sizes, keys)
        self._desk.answer(Frame.of("ranked", made, **self._finished(began)))

    def _place(self, order: Frame) -> None:
        self._ranks.placed(str(order.header["session"]), order.arrays())
        self._desk.answer(Frame.of("placed"))

    @property
    def _ranks(self) -> RankWork:
        if not isinstance(self._work, RankWork):
            raise FrameError("no ask to rank scores was admitted")
        return self._work

    def _hand_in(self, kind: str, part: int, arrays: dict[str, NDArray[Any]]) -> None:
        place = box_place(self._session, self._own.index, kind, part)
        box = seal(encode(arrays), self._aggregator, place)
        self._desk.answer(Frame({"kind": "box", "part": part}, box))

    def _finished(self, began: float) -> dict[str, Any]:
        """How it went. From here on a broken connection is no failure."""
        seconds, sent = time.perf_counter() - began, 0
        if self._tunnel is not None:
            self._tunnel.active = False
            sent = self._tunnel.sent
        return {"seconds": seconds, "sent": sent}

    def _unlink(self, order: Frame) -> None:
        """Say goodbye to the others, whose tunnels have to stand until they have heard it."""
        if self._context is not None:
            self._context.stop_link()
        self._context = self._run = None
        self._desk.answer(Frame.of("unlinked"))

    def _close(self, order: Frame) -> None:
        if self._tunnel is not None:
            self._tunnel.close()
        self._tunnel = None
        self._desk.answer(Frame.of("closed"))

    @property
    def _own(self) -> Holder:
        if self._holder is None:
            raise FrameError("the party has no records yet")
        return self._holder


def guard_of(protocol: Protocol, clients: Clients, ledger: str | None, simulated: bool) -> Guard:
    """What a party's debits go to: its ledger, under the party's name as the data set.

    Parameters
    ----------
    protocol : what the run computes.
    clients : the party's records, a batch of one named client.
    ledger : the path of its ledger; None only for a client that does not exist.
    simulated : whether it does not exist.

    Raises
    ------
    FrameError : for a client that exists and has no ledger.
    LedgerError, OSError : where the ledger cannot be opened.
    """
    if ledger is not None:
        book = Ledger(ledger)
        return LedgerGuard(book, clients.name(0), protocol, fingerprint(book, clients))
    if simulated is not True:
        raise FrameError("a client that exists answers only with a ledger, and none was given")
    return unrecorded


def _keys(order: Frame) -> list[bytes]:
    return [bytes.fromhex(str(key)) for key in order.header["keys"]]


def main() -> None:
    """Serve one run: orders on standard input, answers on standard output.

    What libraries print goes to standard error, so that it cannot mix with the answers.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    desk = Desk(sys.stdin.buffer, answers)
    with tempfile.TemporaryDirectory(prefix="tacit-") as directory:
        party = Party(desk, Path(directory))
        try:
            while party.obey(desk.order()):
                pass
        except JointError as error:
            desk.answer(Frame.of("failed", reason=str(error)))
            failed = True
        except DeclinedError as error:
            desk.answer(Frame.of("failed", reason=error.public))
            failed = True
        except (ValueError, TypeError, KeyError, ImportError, OSError) as error:
            desk.answer(Frame.of("failed", reason=f"{type(error).__name__}: {error}"))
            failed = True
        else:
            failed = False
    os._exit(FAILED if failed else 0)


if __name__ == "__main__":
    main()
