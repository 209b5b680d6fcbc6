"""The parties' processes, as the aggregator's process sees them: started, ordered, ended.

Each party runs ``tacit.running.joint_party`` in a process of its own and reads its records from a
pipe. Every wait is bounded, and a process that ends early ends the wait at once.
"""

from __future__ import annotations

import math
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.sealed import Receiver, SealError
from tacit.data.clients import Clients
from tacit.protocols.ask_messages import encode_ask
from tacit.protocols.conversation import Ask, Protocol, Reply, stack
from tacit.protocols.messages import MessageError, as_reply, decode
from tacit.running.joint_engine import JointError
from tacit.running.joint_frames import Frame, FrameError, read_frame
from tacit.running.joint_work import box_place
from tacit.running.reasons import printable

HOST = "127.0.0.1"
STARTING_SECONDS = 120.0
"""How long setting up may take, be the agreed time shorter: processes, checks, connections."""
GRACE_SECONDS = 5.0
"""How long a process may take to end when it is told to."""

Ledgers = Mapping[str, str | os.PathLike[str]]
"""The files of clients' ledgers, by the clients' names."""
NO_LEDGERS: Ledgers = MappingProxyType({})

Answer = tuple[int, Frame | None]
Frames = dict[int, Frame]
"""One frame from each of several parties."""
Place = tuple[str, int, str, int]
"""Session, party, kind and part of a sealed box."""


@dataclass(frozen=True)
class JointSettings:
    """How a joint computation is run.

    Parameters
    ----------
    timeout : seconds to wait for a party before giving up, and for a party to wait for another's
        message. Setting up has at least ``STARTING_SECONDS``: a machine that is busy starts late.
    chunk : how many pairs two parties compute at once; it bounds their memory.
    """

    timeout: float = 300.0
    chunk: int = 50_000

    def __post_init__(self) -> None:
        if not 0 < self.timeout < math.inf:
            raise ValueError(f"timeout must be positive and finite, got {self.timeout}")
        if self.chunk < 1:
            raise ValueError(f"chunk must be at least 1, got {self.chunk}")

    @property
    def setup_timeout(self) -> float:
        """Seconds to wait while processes start, check what is asked, and connect."""
        return max(self.timeout, STARTING_SECONDS)


@dataclass(frozen=True)
class Session:
    """How one session between parties went, or one party's own pairs.

    Parameters
    ----------
    parties : the places of its parties.
    items : how many pairs or scores they computed on.
    seconds : how long the slowest computed, once they were linked.
    bytes_sent : what they sent each other.
    """

    parties: tuple[int, ...]
    items: int
    seconds: float
    bytes_sent: int


@dataclass(frozen=True, eq=False)
class JointReply:
    """What the server received in one round.

    Parameters
    ----------
    reply : the fields of the step's ideal functionality.
    bytes_sent : what each client sent, to others and to the server, shape (K,).
    sessions : how it went.
    """

    reply: Reply
    bytes_sent: NDArray[np.int64]
    sessions: tuple[Session, ...] = ()


