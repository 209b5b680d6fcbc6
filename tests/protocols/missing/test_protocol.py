"""The number of incomplete records: sensitivity, errors, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.protocol import ClientState, NoNoise
from tacit.testing.recording import Recorder, loss_between

FORMS: list[dict[str, Any]] = [
    {"trust": trust, "adjacency": adjacency}
    for trust in ("secure-sum", "each")
    for adjacency in ("record", "replace", "label")
]


def incomplete_clients(*counts: tuple[int, int]) -> tacit.Clients:
    """Clients of two complete records each, which left out so many without scores and labels."""
    ids = np.repeat(np.arange(len(counts)), 2)
    made = tacit.Clients.from_arrays(np.linspace(0, 1, ids.size), np.tile([0, 1], len(counts)), ids)
    return replace(made, left_out=np.array(counts, dtype=np.int64).T)


def loss(settings: dict[str, Any], clients: tacit.Clients, other: tacit.Clients) -> float:
    """The exact privacy loss of the step's reply between two data sets."""
    protocol = tacit.MissingRecords(1.0, **settings)
    query = next(protocol.conversation(clients.count))
    noise = Recorder()
    reply = query.step.answer(clients, query, noise, ClientState())
    moved = query.step.answer(other, query, NoNoise(), ClientState())
    return loss_between(reply, moved, noise).epsilon


@pytest.mark.parametrize("settings", FORMS)
@pytest.mark.parametrize("other", [((4, 2), (0, 7)), ((3, 3), (0, 7)), ((3, 1), (0, 7))])
def test_a_record_more_or_less_costs_epsilon_exactly(
    settings: dict[str, Any], other: tuple[tuple[int, int], ...]
) -> None:
    """Exact: a record that is left out, or no longer, whichever of both values it lacks."""
    clients = incomplete_clients((3, 2), (0, 7))
    assert loss(settings, clients, incomplete_clients(*other)) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("settings", FORMS)
def test_a_record_that_lacks_another_value_costs_nothing(settings: dict[str, Any]) -> None:
    clients = incomplete_clients((3, 2), (0, 7))
    assert loss(settings, clients, incomplete_clients((2, 3), (0, 7))) == 0.0


def test_clients_that_refuse_incomplete_records_have_left_out_none() -> None:
    clients = replace(incomplete_clients((1, 1)), left_out=None)
    result = tacit.evaluate(clients, tacit.MissingRecords(1.0), noise=NoNoise(), exact=True)
    assert result.exact == result.estimate.value == 0.0
    assert result.spent.epsilon == 1.0


def test_a_count_is_never_below_zero_and_says_nothing_of_a_population() -> None:
    clients = incomplete_clients((0, 0))
    for seed in range(20):
        found = tacit.evaluate(clients, tacit.MissingRecords(0.1), seed=seed).estimate
        assert math.isnan(found.value) or found.value >= 0
        assert math.isnan(found.interval(0.95, "population")[0])
