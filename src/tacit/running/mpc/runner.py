"""Runs a conversation whose joint steps the clients really compute together, by cryptography.

The calling process is the coordinator of a session (``session.coordinator``). Every client is a
process of its own, which holds its records alone and answers signed messages about them. Where a
step is joint, the clients compute on shares, over TLS between each other. Nobody opens anything but
what the step's ideal functionality gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.privacy.noise import NoiseSource, NoNoise, SystemNoise
from tacit.protocol import mpc
from tacit.protocol.conversation import Protocol
from tacit.running.mpc import processes
from tacit.running.mpc.spu import library
from tacit.running.mpc.transport import Session
from tacit.running.session.coordinator import Coordinator, RunError
from tacit.running.session.messages import SignedMessageError
from tacit.running.simulation import Run

MAX_PARTIES = 32
"""Each party is a process that holds SPU in memory."""


@dataclass(frozen=True, eq=False)
class MPCRun(Run):
    """A run with what its joint computations took.

    Parameters
    ----------
    sessions : one entry for every computation of two or three parties.
    """

    sessions: tuple[Session, ...] = ()


def run_mpc(
    clients: Clients,
    protocol: Protocol,
    noise: NoiseSource | None = None,
    timeout: float = processes.WAITING_SECONDS,
    ledgers: processes.Ledgers = processes.NO_LEDGERS,
    per_person: int = 0,
) -> MPCRun:
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
    silent = isinstance(noise, NoNoise)
    with processes.Parties(clients, protocol, timeout, silent, ledgers, per_person) as parties:
        coordinator, sent = _conducted(parties)
        server_result = coordinator.server_result
        if server_result is None:
            raise mpc.MPCError("the conversation ended without a result")
        return MPCRun(
            server_result,
            coordinator.most_spent,
            coordinator.queries,
            sent,
            True,
            coordinator.computations,
        )


def _conducted(parties: processes.Parties) -> tuple[Coordinator, NDArray[np.int64]]:
    """A whole run with the parties' processes, and the bytes that each sent to anybody.

    Raises
    ------
    MPCError : for a run that ends without a result.
    """
    coordinator = Coordinator(parties.agreement, parties.coordinator)
    sent = np.zeros(len(parties.names), dtype=np.int64)
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
    for index, count in coordinator.sent_to_others.items():
        sent[index] += count
    return coordinator, sent


def has_mpc_steps(protocol: Protocol) -> bool:
    """Whether clients compute anything together under these settings."""
    return any(step.computes is not None for step in protocol.steps)


def _check_run(clients: Clients, protocol: Protocol, noise: NoiseSource | None) -> None:
    """Refuse what parties cannot compute, before anything starts."""
    if not has_mpc_steps(protocol):
        raise ValueError(f"protocol {protocol.name!r} computes nothing between clients")
    if not (noise is None or isinstance(noise, SystemNoise | NoNoise)):
        raise ValueError("parties draw noise from their own systems: no seed, no simulated noise")
    if not 2 <= clients.count <= MAX_PARTIES:
        raise DataError(
            f"a computation between clients takes 2 to {MAX_PARTIES} clients, each in its own "
            f"process, got {clients.count}"
        )
    # a party would move scores into the protocol's range, so they are looked at while all are here
    low, high = protocol.score_range or (-np.inf, np.inf)
    wrong = clients.outlier(low, high)
    if wrong is not None:
        raise DataError(f"scores must be in [{low:g}, {high:g}], got {wrong[0]} in {wrong[1]}")


def _check_ledgers(clients: Clients, ledgers: processes.Ledgers) -> None:
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
