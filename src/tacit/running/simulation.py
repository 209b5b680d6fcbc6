"""Runs a conversation on one machine: all clients as one batch, or in chunks of clients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients
from tacit.privacy.cost import NOTHING, Cost, most
from tacit.privacy.noise import NoiseSource, SimulatedNoise
from tacit.protocols.conversation import Ask, Memory, Protocol, Reply, View, stack, total
from tacit.protocols.messages import sizes_by_client
from tacit.results.findings import Findings

REPLICATE_NUMBERS = 2**26
"""Replicates are run in groups that hold about this many numbers at once."""


@dataclass(frozen=True, eq=False)
class Run:
    """What one conversation found, spent and sent.

    Parameters
    ----------
    findings : the server's conclusions.
    spent : the sum of the costs that the client steps declared.
    rounds : the number of asks.
    bytes_sent : the bytes that each client sent, shape (K,).
    """

    findings: Findings
    spent: Cost
    rounds: int
    bytes_sent: NDArray[np.int64]


def simulate(
    clients: Clients,
    protocol: Protocol,
    noise: NoiseSource,
    memory: Memory | None = None,
    chunk: int | None = None,
) -> Run:
    """Run a protocol's conversation over a batch of clients.

    Parameters
    ----------
    clients : all clients.
    protocol : the protocol.
    noise : where the clients' noise comes from.
    memory : the clients' notebook of earlier evaluations; None starts an empty one.
    chunk : answer for at most this many clients at a time; None answers for all at once.
    """
    notebook = Memory() if memory is None else memory
    conversation = protocol.conversation()
    spent, rounds = NOTHING, 0
    sent = np.zeros(clients.count, dtype=np.int64)
    ask = next(conversation)
    while True:
        reply, cost = _answer(clients, ask, noise, notebook, chunk)
        spent, rounds = spent + cost, rounds + 1
        sent += sizes_by_client(reply, clients.count)
        try:
            ask = conversation.send(total(reply) if ask.view is View.SUM else reply)
        except StopIteration as end:
            return Run(end.value, spent, rounds, sent)


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


def _answer(
    clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory, chunk: int | None
) -> tuple[Reply, Cost]:
    if chunk is None or chunk >= clients.count:
        cost = ask.step.spends(clients, ask, memory)
        return ask.step.answer(clients, ask, noise, memory), cost
    replies, costs = [], []
    for start in range(0, clients.count, chunk):
        stop = min(start + chunk, clients.count)
        batch, own, notes = (
            clients.part(start, stop),
            ask.part(start, stop),
            memory.part(start, stop),
        )
        costs.append(ask.step.spends(batch, own, notes))
        replies.append(ask.step.answer(batch, own, noise, notes))
    return stack(replies), most(costs)


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
    )
