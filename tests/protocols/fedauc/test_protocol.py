"""FedAUC: its estimator, its memory, its warnings, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit import (
    Clients,
    ClientState,
    FedAUC,
    binormal_scores,
    evaluate,
)
from tacit.metrics.ranking import auc
from tacit.privacy.mechanisms.response import flip_probability
from tacit.privacy.noise import SimulatedNoise
from tacit.privacy.symbols import flip_labels
from tests.federations import binormal_clients


def debiased_as_in_the_paper(scores: NDArray[Any], flipped: NDArray[Any], epsilon: float) -> float:
    """Sun et al. 2022a, Algorithm 3 and Eqs. 3, 4, 11 and 12, as they stand."""
    rho = flip_probability(epsilon)
    noisy_positives = float(flipped.sum())
    noisy_negatives = flipped.size - noisy_positives
    positives = (noisy_positives * (1 - rho) - noisy_negatives * rho) / (1 - 2 * rho)
    pi = positives / flipped.size
    alpha = (1 - pi) * rho / (pi * (1 - rho) + (1 - pi) * rho)
    beta = pi * rho / (pi * rho + (1 - pi) * (1 - rho))
    return (auc(scores, flipped) - (alpha + beta) / 2) / (1 - alpha - beta)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_flipped_labels_are_debiased_as_in_the_paper(epsilon: float) -> None:
    clients = binormal_clients(1200, 2700, 7)
    estimate = evaluate(clients, FedAUC(epsilon, trust="local"), seed=4).auc.value
    flipped = flip_labels(clients.labels, epsilon, SimulatedNoise(4))
    assert estimate == pytest.approx(
        debiased_as_in_the_paper(clients.scores, flipped, epsilon), abs=1e-12
    )


@pytest.mark.parametrize("same_places", [False, True])
@pytest.mark.parametrize("change", ["label", "place", "score", "another epsilon"])
def test_flips_are_free_for_the_records_that_were_flipped_only(
    change: str, same_places: bool
) -> None:
    """Records of one label that change places leave all labels where they were."""
    clients = binormal_clients(300, 700, 5)
    state, protocol = ClientState(same_places=same_places), FedAUC(1.0, trust="local")
    evaluate(clients, protocol, seed=1, state=state)
    scores, labels = clients.scores.copy(), clients.labels.copy()
    if change == "label":
        labels[0] = 1 - labels[0]
    elif change == "place":
        first, second = np.flatnonzero(labels[: clients.offsets[1]])[:2]
        scores[[first, second]] = scores[[second, first]]
    elif change == "score":
        scores[7] += 1
    else:
        protocol = FedAUC(2.0, trust="local")
    changed = Clients(scores, labels, clients.offsets)
    free = same_places and change in ("place", "score")
    spent = [evaluate(changed, protocol, seed=1, state=state).spent.epsilon for _ in range(2)]
    assert spent == [0.0 if free else protocol.epsilon, 0.0]


def mixed_federation() -> Clients:
    """One large client, which adds noise, among 1,000 one-record clients, which respond."""
    scores, labels = binormal_scores(4000, 6000, 0.8, seed=0)
    owner = np.where(np.arange(10000) < 9000, 0, np.arange(10000))
    order = np.random.default_rng(0).permutation(10000)
    return Clients.from_arrays(scores[order], labels[order], owner)


def test_flips_that_were_never_released_are_not_free_later() -> None:
    clients, state = mixed_federation(), ClientState()
    first = evaluate(clients, FedAUC(1.0), seed=1, state=state)
    assert first.spent.epsilon == pytest.approx(1.0)
    later = evaluate(clients, FedAUC(1.0, trust="local"), seed=2, state=state)
    assert later.spent.epsilon == 1.0
    assert evaluate(clients, FedAUC(1.0, trust="local"), seed=3, state=state).spent.epsilon == 0.0
