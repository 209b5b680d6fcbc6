"""Runs a conversation whose joint steps the clients really compute together, by cryptography.

The calling process is the coordinator of a session (``session.coordinator``). Every client is a
process of its own (``mpc.party_program``), which reads its records from a connection, holds them
alone, and answers the signed messages of the session. Where a step is joint, the clients compute on
shares, over TLS between each other. No one opens anything but what the step's ideal functionality
gives.

A process's beginning and its answers are named values (``protocol.values``); nothing is pickled.
Every wait is bounded: a process that ends early ends the wait at once, and one that stops within an
answer is ended.
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

import numpy as np

import tacit.protocol as tp
from tacit.crypto.identities import Identity
from tacit.protocol import fields, mpc
from tacit.protocol.values import decode_values, encode_values
from tacit.running import simulation, speaking
from tacit.running.mpc.spu import library
from tacit.running.session.coordinator import Coordinator, RunError
from tacit.running.session.messages import Agreement, SignedMessageError

if TYPE_CHECKING:
    from tacit.running.deployment.flower_programs.programs import Program

MAX_PARTIES = 32
"""Each party is a process that holds SPU in memory."""
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
        clients: tp.Clients,
        protocol: tp.Protocol,
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
            everybody = range(len(self.names))
            for index in everybody:
                self._start(index)
            beginnings = {k: encode_values(self._beginning(k)) for k in everybody}
            self.deliver(beginnings, self._setup_timeout)
        except BaseException:
            self.__exit__()
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

    def __exit__(self, *error: object) -> None:
        for connection in self._connections:
            connection.close()  # which ends its process
        for program in self._programs:
            program.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

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
            values = decode_values(self._connections[index].recv_bytes(fields.MAX_BYTES))
        except (EOFError, OSError):
            raise mpc.MPCError(self._ended(index)) from None
        except fields.MessageError as error:
            raise mpc.MPCError(f"{self.names[index]}: {speaking.printable(str(error))}") from None
        finally:
            stalled.cancel()
        if "failed" in values:
            raise mpc.MPCError(f"{self.names[index]}: {speaking.printable(str(values['failed']))}")
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

        A party that another one waits for too long gives up on its own, and much earlier.
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


def run_mpc(
    clients: tp.Clients,
    protocol: tp.Protocol,
    noise: tp.NoiseSource | None = None,
    timeout: float = WAITING_SECONDS,
    ledgers: Ledgers = NO_LEDGERS,
    per_person: int = 0,
) -> simulation.Run:
    """Run a protocol between processes of this machine, its joint steps by cryptography.

    Parameters
    ----------
    clients : all clients; each becomes a process, at least two of them.
    protocol : a protocol with joint steps.
    noise : ``SystemNoise()``, the default: every party draws its own. ``NoNoise()`` checks the
        arithmetic and releases values without noise.
    timeout : seconds to wait for a party before giving up, and for a party to wait for another's
        message.
    ledgers : the file of every client's ledger, by the client's name, under which the ledger also
        keeps its records and needs a limit. Every client's process debits it before it answers.
        None are needed for clients that do not exist (``Clients.simulated``).
    per_person : the most records that one client has of a person, where costs are a person's.

    Raises
    ------
    MPCError : when a party refuses, declines, fails, ends, or does not answer in time; nothing is
        concluded then.
    DataError : for fewer than two clients, or more than ``MAX_PARTIES``, and for scores outside of
        the protocol's range, before anything is spent.
    ValueError : for a simulated noise source, a protocol without joint steps, a timeout that is not
        positive and finite, or clients that exist and of which not each has a ledger of its own.
    ImportError : without SPU.
    """
    _check_run(clients, protocol, noise)
    _check_ledgers(clients, ledgers)
    library("spu.libspu")
    silent = isinstance(noise, tp.NoNoise)
    with Parties(clients, protocol, timeout, silent, ledgers, per_person) as parties:
        coordinator = Coordinator(parties.agreement, parties.coordinator)
        sent = np.zeros(clients.count, dtype=np.int64)
        try:
            messages = coordinator.open()
            while messages:
                for index, reply in parties.deliver(messages).items():
                    sent[index] += len(reply)
                    coordinator.receive(index, reply)
                messages = coordinator.close()
        except (RunError, SignedMessageError) as error:
            declined = [f"{parties.names[k]} {why}" for k, why in coordinator.declined.items()]
            raise mpc.MPCError("; ".join(declined) or str(error)) from error
    for index, count in coordinator.sent_to_others.items():  # what they sent each other counts too
        sent[index] += count
    return coordinator.run(sent, mpc=True)


def _check_run(clients: tp.Clients, protocol: tp.Protocol, noise: tp.NoiseSource | None) -> None:
    """Refuse what parties cannot compute, before anything starts."""
    if all(step.computes is None for step in protocol.steps):
        raise ValueError(f"protocol {protocol.name!r} computes nothing between clients")
    if not (noise is None or isinstance(noise, tp.SystemNoise | tp.NoNoise)):
        raise ValueError("parties draw noise from their own systems: no seed, no simulated noise")
    if not 2 <= clients.count <= MAX_PARTIES:
        raise tp.DataError(
            f"a computation between clients takes 2 to {MAX_PARTIES} clients, each in its own "
            f"process, got {clients.count}"
        )
    # a party would move scores into the protocol's range, so they are looked at while all are here
    low, high = protocol.score_range or (-np.inf, np.inf)
    wrong = clients.outlier(low, high)
    if wrong is not None:
        raise tp.DataError(f"scores must be in [{low:g}, {high:g}], got {wrong[0]} in {wrong[1]}")


def _check_ledgers(clients: tp.Clients, ledgers: Ledgers) -> None:
    """Refuse clients that exist without ledgers: what they spend would be written down nowhere."""
    if clients.simulated and not ledgers:
        return
    names = {clients.name(index) for index in range(clients.count)}
    if ledgers.keys() != names:
        raise ValueError(
            "real clients compute together only where each debits its own ledger: "
            f"ledgers must be given for {', '.join(sorted(names))}, "
            f"got {', '.join(sorted(ledgers)) or 'none'}"
        )
    if len({Path(path).resolve() for path in ledgers.values()}) < len(names):
        raise ValueError("every client needs its own ledger, and two have the same file")
