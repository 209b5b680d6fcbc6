"""The server side of HierarchicalAUC beside one sort: ``python -m benchmarks.hierarchical``."""

from __future__ import annotations

from functools import partial

import numpy as np

import tacit
from benchmarks.timing import paired, row
from tacit.data.ragged import Ragged
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.privacy.noise import SimulatedNoise
from tacit.protocol.steps import ClientState, Reply
from tacit.protocols.published.ustatistics import PublishedHierarchicalAUC
from tacit.results.server_result import ServerResult

REPORTS, HEIGHT = 1_000_000, 16


def server_side(reports: int = REPORTS, height: int = HEIGHT, times: int = 9) -> list[str]:
    """From all reports to the result, by both estimates, against one sort of as many floats."""
    scores, labels = tacit.binormal_scores(reports // 4, reports - reports // 4, 0.75, seed=0)
    numbers = np.random.default_rng(0).random(reports)
    rows = []
    clients = tacit.Clients.split(scores, labels, reports, seed=0)
    for kind in (HierarchicalAUC, PublishedHierarchicalAUC):
        protocol = kind(5.0, height)
        reply = replies(protocol, clients)
        seconds, sort_seconds, ratio = paired(
            partial(conclude, protocol, reply), partial(np.sort, numbers), times
        )
        note = f"one sort of {reports:,} floats {sort_seconds:.3f}, ratio {ratio:.2f}"
        rows.append(row(f"{kind.__name__} server", seconds, note))
    return rows


def replies(protocol: HierarchicalAUC, clients: tacit.Clients) -> Reply:
    """What all clients send, as the server receives it."""
    query = next(protocol.conversation(clients.count))
    return query.step.answer(clients, query, SimulatedNoise(0), ClientState())


def conclude(protocol: HierarchicalAUC, reply: Reply) -> ServerResult:
    """The server's work on a reply."""
    sent = reply["reports"]
    assert isinstance(sent, Ragged)
    conversation = protocol.conversation(sent.clients)
    next(conversation)
    try:
        conversation.send(reply)
    except StopIteration as end:
        server_result: ServerResult = end.value
        return server_result
    raise AssertionError("the server asked again")


if __name__ == "__main__":
    print(f"{REPORTS:,} reports, height {HEIGHT}; times in seconds, medians of paired runs")
    print("\n".join(server_side()))
