"""The simulation's transport: what each view shows, whole or in chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tacit import Clients, ClientState, Cost, Protocol
from tacit.protocol import NoiseSource, NoNoise, ServerResult
from tacit.protocol.conversation import Conversation
from tacit.protocol.fields import sum_size
from tacit.protocol.steps import Query, Reply, View, step
from tacit.running.simulation import simulate
from tests.federations import binormal_clients


@step()
def count_positives(
    clients: Clients, query: Query, noise: NoiseSource, state: ClientState
) -> Reply:
    return {"positives": clients.ragged(clients.labels.astype(np.int64)).sum()}


@step()
def sum_positives(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"positives": np.asarray(clients.labels.sum(dtype=np.int64))}


@step()
def send_labels(clients: Clients, query: Query, noise: NoiseSource, state: ClientState) -> Reply:
    return {"labels": clients.ragged(clients.labels)}


@dataclass(frozen=True)
class Counting(Protocol):
    """Counts positives under a view, and remembers what the server saw."""

    view: View
    asked: Any = count_positives
    seen: list[np.ndarray[Any, Any]] = field(default_factory=list)
    guarantee = Cost(0.0)
    settings = {}  # noqa: RUF012
    name = "counting"

    def replicate_size(self, clients: Clients) -> int:
        return 1

    def conversation(self, clients: int) -> Conversation:
        reply = yield Query(self.asked, self, view=self.view)
        self.seen.append(np.asarray(reply["positives"]))
        count = np.asarray(self.seen[-1].sum(), dtype=np.float64)
        return ServerResult(count, count, count, count, count)


@pytest.mark.parametrize("chunk", [None, 1, 2, 100])
def test_a_sum_shows_the_total_and_nothing_else(chunk: int | None) -> None:
    clients = binormal_clients(30, 40, 7)
    protocol = Counting(View.SUM, sum_positives)
    run = simulate(clients, protocol, NoNoise(), chunk=chunk)
    assert protocol.seen[0].shape == ()
    assert run.server_result.value == 30.0


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_a_joint_step_answers_for_all_clients_at_once(chunk: int | None) -> None:
    protocol = Counting(View.MPC, sum_positives)
    run = simulate(binormal_clients(30, 40, 7), protocol, NoNoise(), chunk=chunk)
    assert [seen.item() for seen in protocol.seen] == [30]
    assert run.mpc
    assert run.bytes_sent.tolist() == [-(-sum_size({"positives": protocol.seen[0]}) // 7)] * 7
    assert not simulate(binormal_clients(3, 4, 2), Counting(View.EACH), NoNoise()).mpc


def test_a_field_of_several_values_a_client_has_no_sum() -> None:
    with pytest.raises(TypeError, match="'labels' must be an array of 64-bit integers"):
        simulate(binormal_clients(3, 4, 2), Counting(View.SUM, send_labels), NoNoise())


def test_a_protocol_learns_how_many_clients_are_asked() -> None:
    seen = []

    class Asking(Counting):
        def conversation(self, clients: int) -> Conversation:
            seen.append(clients)
            return super().conversation(clients)

    clients = binormal_clients(30, 40, 7)
    simulate(clients, Asking(View.EACH), NoNoise())
    simulate(clients, Asking(View.EACH), NoNoise(), asked=9)
    assert seen == [7, 9]
