"""Rank sums are exact whatever ranks a server sends, or the client does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tacit
from tacit import Clients, FedAUC, PublishedFedAUC
from tacit.counts.rank_noise import ROUNDED_SUMS, SUM_MECHANISMS, WHOLE_SUMS, RankNoise
from tacit.privacy.mechanisms.interface import Distribution, Shape
from tacit.protocol import ClientState, NoNoise, Query, Ragged, SystemNoise, View
from tacit.protocols.fedauc.comparing import noisy_difference_sums
from tacit.protocols.fedauc.hidden_ranks import noisy_hidden_rank_sums, rank_together
from tacit.protocols.fedauc.steps import MAX_RECORDS, check_sums, largest_distance, noisy_rank_sums

MECHANISMS = tuple(SUM_MECHANISMS)
HIGHEST = 2 * MAX_RECORDS
EDGES = [(name, (0, HIGHEST)[place % 2]) for place, name in enumerate(MECHANISMS)]
"""Either pivot with either bound of sums, which two mechanisms have each."""


def protocol(mechanism: str) -> PublishedFedAUC:
    written = "gaussian(delta=1e-6)" if mechanism == "gaussian" else mechanism
    return PublishedFedAUC(1.0, written, "fixed")


def crafted(mechanism: str, ranks: Ragged[np.int64], pivot: int = 0) -> Query:
    """The query of a server that makes ranks up."""
    own, clients = protocol(mechanism), ranks.clients
    return Query(
        noisy_rank_sums,
        own,
        broadcast={"noise": own.rank_noise, "sensitivity": 0},
        per_client={
            "ranks": ranks,
            "pivot": np.full(clients, pivot, dtype=np.int64),
            "share": np.full(clients, 0.5),
            "respond": np.zeros(clients, dtype=np.bool_),
        },
    )


def one_client(records: int, positives: int) -> Clients:
    scores = np.linspace(0.0, 1.0, records)
    return Clients.from_arrays(scores, np.arange(records) < positives, np.zeros(records, np.int64))


def exact_sum(values: NDArray[Any]) -> int:
    """In Python's integers, high and low halves apart."""
    return int((values >> 21).sum()) * 2**21 + int((values & (2**21 - 1)).sum())


@pytest.mark.parametrize("mechanism", ["staircase", "laplace"])
def test_ranks_whose_sum_would_wrap_are_refused(mechanism: str) -> None:
    """2^22 ranks of 2^41 add up to 2^63: the last positive label moves the sum by 2^64."""
    records = 2**22
    clients = one_client(records, records)
    ranks = clients.ragged(np.full(records, HIGHEST, dtype=np.int64))
    query = crafted(mechanism, ranks)
    for answered in (
        query.step.cost,
        lambda clients, query, state: query.step.answer(clients, query, NoNoise(), state),
    ):
        with pytest.raises(ValueError, match="the sum would not be exact"):
            answered(clients, query, ClientState())


@pytest.mark.parametrize(("mechanism", "pivot"), EDGES)
def test_the_largest_sums_that_are_answered_are_exact(mechanism: str, pivot: int) -> None:
    """At the edge every label moves what is released by its own weight, as the noise expects."""
    bound = RankNoise(mechanism, 1.0, 1e-6 if mechanism == "gaussian" else 0.0).largest_sum
    records = bound // HIGHEST - 1
    values = np.full(records, HIGHEST, dtype=np.int64)
    values[1::2] -= 3
    ranks_of = np.sort(values if pivot == 0 else HIGHEST - values)
    residuals = []
    for positives in range(records - 2, records + 1):
        clients = one_client(records, positives)
        query = crafted(mechanism, clients.ragged(ranks_of), pivot)
        reply = query.step.answer(clients, query, NoNoise(), ClientState())
        exact = exact_sum(ranks_of[:positives]) - pivot * positives
        residuals.append(int(np.asarray(reply["residuals"])[0]))
        assert residuals[-1] == exact
    moved = np.abs(np.diff(np.array(residuals, dtype=object)))
    sensitivity = largest_distance(clients.ragged(ranks_of), np.array([pivot]))[0]
    assert max(moved) <= sensitivity


class Recorded(SystemNoise):
    """Noise of the operating system that is known afterwards."""

    def __init__(self) -> None:
        self.drawn: list[NDArray[Any]] = []

    def draw(self, distribution: Distribution, shape: Shape) -> NDArray[Any]:
        self.drawn.append(super().draw(distribution, shape))
        return self.drawn[-1]


