"""Runs a conversation on one machine: all clients as one batch, or in chunks of clients."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit.protocol as tp
from tacit.metrics import errors
from tacit.privacy.cost import worst_case
from tacit.protocol import releases
from tacit.protocol.conversation import ONE_REPLICATE
from tacit.protocol.fields import bytes_sent
from tacit.protocol.steps import stack, total
from tacit.running.mpc.transport import Session
from tacit.running.spending import Payment, most_spent


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one conversation, with what it spent and sent.

    Parameters
    ----------
    server_result : the server's conclusions.
    spent : the sum of the costs that the client steps declared, for the record that spent most.
    rounds : the number of queries.
    bytes_sent : the bytes that each client sent, shape (K,).
    mpc : whether a step ran that clients would compute together, by cryptography.
    sessions : one entry for every computation of two or three parties that did so.
    """

    server_result: tp.ServerResult
    spent: tp.Cost
    rounds: int
    bytes_sent: NDArray[np.int64]
    mpc: bool = False
    sessions: tuple[Session, ...] = ()


def simulate(
    clients: tp.Clients,
    protocol: tp.Protocol,
    noise: tp.NoiseSource,
    state: tp.ClientState | None = None,
    chunk: int | None = None,
    asked: int | None = None,
) -> Run:
    """Run a protocol's conversation over a batch of clients.

    What clients compute together (``View.MPC``) is computed here by the ideal functionality, for
    all of them at once. What the server then receives counts as sent by all clients in equal parts,
    rounded up; the messages of the cryptography that it stands for are not counted.

    Parameters
    ----------
    clients : all clients.
    protocol : the protocol.
    noise : where the clients' noise comes from.
    state : the clients' state after earlier evaluations; None starts an empty one.
    chunk : answer for at most this many clients at a time, but in joint steps; None answers for all
        at once.
    asked : how many clients were asked, where not all of them answer.

    Raises
    ------
    DataError : for records whose persons are known, of which no one said how many count.
    """
    if clients.knows_persons:
        raise tp.DataError(
            "persons are known: a run begins with the records that count (Clients.counted)"
        )
    stored = tp.ClientState() if state is None else state
    payments: list[Payment] = []
    sent = np.zeros(clients.count, dtype=np.int64)
    mpc = False
    conversation = releases.conducted(protocol, clients.count if asked is None else asked)
    query = next(conversation)
    while True:
        reply, payment = _answer(clients, query, noise, stored, chunk)
        payments.append(payment)
        mpc = mpc or query.view is tp.View.MPC
        sent += bytes_sent(reply, query, clients.count)
        try:
            query = conversation.send(reply)
        except StopIteration as end:
            # replicates may go different ways, whose queries are not those of any one run
            spent = most_spent(payments) if noise.replicates is None else worst_case([])
            return Run(end.value, spent, len(payments), sent, mpc)


def replicate(
    clients: tp.Clients, protocol: tp.Protocol, times: int, seed: int | None = None
) -> tp.ServerResult:
    """Run a protocol ``times`` times with independent simulated noise; ranks are computed once.

    Returns a result whose arrays have a leading axis of length ``times``.
    """
    if times < 1:
        raise ValueError(f"times must be at least 1, got {times}")
    group = int(np.clip(ONE_REPLICATE // max(protocol.replicate_size(clients), 1), 1, times))
    seeds = np.random.SeedSequence(seed)
    parts = []
    for start in range(0, times, group):
        size = min(group, times - start)
        group_seed = int(seeds.spawn(1)[0].generate_state(1, np.uint64)[0])
        noise = tp.SimulatedNoise(group_seed, replicates=size)
        parts.append((size, simulate(clients, protocol, noise).server_result))
    return _join_result(parts)


def _answer(
    clients: tp.Clients,
    query: tp.Query,
    noise: tp.NoiseSource,
    state: tp.ClientState,
    chunk: int | None,
) -> tuple[tp.Reply, Payment]:
    """What the server sees of one query, and what it costs whom."""
    replies, costs = [], []
    step = clients.count if chunk is None or query.view is tp.View.MPC else chunk
    for start in range(0, clients.count, step):
        stop = min(start + step, clients.count)
        whole = stop - start == clients.count
        batch = clients if whole else clients.part(start, stop)
        batch_query = query if whole else query.part(start, stop)
        notes = state if whole else state.part(start, stop)
        costs.append(query.step.cost(batch, batch_query, notes))
        replies.append(query.step.answer(batch, batch_query, noise, notes))
    payment = Payment(worst_case(costs), query.step.participates(clients, query))
    if query.view is tp.View.MPC:
        return replies[0], payment
    return (total if query.view is tp.View.SUM else stack)(replies), payment


def _join_result(parts: list[tuple[int, tp.ServerResult]]) -> tp.ServerResult:
    """Join groups of replicates; a figure without noise is the same in every replicate."""

    first = parts[0][1]
    numbers: dict[str, Any] = {
        field.name: np.concatenate(
            [np.broadcast_to(getattr(result, field.name), (size,)) for size, result in parts]
        )
        for field in fields(tp.ServerResult)
        if isinstance(getattr(first, field.name), float | np.ndarray)
    }
    law = errors.joined_laws([(size, result.law) for size, result in parts])
    return tp.ServerResult(**numbers, law=law, limits=first.limits)
