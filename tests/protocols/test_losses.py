"""Comparisons, private groups and counts of missing records, where a party is lost on the way."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pytest

import tacit
from tacit import Clients, Fault, GroupedHistogram, MissingRecords, rehearse
from tacit.protocol import NOTHING, NoNoise
from tacit.running.session.coordinator import RunError
from tacit.running.session.debits import Debit
from tacit.running.simulation import simulate
from tests.classified import GROUPS, group_clients

PARTIES, LOST = 4, 1
Reaction = Literal["fail", "restart"]


def paired() -> Clients:
    rng = np.random.default_rng(1)
    labels, owners = rng.integers(0, 2, 240), np.arange(240) % PARTIES
    return Clients.from_arrays(rng.random(240), labels, owners, second=rng.random(240))


def incomplete() -> Clients:
    return replace(paired(), second=None, left_out=np.array([[3, 1, 4, 1], [5, 9, 2, 6]]))


CASES: dict[str, tuple[Any, Clients]] = {
    "comparison": (tacit.ComparedAUC(1.0), paired()),
    "comparison-flips": (tacit.ComparedAUC(1.0, trust="local"), paired()),
    "groups-sum": (
        GroupedHistogram("secure-sum(dropouts=0.25)", 1.0, group_names=GROUPS),
        group_clients(240, PARTIES),
    ),
    "groups-each": (GroupedHistogram("each", 1.0, group_names=GROUPS), group_clients(240, PARTIES)),
    "missing-sum": (MissingRecords(1.0, "secure-sum(dropouts=0.25)"), incomplete()),
    "missing-each": (MissingRecords(1.0, trust="each"), incomplete()),
}


@lru_cache(maxsize=len(CASES) * 2)
def figure_without(name: str, lost: int | None) -> float:
    """Without noise, of all parties or of those that were not lost, asked by themselves."""
    protocol, clients = CASES[name]
    parties = [clients.part(k, k + 1) for k in range(PARTIES) if k != lost]
    parts = [part.left_out for part in parties if part.left_out is not None]
    rest = Clients.concatenate([replace(part, left_out=None) for part in parties])
    rest = replace(rest, left_out=np.concatenate(parts, axis=1) if parts else None)
    return float(simulate(rest, protocol, NoNoise()).server_result.value)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("on_loss", ["fail", "restart"])
def test_a_lost_party_leaves_the_others_figure_or_a_sentence(
    name: str, way: Literal["up", "down"], on_loss: Reaction
) -> None:
    """In each of the first three turns, and in one that no run has."""
    protocol, clients = CASES[name]
    for turn in range(4):
        debits: list[list[Debit]] = [[] for _ in range(PARTIES)]
        try:
            run = rehearse(
                clients,
                protocol,
                [Fault("drop", LOST, turn, way)],
                noise=lambda _: NoNoise(),
                guards=[each.append for each in debits],
                on_loss=on_loss,
                min_clients=PARTIES - 1,
            )
        except RunError as error:
            assert "\n" not in str(error)
            continue
        lost = None if LOST in run.members else LOST
        value = float(run.server_result.value)
        assert value == pytest.approx(figure_without(name, lost), rel=1e-12)
        paid = [sum((debit.cost for debit in each), NOTHING).epsilon for each in debits]
        assert max(paid) <= 2 * protocol.guarantee.epsilon
        assert run.spent.epsilon >= max(paid[party] for party in run.members)
