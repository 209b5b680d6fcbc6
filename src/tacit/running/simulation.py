"""Runs a conversation on one machine: all clients as one batch, or in chunks of clients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.privacy.cost import Cost, most
from tacit.privacy.noise import NoiseSource, SimulatedNoise
from tacit.protocols.conversation import Ask, Memory, Protocol, Reply, View, stack, total
from tacit.protocols.messages import sizes_by_client, sum_size
from tacit.results.findings import Findings
from tacit.running.spending import Payment, most_spent

REPLICATE_NUMBERS = 2**26
"""Replicates are run in groups that hold about this many numbers at once."""


@dataclass(frozen=True, eq=False)
class Run:
    """What one conversation found, spent and sent.

    Parameters
    ----------
    findings : the server's conclusions.
    spent : the sum of the costs that the client steps declared, for the record that spent most.
    rounds : the number of asks.
    bytes_sent : the bytes that each client sent, shape (K,).
    joint : whether a step ran that clients would compute together, by cryptography.
    """

    findings: Findings
    spent: Cost
    rounds: int
    bytes_sent: NDArray[np.int64]
    joint: bool = False


def simulate(
    clients: Clients,
    protocol: Protocol,
    noise: NoiseSource,
    memory: Memory | None = None,
    chunk: int | None = None,
    asked: int | None = None,
) -> Run:
    """Run a protocol's conversation over a batch of clients.

    What clients compute together (``View.JOINT``) is computed here by the ideal functionality, for
    all of them at once. What the server then receives counts as sent by all clients in equal parts,
    rounded up; the messages of the cryptography that it stands for are not counted.

    Parameters
    ----------
    clients : all clients.
    protocol : the protocol.
    noise : where the clients' noise comes from.
    memory : the clients' notebook of earlier evaluations; None starts an empty one.
    chunk : answer for at most this many clients at a time, but in joint steps; None answers for all
        at once.
    asked : how many clients were asked, where not all of them answer.
    """
    notebook = Memory() if memory is None else memory
    conversation = protocol.conversation(clients.count if asked is None else asked)
    rounds: list[_Round] = []
    sent = np.zeros(clients.count, dtype=np.int64)
    joint = False
    ask = next(conversation)
    while True:
        done = _answer(clients, ask, noise, notebook, chunk)
        rounds.append(done)
        joint = joint or ask.view is View.JOINT
        sent += _bytes_sent(done.reply, ask.view, clients.count)
        try:
            ask = conversation.send(done.reply)
        except StopIteration as end:
            spent = most_spent([done.payment for done in rounds])
            return Run(end.value, spent, len(rounds), sent, joint)


def replicate(
    clients: Clients, protocol: Protocol, times: int, seed: int | None = None
) -> Findings:
    """Run a protocol ``times`` times with independent simulated noise; ranks are computed once.

    Returns findings whose arrays have a leading axis of length ``times``.
    """
    if times < 1:
        raise ValueError(f"times must be at least 1, got {times}")
    group = int(np.clip(REPLICATE_NUMBERS // max(protocol.draws(clients), 1), 1, times))
    seeds = np.random.SeedSequence(seed)
    found = []
    for start in range(0, times, group):
        size = min(group, times - start)
        own = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        findings = simulate(clients, protocol, SimulatedNoise(own, replicates=size)).findings
        found.append((size, findings))
    return _join_findings(found)


@dataclass(frozen=True, eq=False)
class _Round:
    """What the server saw of one ask, and what it cost whom."""

    reply: Reply
    payment: Payment


def _answer(
    clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory, chunk: int | None
) -> _Round:
    replies, costs = [], []
    step = clients.count if chunk is None or ask.view is View.JOINT else chunk
    for start in range(0, clients.count, step):
        stop = min(start + step, clients.count)
        whole = stop - start == clients.count
        batch = clients if whole else clients.part(start, stop)
        own = ask if whole else ask.part(start, stop)
        notes = memory if whole else memory.part(start, stop)
        costs.append(ask.step.spends(batch, own, notes))
        replies.append(ask.step.answer(batch, own, noise, notes))
    return _Round(_shown(replies, ask.view), Payment(most(costs), ask.step.speaks(clients, ask)))


def _shown(replies: list[Reply], view: View) -> Reply:
    """What the server sees of the replies of consecutive batches."""
    if view is View.JOINT:
        return replies[0]
    return total(replies) if view is View.SUM else stack(replies)


def _bytes_sent(reply: Reply, view: View, clients: int) -> NDArray[np.int64]:
    """What each client sends for this reply, in bytes, shape (K,)."""
    if view is View.EACH:
        return sizes_by_client(reply, clients)
    size = sum_size(reply)
    own = size if view is View.SUM else -(-size // clients)
    return np.full(clients, own, dtype=np.int64)


def _join_findings(parts: list[tuple[int, Findings]]) -> Findings:
    """Groups of replicates as one; a figure that no noise touches is the same in each."""

    def joined(name: str) -> NDArray[np.float64]:
        return np.concatenate([np.broadcast_to(getattr(f, name), (size,)) for size, f in parts])

    return Findings(
        value=joined("value"),
        privacy_error=joined("privacy_error"),
        sampling_error=joined("sampling_error"),
        positives=joined("positives"),
        negatives=joined("negatives"),
        positives_error=joined("positives_error"),
        approximation_error=joined("approximation_error"),
        bias=joined("bias"),
        half_range=joined("half_range"),
    )
