"""Errors and intervals of reports of single records over many runs, and reports at wrong noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from tacit import (
    Clients,
    ClientState,
    HierarchicalAUC,
    PairedUStatistic,
    PublishedHistogram,
    ScoreHistogram,
    TwoRoundAUC,
    UStatistic,
)
from tacit.local.hierarchical.protocol import EveryLevel
from tacit.local.paired.kernels import Gini
from tacit.local.ustatistic.kernels import Own
from tacit.metrics.cells.score_scale import PROBABILITY
from tacit.privacy.bounded import SlidingWindow
from tacit.protocol import NoiseSource, ServerResult, SimulatedNoise
from tacit.protocols.published.ustatistics import PublishedHierarchicalAUC, PublishedUStatistic
from tacit.running.evaluating import exact_auc, repeat_results
from tacit.testing.checks import deviation_and_coverage
from tests.federations import binormal_clients


def rated(records: int, clients: int, seed: int = 4) -> Clients:
    """Two correlated ratings from 0 to 5, and a label that high ratings make likely."""
    rng = np.random.default_rng(seed)
    first = rng.random(records)
    second = np.clip(first + rng.normal(0, 0.4, records), 0, 1)
    owners = np.arange(records) % clients
    return Clients.from_arrays(
        np.round(5 * first), rng.random(records) < first, owners, np.round(5 * second)
    )


def spread_out(records: int, clients: int) -> Clients:
    """Two dependent smooth values in [0, 1], and a label that high values make likely."""
    rng = np.random.default_rng(0)
    first = rng.beta(2, 3, records)
    second = 0.5 * first + 0.5 * rng.beta(2, 2, records)
    owners = np.arange(records) % clients
    return Clients.from_arrays(first, rng.random(records) < first, owners, second)


def lone(positives: int, negatives: int, auc: float = 0.8) -> Clients:
    """Clients of one record each."""
    return binormal_clients(positives, negatives, positives + negatives, auc=auc, seed=5)


def listed(kernel: str) -> str:
    """A kernel of the ratings."""
    return f"{kernel}(domain=listed(values=0 1 2 3 4 5))"


PHONES, RATED, SPREAD = lone(1600, 2400), rated(6000, 6000), spread_out(6000, 6000)
SITES = {clients: binormal_clients(150, 450, clients) for clients in (1, 2, 3, 600)}
VALUES = {records: spread_out(records, 4) for records in (401, 600)}
RATINGS = {clients: rated(601, clients) for clients in (2, 3)}
DEALT = binormal_clients(4000, 6000, 20, seed=5)
SAMPLE = "secure-sum(budget=sample)"
HALF_SQUARE = Own(lambda x, y: (x - y) ** 2 / 2, range(6))

FEW, SOME, MANY, MOST = 100, 300, 1000, 3000
BOUNDS = {
    FEW: (0.18, 0.9, 0.993),
    SOME: (0.16, 0.9, 0.99),
    MANY: (0.1, 0.92, 0.98),
    MOST: (0.05, 0.93, 0.97),
}
"""By how much a standard deviation of so many runs may be off, and how often intervals may cover.

