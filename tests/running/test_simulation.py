"""The simulation's carrying: what each view shows, whole or in chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tacit import Clients, Cost, Memory, Protocol
from tacit.privacy.noise import NoiseSource, NoNoise
from tacit.protocols.conversation import Ask, Conversation, Reply, View, step
from tacit.results.findings import Findings
from tacit.running.simulation import simulate
from tests.federations import binormal_clients


@step()
def count_positives(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    return {"positives": clients.ragged(clients.labels.astype(np.int64)).sum()}


@step()
def send_labels(clients: Clients, ask: Ask, noise: NoiseSource, memory: Memory) -> Reply:
    return {"labels": clients.ragged(clients.labels)}


@dataclass
class Counting(Protocol):
    """Counts positives under a view, and remembers what the server saw."""

    view: View
    asked: Any = count_positives
    seen: list[np.ndarray[Any, Any]] = field(default_factory=list)
    guarantee = Cost(0.0)
    settings = {}  # noqa: RUF012
    name = "counting"

    def draws(self, clients: Clients) -> int:
        return 1

    def conversation(self) -> Conversation:
        reply = yield Ask(self.asked, self, view=self.view)
        self.seen.append(np.asarray(reply["positives"]))
        count = np.asarray(self.seen[-1].sum(), dtype=np.float64)
        return Findings(count, count, count, count, count)


@pytest.mark.parametrize("chunk", [None, 1, 2, 100])
def test_a_sum_shows_the_total_and_nothing_else(chunk: int | None) -> None:
    clients = binormal_clients(30, 40, 7)
    protocol = Counting(View.SUM)
    run = simulate(clients, protocol, NoNoise(), chunk=chunk)
    assert protocol.seen[0].shape == ()
    assert run.findings.value == 30.0


def test_each_shows_every_reply() -> None:
    protocol = Counting(View.EACH)
    simulate(binormal_clients(30, 40, 7), protocol, NoNoise())
    assert protocol.seen[0].shape == (7,)


def test_a_field_of_several_values_a_client_has_no_sum() -> None:
    with pytest.raises(TypeError, match="'labels' is ragged and has no sum"):
        simulate(binormal_clients(3, 4, 2), Counting(View.SUM, send_labels), NoNoise())
