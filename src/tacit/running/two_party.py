"""Runs a conversation whose joint steps the clients really compute together, by cryptography.

The calling process is the server and aggregator. Every client is a process of its own, which holds
its records alone and answers the server's asks about them. Where a step is joint, two or three of
them compute on shares, linked by TLS. Nobody opens anything but what the step's ideal functionality
gives: pairs' noisy values to the server, ranks to their owners.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tacit.data.clients import Clients, DataError
from tacit.privacy.noise import NoiseSource, NoNoise, SystemNoise
from tacit.protocols.conversation import Ask, Memory, Protocol, View
from tacit.protocols.hidden_ranks import rank_together
from tacit.protocols.messages import sizes_by_client
from tacit.protocols.paired_ustatistic import PairedUStatistic, compute_pairs
from tacit.running.joint_pairs import answer_pairs
from tacit.running.joint_processes import (
    NO_LEDGERS,
    JointReply,
    JointSettings,
    Ledgers,
    Parties,
    Session,
)
from tacit.running.joint_programs import library
from tacit.running.joint_ranks import answer_ranks
from tacit.running.simulation import Run
from tacit.running.spending import Payment, most_spent

MOST_PARTIES = 32
"""Each party is a process that holds SPU in memory."""

ANSWERS = {compute_pairs.name: answer_pairs, rank_together.name: answer_ranks}
"""Who computes each joint step."""


@dataclass(frozen=True, eq=False)
class JointRun(Run):
    """A run with what its joint computations took.

    Parameters
    ----------
    sessions : one entry for every session of parties, and for every party's own pairs.
    """

    sessions: tuple[Session, ...] = ()


def run_pairs(
    clients: Clients,
    protocol: PairedUStatistic,
    noise: NoiseSource | None = None,
    settings: JointSettings | None = None,
    ledgers: Ledgers = NO_LEDGERS,
) -> JointRun:
    """Run ``PairedUStatistic`` with every client in a process of its own; see ``run_jointly``."""
    return run_jointly(clients, protocol, noise, settings, ledgers)


def run_jointly(
    clients: Clients,
    protocol: Protocol,
    noise: NoiseSource | None = None,
    settings: JointSettings | None = None,
    ledgers: Ledgers = NO_LEDGERS,
) -> JointRun:
    """Run a protocol between processes of this machine, its joint steps by cryptography.

    Parameters
    ----------
    clients : all clients; each becomes a process, at least two of them.
    protocol : a protocol with joint steps.
    noise : ``SystemNoise()``, the default: every party draws its own. ``NoNoise()`` checks the
        arithmetic and releases values without noise.
    settings : how long to wait, and how much to compute at once.
    ledgers : the file of every client's ledger, by the client's name, under which the ledger also
        keeps its records and needs a limit. Every client's process debits it before it answers.
        None are needed for clients that do not exist (``Clients.simulated``).

    Raises
    ------
    JointError : when a party refuses, declines, fails, ends, or does not answer in time; nothing is
        concluded then.
    DataError : for fewer than two clients, or more than ``MOST_PARTIES``.
    ValueError : for a simulated noise source, a protocol without joint steps, or clients that exist
        and of which not each has a ledger of its own.
    NotInstalledError : without SPU.
    """
    with _parties(clients, protocol, noise, settings, ledgers) as parties:
        conversation = protocol.conversation(clients.count)
        payments: list[Payment] = []
        sessions: list[Session] = []
        sent = np.zeros(clients.count, dtype=np.int64)
        ask = next(conversation)
        while True:
            cost = ask.step.spends(clients, ask, Memory())
            payments.append(Payment(cost, ask.step.speaks(clients, ask)))
            done = _answered(parties, ask)
            sent += done.bytes_sent
            sessions.extend(done.sessions)
            try:
                ask = conversation.send(done.reply)
            except StopIteration as end:
                spent = most_spent(payments)
                return JointRun(end.value, spent, len(payments), sent, True, tuple(sessions))


def answer_jointly(
    clients: Clients,
    ask: Ask,
    noise: NoiseSource | None = None,
    settings: JointSettings | None = None,
) -> JointReply:
    """One joint ask by itself, between processes of clients that do not exist; else as
    ``run_jointly``.
    """
    with _parties(clients, ask.settings, noise, settings) as parties:
        return ANSWERS[ask.step.name](parties, ask)


def has_joint_steps(protocol: Protocol) -> bool:
    """Whether clients compute anything together under these settings."""
    return any(step.name in ANSWERS for step in protocol.steps)


def _parties(
    clients: Clients,
    protocol: Protocol,
    noise: NoiseSource | None,
    settings: JointSettings | None,
    ledgers: Ledgers = NO_LEDGERS,
) -> Parties:
    if not has_joint_steps(protocol):
        raise ValueError(f"protocol {protocol.name!r} computes nothing jointly")
    if not (noise is None or isinstance(noise, SystemNoise | NoNoise)):
        raise ValueError("parties draw noise from their own systems: no seed, no simulated noise")
    if not 2 <= clients.count <= MOST_PARTIES:
        raise DataError(
            f"a joint computation takes 2 to {MOST_PARTIES} clients, each a process of its own, "
            f"got {clients.count}"
        )
    _check_ledgers(clients, ledgers)
    library("spu.libspu")
    own = JointSettings() if settings is None else settings
    return Parties(clients, protocol, own, isinstance(noise, NoNoise), ledgers)


def _check_ledgers(clients: Clients, ledgers: Ledgers) -> None:
    """Refuse clients that exist without ledgers: what they spend would be written down nowhere."""
    if clients.simulated and not ledgers:
        return
    names = {clients.name(index) for index in range(clients.count)}
    if ledgers.keys() != names:
        raise ValueError(
            "clients that exist compute together only where each debits a ledger of its own: "
            f"ledgers must be given for {', '.join(sorted(names))}, "
            f"got {', '.join(sorted(ledgers)) or 'none'}"
        )
    if len({Path(path).resolve() for path in ledgers.values()}) < len(names):
        raise ValueError("every client needs a ledger of its own, and two have the same file")


def _answered(parties: Parties, ask: Ask) -> JointReply:
    if ask.view is View.JOINT:
        return ANSWERS[ask.step.name](parties, ask)
    reply = parties.answers(ask)
    return JointReply(reply, sizes_by_client(reply, len(parties.names)))
