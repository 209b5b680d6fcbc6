"""Small federations whose records tie often, and the joint asks about them, answered."""

from dataclasses import replace

import numpy as np

import tacit.protocol as tp
from tacit.local.paired.protocol import PairedUStatistic, compute_pairs
from tacit.running.mpc import runner, transport
from tacit.running.session.coordinator import Coordinator


def tied_clients(records: int, clients: int, seed: int = 0) -> tp.Clients:
    """Scores and second values on coarse grids, so that pairs tie; of clients that do not exist."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, records)
    scores = np.clip(np.round(rng.normal(0.4 + 0.2 * labels, 0.2), 1), 0, 1)
    owners = np.concatenate([np.arange(clients), rng.integers(0, clients, records - clients)])
    second = np.round(rng.normal(scores, 0.3), 1) * 1e6
    made = tp.Clients.from_arrays(scores, labels, owners, second=second)
    return replace(made, simulated=True)


def pairs_query(clients: tp.Clients, protocol: PairedUStatistic, seed: int = 0) -> tp.Query:
    """The joint query about random matchings."""
    rng = np.random.default_rng(seed)
    seats = np.stack([rng.permutation(clients.records) for _ in range(protocol.pairs_a_record)])
    shared = {"epsilon": protocol.epsilon}
    each = {"seats": tp.Ragged(seats, clients.offsets)}
    return tp.Query(compute_pairs, protocol, shared, each, tp.View.MPC)


def answer_mpc(
    clients: tp.Clients, query: tp.Query, timeout: float, silent: bool = True
) -> tuple[tp.Reply, tuple[transport.Session, ...]]:
    """What the server receives in one joint query, without noise if silent, and the sessions."""
    replies: list[tp.Reply] = []

    def conversation() -> tp.Conversation:
        replies.append((yield query))
        nothing = np.array(np.nan)
        return tp.ServerResult(nothing, nothing, nothing, nothing, nothing)

    with runner.Parties(clients, query.protocol, timeout, silent) as parties:
        coordinator = Coordinator(parties.agreement, parties.coordinator)
        coordinator.rounds = coordinator._conversed(conversation())
        messages = coordinator.open()
        while messages:
            for index, reply in parties.deliver(messages).items():
                coordinator.receive(index, reply)
            messages = coordinator.close()
    return replies[0], coordinator.computations
