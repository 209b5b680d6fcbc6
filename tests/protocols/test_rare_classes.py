"""Rare classes, of which noisy sizes leave too little to divide by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tacit
from tacit import Clients, evaluate
from tacit.protocol.conversation import Protocol
from tacit.protocols.published.dpauc.protocol import PublishedDPAUC
from tacit.running.evaluating import repeat_results

RARE: dict[str, Protocol] = {
    "FedAUC": tacit.FedAUC(0.4),
    "FedAUC, randomised response": tacit.FedAUC(3.0, trust="local"),
    "DPAUC": tacit.DPAUC(0.7),
    "DPAUC, labels": tacit.DPAUC(0.7, adjacency="label"),
    "DPAUC, Laplace": PublishedDPAUC(3.0),
    "DPAUC, Gaussian": PublishedDPAUC(0.6, mechanism="gaussian(delta=1e-6)"),
    "DPAUC, response": PublishedDPAUC(3.0, mechanism="randomised-response", adjacency="label"),
    "ScoreHistogram, secure sum": tacit.ScoreHistogram("secure-sum", epsilon=0.3),
    "ScoreHistogram, local": tacit.ScoreHistogram("local", epsilon=5.0),
    "UStatistic": tacit.UStatistic("auc", 4.0),
    "PairedUStatistic": tacit.PairedUStatistic("auc", 2.0),
    "TwoRoundAUC": tacit.TwoRoundAUC(5.0),
}
"""Settings with which the noisy class size has 1 to 3 standard errors."""


def one_percent(records: int, seed: int = 0) -> Clients:
    """Records of five clients, of which 1 % are positive, with an AUC of 0.8."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([1, 0], [records // 100, records - records // 100])
    scores = 1 / (1 + np.exp(0.6 - rng.normal(size=records) - 1.2 * labels))
    return Clients.from_arrays(scores, labels, rng.integers(0, 5, records))


@pytest.mark.parametrize("name", list(RARE))
def test_a_class_that_is_lost_in_the_noise_gives_no_figure(name: str) -> None:
    """Where only the runs that overestimate the class gave a figure, their intervals missed."""
    clients = one_percent(4_000)
    for seed in range(10):
        result = evaluate(clients, RARE[name], seed=seed)
        assert not result.has_signal
        assert any("not enough signal at this epsilon" in warning for warning in result.warnings)


def test_two_rounds_give_no_figure_of_200_positives_among_20_000() -> None:
    """A third of the runs gave one, and their intervals held the exact value in a quarter."""
    results = repeat_results(one_percent(20_000), tacit.TwoRoundAUC(5.0), 20, seed=11)
    assert np.isnan(results.value).all()


WARNED: dict[str, Any] = {
    "FedAUC": tacit.FedAUC(1.1),
    "DPAUC": tacit.DPAUC(2.2),
    "ScoreHistogram": tacit.ScoreHistogram("secure-sum", epsilon=1.2),
}


@pytest.mark.parametrize("name", list(WARNED))
def test_a_class_that_hardly_passes_is_warned_of(name: str) -> None:
    """Some runs give no figure; of the others, those with a class near the threshold say so."""
    clients = one_percent(4_000)
    results = [evaluate(clients, WARNED[name], seed=seed) for seed in range(20)]
    warned = [
        result.has_signal and any("the interval is too narrow" in text for text in result.warnings)
        for result in results
    ]
    silent = [not result.has_signal for result in results]
    assert any(warned)
    assert any(silent)


def test_few_cells_of_a_rare_class_are_covered() -> None:
    """Noise moves the area and the estimated bias of four cells in the same direction.

    400 runs know the coverage to 1.3 %.
    """
    clients, protocol = one_percent(20_000, seed=3), tacit.HierarchicalAUC(5.0, height=2)
    results = repeat_results(clients, protocol, 400, seed=12)
    assert results.covers(protocol.exact(clients)).mean() >= 0.92
