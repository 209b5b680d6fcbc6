"""FedAUC as Sun et al. 2022a form it: variances, warnings, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tacit import ClientState, FedAUC, Protocol, PublishedFedAUC, PublishedResponseAUC, evaluate
from tacit.privacy.noise import NoNoise, SimulatedNoise
from tacit.protocols.published.dpauc import PublishedDPAUC
from tacit.running.simulation import simulate
from tests.federations import binormal_clients
from tests.protocols.fedauc.test_protocol import mixed_federation

RESPONSE = PublishedDPAUC(1.0, mechanism="randomised-response", adjacency="label")


@pytest.mark.parametrize("protocol", [PublishedResponseAUC(1.0), RESPONSE])
def test_flipped_labels_are_paid_for_once(protocol: Protocol) -> None:
    clients, state = binormal_clients(300, 700, 20), ClientState()
    first, again = (evaluate(clients, protocol, seed=seed, state=state) for seed in (1, 2))
    assert first.auc.value == again.auc.value
    assert (first.spent.epsilon, again.spent.epsilon) == (1.0, 0.0)
    if protocol is not RESPONSE:
        assert first.auc.value == evaluate(clients, FedAUC(1.0, "local"), seed=1).auc.value


def test_a_batch_that_answers_in_both_ways_declares_the_larger_rho() -> None:
    clients = mixed_federation()
    protocol = PublishedFedAUC(1.0, "gaussian(delta=1e-6)", "influence")
    spent = evaluate(clients, protocol, seed=1).spent
    assert spent.delta == 1e-6
    assert spent.rho is not None
    assert spent.rho >= 0.45
    chunked = simulate(clients, protocol, SimulatedNoise(1), chunk=1).spent
    assert (chunked.epsilon, chunked.delta, chunked.rho) == (spent.epsilon, spent.delta, spent.rho)


def test_the_server_cannot_make_a_client_release_an_unprotected_sum() -> None:
    clients = binormal_clients(5, 5, 1)
    conversation = PublishedFedAUC(1.0).conversation(clients.count)
    first = next(conversation)
    query = conversation.send(first.step.answer(clients, first, NoNoise(), ClientState()))
    shares: Any = query.per_client["share"]
    shares[:] = 1.0
    with pytest.raises(ValueError, match="no budget is left"):
        query.step.answer(clients, query, NoNoise(), ClientState())
    shares[:] = 0.0
    with pytest.raises(ValueError, match="fraction of the budget must be above 0"):
        query.step.answer(clients, query, NoNoise(), ClientState())