class Parties:
    """The processes of all clients of a run; leaving the context ends them.

    Parameters
    ----------
    clients : all clients; each one's records go to its process alone, by a pipe.
    protocol : what they agreed to.
    settings : how long to wait.
    silent : let no party draw noise, to check the arithmetic.
    ledgers : every client's ledger, by its name; empty only for clients that do not exist.

    Raises
    ------
    JointError : when a process does not start, ends, or says nothing in time.
    """

    def __init__(
        self,
        clients: Clients,
        protocol: Protocol,
        settings: JointSettings,
        silent: bool = False,
        ledgers: Ledgers = NO_LEDGERS,
    ) -> None:
        self.receiver = Receiver.new()
        self.names = tuple(clients.name(index) for index in range(clients.count))
        self.offsets = clients.offsets
        self.settings = settings
        self.sent = np.zeros(clients.count, dtype=np.int64)
        self._clients, self._protocol, self._silent = clients, protocol, silent
        self._ledgers = ledgers
        self._answers: queue.Queue[Answer] = queue.Queue()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._directory = Path()

    def __enter__(self) -> Parties:
        self._directory = Path(tempfile.mkdtemp(prefix="tacit-"))
        try:
            for index in self.everybody:
                self._start(index)
            for index in self.everybody:
                self.order(index, self._beginning(index))
            self.gather(self.everybody, "ready", self.settings.setup_timeout)
        except BaseException:
            self._end()
            raise
        return self

    def _beginning(self, index: int) -> Frame:
        """A party's own records, and what was agreed."""
        own, ledger = self._clients.part(index, index + 1), self._ledgers.get(self.names[index])
        arrays: dict[str, NDArray[Any]] = {"scores": own.scores, "labels": own.labels}
        if own.second is not None:
            arrays["second"] = own.second
        return Frame.of(
            "start",
            arrays,
            index=index,
            name=self.names[index],
            protocol=self._protocol.name,
            settings=self._protocol.settings,
            timeout=self.settings.timeout,
            setup_timeout=self.settings.setup_timeout,
            silent=self._silent,
            simulated=self._clients.simulated,
            ledger=None if ledger is None else str(Path(ledger).resolve()),
            aggregator=self.receiver.public.hex(),
        )

    @property
    def everybody(self) -> range:
        """The places of all parties."""
        return range(len(self.names))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def processes(self) -> tuple[int, ...]:
        """The process ids, in order."""
        return tuple(process.pid for process in self._processes)

    def order(self, index: int, frame: Frame) -> None:
        """Send an order to one party."""
        stream = self._stream(index)
        try:
            frame.write(stream)
        except OSError:
            raise JointError(self._ended(index)) from None

    def answer(
        self, allowed: Sequence[int] | range, timeout: float | None = None
    ) -> tuple[int, Frame]:
        """The next answer of any of these parties, within the agreed time or another.

        Raises
        ------
        JointError : when a party failed or ended, or none of them answers in time.
        """
        longest = self.settings.timeout if timeout is None else timeout
        try:
            index, frame = self._answers.get(timeout=longest)
        except queue.Empty:
            waiting = " and ".join(self.names[place] for place in allowed)
            raise JointError(f"no answer from {waiting} within {longest:g} s") from None
        if frame is None:
            raise JointError(self._ended(index))
        if frame.kind == "failed":
            raise JointError(f"{self.names[index]}: {printable(str(frame.header.get('reason')))}")
        if index not in allowed:
            raise JointError(f"{self.names[index]} answered out of turn with {frame.kind!r}")
        return index, frame

    def gather(
        self, indices: Sequence[int] | range, kind: str, timeout: float | None = None
    ) -> Frames:
        """One answer of this kind from each of the parties."""
        found: Frames = {}
        while len(found) < len(indices):
            missing = [place for place in indices if place not in found]
            index, frame = self.answer(missing, timeout)
            if frame.kind != kind:
                raise JointError(f"{self.names[index]} answered {frame.kind!r} instead of {kind!r}")
            found[index] = frame
        return found

    def gather_from(self, indices: Sequence[int] | range, order: Frame, kind: str) -> Frames:
        """Give each of the parties the same order, and gather their answers."""
        for index in indices:
            self.order(index, order)
        return self.gather(indices, kind)

    def taken_sent(self) -> NDArray[np.int64]:
        """The bytes that each party sent since this was asked last."""
        sent, self.sent = self.sent, np.zeros_like(self.sent)
        return sent

    def answers(self, ask: Ask) -> Reply:
        """Every party's own answer to an ask, computed in its process."""
        for index in self.everybody:
            message = encode_ask(ask.part(index, index + 1))
            self.order(index, Frame({"kind": "answer"}, message))
        replies = self.gather(self.everybody, "reply")
        try:
            return stack([as_reply(decode(replies[index].body)) for index in self.everybody])
        except (ValueError, KeyError) as error:
            raise JointError(f"the parties' replies do not fit: {error}") from None

    def admit(self, ask: Ask) -> None:
        """Let every party check a joint ask against the agreement, and pay for it."""
        for index in self.everybody:
            message = encode_ask(ask.part(index, index + 1))
            self.order(index, Frame({"kind": "admit"}, message))
        self.gather(self.everybody, "admitted", self.settings.setup_timeout)

    def introduce(self, session: str, indices: Sequence[int], items: int) -> None:
        """Let parties make certificates, tell each the others', and have them link up.

        They are about to compute on so many items.
        """
        for index in indices:
            self.order(index, Frame.of("open"))
        longest = self.settings.setup_timeout
        opened = self.gather(indices, "opened", longest)
        peers = [
            {
                "name": self.names[index],
                "host": HOST,
                "port": opened[index].header["port"],
                "certificate": opened[index].header["certificate"],
            }
            for index in indices
        ]
        for rank, index in enumerate(indices):
            words = {"rank": rank, "session": session, "peers": peers, "items": items}
            self.order(index, Frame({"kind": "link", **words}))
        self.gather(indices, "linked", longest)

    def opened(self, frame: Frame, place: Place, name: str) -> NDArray[np.int64]:
        """The numbers in a sealed box that a party handed in.

        Raises
        ------
        JointError : for an answer without such a box, or with another content.
        """
        who = self.names[place[1]]
        if frame.kind != "box":
            raise JointError(f"{who} answered {frame.kind!r} instead of a sealed box")
        try:
            fields = decode(self.receiver.opened(frame.body, box_place(*place)))
        except (SealError, MessageError) as error:
            raise JointError(f"{who} sent what cannot be read: {error}") from None
        value = fields.get(name)
        if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1:
            raise JointError(f"{who} sent no row of 64-bit integers called {name!r}")
        self.sent[place[1]] += len(frame.body)
        return value

    def concluded(self, done: Frames, items: int) -> Session:
        """End a session whose parties are done, and say how it went."""
        sent = {index: int(frame.header["sent"]) for index, frame in done.items()}
        for index, count in sent.items():
            self.sent[index] += count
        self.close(sorted(done))
        seconds = max(float(frame.header["seconds"]) for frame in done.values())
        return Session(tuple(sorted(done)), items, seconds, sum(sent.values()))

    def close(self, indices: Sequence[int]) -> None:
        """End the parties' session: their links first, and then the tunnels under them."""
        for kind, answered in (("unlink", "unlinked"), ("close", "closed")):
            for index in indices:
                self.order(index, Frame.of(kind))
            self.gather(indices, answered)

    def _start(self, index: int) -> None:
        with self._log(index).open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tacit.running.joint_party"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "TMPDIR": str(self._directory)},
            )
        self._processes.append(process)
        listener = threading.Thread(target=self._listen, args=(index, process.stdout), daemon=True)
        listener.start()

    def _listen(self, index: int, answers: IO[bytes]) -> None:
        try:
            while (frame := read_frame(answers)) is not None:  # type: ignore[arg-type]
                self._answers.put((index, frame))
        except (FrameError, ValueError) as error:
            self._answers.put((index, Frame.of("failed", reason=str(error))))
        self._answers.put((index, None))

    def _stream(self, index: int) -> Any:
        return self._processes[index].stdin

    def _ended(self, index: int) -> str:
        """What to say of a process that is gone."""
        try:
            status = self._processes[index].wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{self.names[index]} closed its connection"
        lines = self._log(index).read_text(errors="replace").split("\n")
        said = [line for line in lines if line.strip()]
        last = f"; it said last: {said[-1]}" if said else ""
        return f"the process of {self.names[index]} ended with exit status {status}{last}"

    def _log(self, index: int) -> Path:
        return self._directory / f"party-{index}.log"

    def _end(self) -> None:
        for index in range(len(self._processes)):
            with suppress(OSError):
                Frame.of("stop").write(self._stream(index))
            with suppress(OSError):
                self._stream(index).close()
        deadline = time.monotonic() + GRACE_SECONDS
        for process in self._processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)