Over the choice of the seed the deviation errs by 7 %, 4.1 %, 2.3 % and 1.3 %, and the coverage by
2.2 %, 1.3 %, 0.7 % and 0.4 %: a correct protocol misses a bound with probability below 2 %, 1e-2,
1e-4 and 1e-4, where second-order terms raise the deviation of some by 6 % at epsilon 1.
"""

CASES: dict[str, tuple[Clients, Any, int]] = {
    "two rounds": (lone(2500, 2500), TwoRoundAUC(1.0), FEW),
    "two rounds, 5 % positives": (lone(150, 2850), TwoRoundAUC(4.0, "public"), FEW),
    "bits": (PHONES, HierarchicalAUC(2.0, 5), MANY),
    "bits of every level": (PHONES, HierarchicalAUC(8.0, 4, EveryLevel(1e-3)), MANY),
    "bits, traversal": (PHONES, PublishedHierarchicalAUC(6.0, 4, scale=PROBABILITY), MANY),
    "bits, few positives": (lone(400, 4600, 0.9), HierarchicalAUC(3.0), MANY),
    "bits, small AUC": (lone(2500, 2500, 0.55), HierarchicalAUC(2.0), MANY),
    "bits of sites": (binormal_clients(1600, 2400, 7, by="score"), HierarchicalAUC(2.0, 6), MANY),
    "histogram": (DEALT, ScoreHistogram("local", 1.0, scale="even"), SOME),
    "histogram at epsilon 5": (DEALT, ScoreHistogram("local", 5.0), SOME),
    "histogram, one level": (DEALT, PublishedHistogram(SAMPLE, 1.0, adjacency="replace"), SOME),
    "gini": (RATED, UStatistic(listed("gini"), 1.0), MANY),
    "collision": (RATED, UStatistic("collision(values=0 1 2 3 4 5)", 2.0), MANY),
    "kendall": (RATED, UStatistic(listed("kendall"), 2.0), MANY),
    "auc": (RATED, UStatistic(listed("auc"), 1.5), MANY),
    "own": (RATED, UStatistic(HALF_SQUARE, 1.0), MANY),
    "kendall as published": (RATED, PublishedUStatistic(listed("kendall"), 2.0), MANY),
    "gini of bins": (SPREAD, UStatistic("gini(domain=range(bins=16))", 2.0), MANY),
    "auc of bins": (SPREAD, UStatistic("auc(domain=range(bins=12))", 2.0), MANY),
    "gini of few": (rated(150, 150), UStatistic(listed("gini"), 3.0), MANY),
    "pairs": (SITES[2], PairedUStatistic("auc", 2.0), MOST),
    "pairs, laplace": (SITES[2], PairedUStatistic("auc", 3.0, noise="laplace"), MOST),
    "pairs, shared": (SITES[2], PairedUStatistic("auc", 3.0, noise="shared"), MOST),
    "pairs, many": (SITES[3], PairedUStatistic("auc", 8.0), MOST),
    "pairs, alone": (SITES[600], PairedUStatistic("auc", 5.0), MOST),
    "pairs, one client": (SITES[1], PairedUStatistic("auc", 4.0, noise="laplace"), MOST),
    "pairs, kendall": (RATINGS[3], PairedUStatistic("kendall", 1.0), MOST),
    "pairs, kendall, one": (RATINGS[3], PairedUStatistic("kendall", 8.0, 1), MOST),
    "pairs, gini": (VALUES[600], PairedUStatistic(Gini(-1, 2), 4.0), MOST),
    "pairs, gini, many": (VALUES[401], PairedUStatistic(Gini(-1, 2), 12.0, 3), MOST),
    "pairs, collision": (RATINGS[2], PairedUStatistic("collision", 1.0), MOST),
    "pairs, collision, many": (RATINGS[2], PairedUStatistic("collision", 6.0), MOST),
}


@pytest.mark.parametrize("name", list(CASES))
def test_predicted_errors_and_intervals_hold(name: str) -> None:
    """The mean is off by 5 of its standard errors and a twentieth of one run's at most, and by
    what cells hide: a false alarm in 1e-6."""
    clients, protocol, runs = CASES[name]
    off, least, most = BOUNDS[runs]
    results, exact = repeat_results(clients, protocol, runs, seed=8), protocol.exact(clients)
    deviation, coverage = deviation_and_coverage(results, exact)
    assert deviation == pytest.approx(1.0, abs=off)
    assert least <= coverage <= most
    hidden = np.mean(results.approximation_error)
    bound = (5 / math.sqrt(runs) + 0.05) * np.sqrt(np.mean(results.privacy_error**2)) + hidden
    assert abs(results.value.mean() - exact) < bound


NOTICED = {"traversal": (lone(8000, 12000), PublishedHierarchicalAUC(1.0, 5), MANY)}
for noticed in ("bits", "gini", "auc", "kendall"):
    NOTICED[noticed] = CASES[noticed]
for noticed in ("laplace", "shared", "kendall", "gini", "collision"):
    NOTICED[f"pairs, {noticed}"] = CASES[f"pairs, {noticed}"]


def answered_at(factor: float, protocol: Any, clients: Clients, noise: NoiseSource) -> ServerResult:
    """The result where clients answer as if epsilon were larger by a factor."""
    other, state = replace(protocol, epsilon=factor * protocol.epsilon), ClientState()
    conversation = protocol.conversation(clients.count)
    query = next(conversation)
    while True:
        sent = dict(query.broadcast)
        if "epsilon" in sent:
            sent["epsilon"] *= factor
        asked = replace(query, protocol=other, broadcast=sent)
        try:
            query = conversation.send(query.step.answer(clients, asked, noise, state))
        except StopIteration as ended:
            return cast(ServerResult, ended.value)


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize("name", list(NOTICED))
def test_reports_made_at_another_epsilon_are_noticed(name: str, factor: float) -> None:
    """Deviation or coverage leave the bounds above; the errors are those predicted of right noise,
    since the server may take what varies more for data."""
    clients, protocol, runs = NOTICED[name]
    off, least, most = BOUNDS[runs]
    predicted = repeat_results(clients, protocol, 20, seed=8).privacy_error
    results = answered_at(factor, protocol, clients, SimulatedNoise(8, min(runs, 300)))
    deviation = results.value.std(ddof=1) / math.sqrt(np.mean(predicted**2))
    coverage = results.covers(protocol.exact(clients)).mean()
    assert abs(deviation - 1) > off or not least <= coverage <= most


@pytest.mark.parametrize(("labels", "factor"), [("private", 0.7), ("public", 1.3)])
def test_windows_of_another_epsilon_are_noticed(
    labels: Any, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both of two rounds, with windows as wide as the server takes them to be."""
    honest = SlidingWindow.answers

    def answers(window: SlidingWindow, values: Any, noise: NoiseSource) -> Any:
        return honest(replace(window, epsilon=window.epsilon * factor), values, noise)

    monkeypatch.setattr(SlidingWindow, "answers", answers)
    clients, (off, least, most) = lone(2000, 3000), BOUNDS[FEW]
    results = repeat_results(clients, TwoRoundAUC(4.0, labels), 40, seed=11)
    deviation, coverage = deviation_and_coverage(results, exact_auc(clients))
    assert abs(deviation - 1) > off or not least <= coverage <= most