@pytest.mark.parametrize(("mechanism", "pivot"), [("staircase", HIGHEST), ("discrete-laplace", 0)])
def test_noise_of_the_highest_ranks_is_added_to_the_unit(mechanism: str, pivot: int) -> None:
    """A sum near 2^62 and noise of a scale near 2^42 do not wrap, and nothing is rounded."""
    records = WHOLE_SUMS // HIGHEST - 1
    values = np.full(records, HIGHEST, dtype=np.int64)
    values[1::2] -= 3
    ranks_of = np.sort(values if pivot == 0 else HIGHEST - values)
    clients = one_client(records, records - 1)
    query, noise = crafted(mechanism, clients.ragged(ranks_of), pivot), Recorded()
    reply = query.step.answer(clients, query, noise, ClientState())
    residual, count = int(np.asarray(reply["residuals"])[0]), int(np.asarray(reply["positives"])[0])
    assert residual - int(noise.drawn[1][0]) == exact_sum(ranks_of[:-1]) - pivot * (records - 1)
    assert count - int(noise.drawn[0][0]) == records - 1


def test_sums_without_flips_are_refused_where_labels_are_to_be_flipped() -> None:
    """No noise of a sum was agreed: a continuous one would round sums of this size."""
    clients = one_client(8, 4)
    query = crafted("staircase", clients.ragged(np.arange(8)))
    own = FedAUC(1.0, trust="local")
    asked = replace(query, protocol=own, broadcast={**query.broadcast, "noise": own.rank_noise})
    for answered in (
        lambda: asked.step.cost(clients, asked, ClientState()),
        lambda: asked.step.answer(clients, asked, NoNoise(), ClientState()),
    ):
        with pytest.raises(ValueError, match="every client must flip its labels"):
            answered()


@pytest.mark.parametrize("bound", [ROUNDED_SUMS, WHOLE_SUMS])
def test_the_bound_itself_is_refused(bound: int) -> None:
    sizes = np.array([2**20], dtype=np.int64)
    check_sums(sizes, np.array([bound // 2**20 - 1]), bound)
    with pytest.raises(ValueError, match=f"must be below {bound}"):
        check_sums(sizes, np.array([bound // 2**20]), bound)


@pytest.mark.parametrize("records", [2**13, 2**22])
def test_hidden_ranks_refuse_an_announced_number_whose_sums_would_not_be_exact(
    records: int,
) -> None:
    """The middle rank follows from what the server announces."""
    clients = one_client(records, 2**11)
    hidden = FedAUC(1.0, trust="mpc")
    state = ClientState()
    rank_together.answer(clients, Query(rank_together, hidden, view=View.MPC), NoNoise(), state)
    shared = {"noise": hidden.rank_noise, "records": HIGHEST, "share": 0.5}
    query = Query(noisy_hidden_rank_sums, hidden, shared)
    if records == 2**22:
        with pytest.raises(ValueError, match="the sum would not be exact"):
            query.step.answer(clients, query, NoNoise(), state)
        return
    residuals = np.asarray(query.step.answer(clients, query, NoNoise(), state)["residuals"])
    ranks = 2 * np.arange(2**11)
    assert int(residuals[0]) == int(ranks.sum()) - 2**11 * (HIGHEST - 1)


def test_comparisons_refuse_ranks_whose_sums_would_not_be_exact() -> None:
    """One record's rank is as high as a rank may be, beside two million lowest ones."""
    records = 2**21
    scores = np.linspace(0.0, 1.0, records)
    clients = Clients.from_arrays(
        scores, np.ones(records, dtype=np.int8), np.zeros(records, np.int64), second=scores
    )
    made = tacit.ComparedAUC(1.0)
    zero = clients.ragged(np.zeros(records, dtype=np.int64))
    highest = clients.ragged(np.append(np.zeros(records - 1, dtype=np.int64), 2 * MAX_RECORDS))
    each: dict[str, Any] = {
        "first": highest,
        "second": zero,
        "responding": clients.ragged(np.zeros(records, dtype=np.bool_)),
    }
    query = Query(noisy_difference_sums, made, per_client=each)
    with pytest.raises(ValueError, match="the sum would not be exact"):
        query.step.answer(clients, query, NoNoise(), ClientState())
    honest = replace(query, per_client={**each, "first": zero})
    reply: Mapping[str, Any] = query.step.answer(clients, honest, NoNoise(), ClientState())
    assert reply["levels"].tolist() == [0]
