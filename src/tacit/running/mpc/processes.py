"""The parties' processes, as the aggregator's process sees them: started, ordered, ended.

Each party runs ``tacit.running.mpc.party_program`` in a process of its own and reads its records
from a connection, then the signed messages of the session, which it answers. Its beginning and its
answers are named values (``protocol.values``); nothing is pickled. Every wait is bounded: a process
that ends early ends the wait at once, and one that stops within an answer is ended.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tacit.crypto.identities import Identity
from tacit.data.clients import Clients
from tacit.protocol import mpc
from tacit.protocol.conversation import Protocol
from tacit.protocol.fields import MAX_BYTES, MessageError
from tacit.protocol.values import decode_values, encode_values
from tacit.running.session.messages import Agreement
from tacit.running.speaking import printable

if TYPE_CHECKING:
    from tacit.running.deployment.flower_programs.programs import Program

WAITING_SECONDS = 300.0
"""How long a party is waited for by default, by the run and by another party."""
STARTING_SECONDS = 120.0
"""The least time allowed for setting up processes, checks and connections."""
GRACE_SECONDS = 5.0
"""Largest number of seconds that a process may take to end on request."""

Ledgers = Mapping[str, str | os.PathLike[str]]
"""The files of clients' ledgers, by the clients' names."""
NO_LEDGERS: Ledgers = MappingProxyType({})

SECONDS_A_RECORD = 0.01
"""How much longer a computation may take, for every record."""


class Parties:
    """The processes of all clients of a run; leaving the context ends them.

    Parameters
    ----------
    clients : all clients; each one's records go to its process alone, by a connection.
    protocol : what they agreed to.
    timeout : seconds to wait for a party before giving up, and for a party to wait for another's
        message. Setting up has at least ``STARTING_SECONDS``: a machine that is busy starts late.
    silent : let no party draw noise, to check the arithmetic.
    ledgers : every client's ledger, by its name; empty only for clients that do not exist.
    per_person : the most records that a client has of a person, where costs are a person's.

    Raises
    ------
    MPCError : when a process does not start, ends, or says nothing in time.
    ValueError : for a timeout that is not positive and finite.
    """

    def __init__(
        self,
        clients: Clients,
        protocol: Protocol,
        timeout: float = WAITING_SECONDS,
        silent: bool = False,
        ledgers: Ledgers = NO_LEDGERS,
        per_person: int = 0,
    ) -> None:
        if not 0 < timeout < math.inf:
            raise ValueError(f"timeout must be positive and finite, got {timeout}")
        self._keys = tuple(Identity.generate() for _ in range(clients.count))
        self.coordinator = Identity.generate()
        public = tuple(key.public for key in self._keys)
        self.agreement = Agreement(protocol, public, self.coordinator.public, per_person=per_person)
        self.names = tuple(clients.name(index) for index in range(clients.count))
        self._timeout, self._setup_timeout = timeout, max(timeout, STARTING_SECONDS)
        self._clients, self._protocol, self._silent = clients, protocol, silent
        self._ledgers = ledgers
        self._connections: list[Connection] = []
        self._programs: list[Program] = []
        self._directory = Path()

    def __enter__(self) -> Parties:
        self._directory = Path(tempfile.mkdtemp(prefix="tacit-"))
        try:
            for index in self.everybody:
                self._start(index)
            beginnings = {k: encode_values(self._beginning(k)) for k in self.everybody}
            self.deliver(beginnings, self._setup_timeout)
        except BaseException:
            self._end()
            raise
        return self

    def _beginning(self, index: int) -> dict[str, Any]:
        """The first order of a party: its own records, and what was agreed."""
        records, ledger = self._clients.part(index, index + 1), self._ledgers.get(self.names[index])
        return {
            "scores": records.scores,
            "labels": records.labels,
            "second": records.second,
            "index": index,
            "name": self.names[index],
            "protocol": self._protocol.name,
            "settings": dict(self._protocol.settings),
            "timeout": self._timeout,
            "setup_timeout": self._setup_timeout,
            "silent": self._silent,
            "simulated": self._clients.simulated,
            "per_person": self.agreement.per_person,
            "ledger": None if ledger is None else str(Path(ledger).resolve()),
            "identity": self._keys[index].to_bytes(),
            "keys": self.agreement.parties,
            "coordinator": self.agreement.coordinator,
        }

    @property
    def everybody(self) -> range:
        """The indices of all parties."""
        return range(len(self.names))

    def __exit__(self, *error: object) -> None:
        self._end()

    def order(self, index: int, order: bytes) -> None:
        """Send an order to one party: its beginning, or then a signed message."""
        try:
            self._connections[index].send_bytes(order)
        except OSError:
            raise mpc.MPCError(self._ended(index)) from None

    def answer(self, allowed: Sequence[int], longest: float) -> tuple[int, bytes]:
        """The next answer of any of these parties, within so many seconds.

        Raises
        ------
        MPCError : when a party failed or ended, or none of them answers in time.
        """
        ready = wait(self._connections, longest)
        if not ready:
            waiting = " and ".join(self.names[index] for index in allowed)
            raise mpc.MPCError(f"no answer from {waiting} within {longest:g} s")
        index = next(k for k, connection in enumerate(self._connections) if connection in ready)
        # an answer that begins and never ends would be waited for without end
        stalled = threading.Timer(longest, self._programs[index].stop)
        stalled.start()
        try:
            values = decode_values(self._connections[index].recv_bytes(MAX_BYTES))
        except (EOFError, OSError):
            raise mpc.MPCError(self._ended(index)) from None
        except MessageError as error:
            raise mpc.MPCError(f"{self.names[index]}: {printable(str(error))}") from None
        finally:
            stalled.cancel()
        if "failed" in values:
            raise mpc.MPCError(f"{self.names[index]}: {printable(str(values['failed']))}")
        if index not in allowed:
            raise mpc.MPCError(f"{self.names[index]} answered out of order")
        return index, values["reply"]

    def deliver(
        self, orders: Mapping[int, bytes], timeout: float | None = None
    ) -> dict[int, bytes]:
        """Every party's reply to its order, computed in its process."""
        for index, order in orders.items():
            self.order(index, order)
        answers: dict[int, bytes] = {}
        while len(answers) < len(orders):
            missing = [index for index in orders if index not in answers]
            index, reply = self.answer(missing, self._longest if timeout is None else timeout)
            answers[index] = reply
        return answers

    @property
    def _longest(self) -> float:
        """Seconds that a round may take: each two clients may compute one after the other.

        A party that another one waits for too long gives up by itself, and much earlier.
        """
        meetings = len(self.names) * (len(self.names) - 1) / 2
        records = SECONDS_A_RECORD * self._clients.records
        return self._setup_timeout + meetings * self._timeout + records

    def _start(self, index: int) -> None:
        # its locks are Unix's, and whoever computes with one process may be elsewhere
        from tacit.running.deployment.flower_programs.programs import Program  # noqa: PLC0415

        here, there = Pipe()
        self._connections.append(here)
        command = (sys.executable, "-m", "tacit.running.mpc.party_program", str(there.fileno()))
        environment = {**os.environ, "TMPDIR": str(self._directory)}
        log = self._directory / f"party-{index}.log"
        with there:
            self._programs.append(Program(command, environment, log, (there.fileno(),)))

    def _ended(self, index: int) -> str:
        """What to say of a process that is gone."""
        program = self._programs[index]
        status = program.status(GRACE_SECONDS)
        if status is None:
            return f"{self.names[index]} closed its connection"
        said = [line for line in program.said().split("\n") if line.strip()]
        last = f"; it said last: {said[-1]}" if said else ""
        return f"the process of {self.names[index]} ended with exit status {status}{last}"

    def _end(self) -> None:
        for connection in self._connections:
            connection.close()  # which ends its process
        for program in self._programs:
            program.stop()
        shutil.rmtree(self._directory, ignore_errors=True)
