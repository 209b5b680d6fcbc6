"""Errors and coverage of a comparison of two models on private scores.

The reference is what one would do without it: both models evaluated by the same protocol for their
AUC alone, each at half of epsilon. Every run draws new records, so that intervals about the records
and about the population are both tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.special import expit, ndtr, ndtri

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.privacy.noise import SimulatedNoise
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.protocols.shared.declared import both_models
from tacit.running.several import compare
from tacit_studies.measuring import Bench, Job
from tacit_studies.rows import Measured, Row, Target

CLIENTS = 10

AUC = 0.8
"""The first model's AUC in the population."""

DISTORTION = 0.5
"""Standard deviation of what the second model adds to the first one's score, which has 1 within a
class: its AUC is 0.774, and within a class the two correlate by 0.89."""

MIDDLE = 2.0
"""Taken off log-odds, so that probabilities are neither all small nor all large."""

SHIFT = math.sqrt(2) * float(ndtri(AUC))
"""The distance of the classes' means: ``AUC = Phi(shift / sqrt(2))``."""

POPULATION = AUC - float(ndtr(SHIFT / math.sqrt(2 * (1 + DISTORTION**2))))
"""The difference of the population's AUCs."""

COVERAGE = (0.93, 0.97)
"""Bounds of the coverage of 95 % intervals; 1,000 runs know it to 0.7 points."""


@dataclass(frozen=True)
class Setting:
    """Records, budget and trust of one row.

    Parameters
    ----------
    records, positives : the number of records, and the probability of a positive.
    epsilon, adjacency, trust : of the comparison.
    """

    records: int
    positives: float
    epsilon: float
    adjacency: Literal["record", "replace"] = "record"
    trust: str = "secure-sum"

    def __str__(self) -> str:
        agreed = f"{self.trust} {self.adjacency}, epsilon {self.epsilon:g}"
        return f"{agreed}, {self.records:,} records, {self.positives:.0%} positive, K={CLIENTS}"


SETTINGS = (
    Setting(40_000, 0.15, 1.0),
    Setting(40_000, 0.15, 1.0, "replace"),
    Setting(40_000, 0.15, 1.0, trust="each"),
    Setting(4_000, 0.15, 1.0),
    Setting(1_000, 0.2, 3.0),
)


def comparisons(table: str) -> list[Job]:
    """Every setting, compared with two evaluations at half of its epsilon."""
    return [Job(partial(_compared, table, each), name=str(each)) for each in SETTINGS]


def _compared(table: str, setting: Setting, bench: Bench) -> list[Measured]:
    seeds = [bench.seed("compared", setting, index) for index in range(bench.repeats)]
    runs = np.array([_one_run(setting, seed) for seed in seeds])
    error, of_two = np.sqrt(np.mean(runs[:, :2] ** 2, axis=0))
    named = partial(Target, table, str(setting))
    return [
        Row(table, str(setting), "error of one comparison", None, float(error)),
        Row(table, str(setting), "error of two evaluations", None, float(of_two)),
        named("error / that of two evaluations", float(error / of_two), at_most=1.0),
        named("coverage about the records", float(runs[:, 2].mean()), *COVERAGE),
        named("coverage about the population", float(runs[:, 3].mean()), *COVERAGE),
    ]


def _one_run(setting: Setting, seed: int) -> tuple[float, float, bool, bool]:
    """Errors of a comparison and of two evaluations; whether both intervals cover."""
    rng = np.random.default_rng(seed)
    clients = drawn(setting, rng)
    protocol = ScoreHistogram(
        setting.trust, setting.epsilon, aim="auc", adjacency=setting.adjacency
    )
    noise = SimulatedNoise(int(rng.integers(2**63)))
    comparison = compare(clients, None, protocol, noise=noise, exact=True)
    halved = replace(protocol, epsilon=setting.epsilon / 2)
    models = [evaluate(each, halved, noise=noise) for each in both_models(clients)]
    if comparison.exact is None:
        raise ValueError("a comparison was asked for exact AUCs and has none")
    exact = comparison.exact[0] - comparison.exact[1]
    difference = comparison.difference
    return (
        difference.value - exact,
        models[0].auc.value - models[1].auc.value - exact,
        exact in difference.interval(0.95),
        POPULATION in difference.interval(0.95, about="population"),
    )


def drawn(setting: Setting, rng: np.random.Generator) -> Clients:
    """Records with both models' scores, normal within either class on their log-odds."""
    labels = (rng.random(setting.records) < setting.positives).astype(np.int8)
    first = rng.normal(SHIFT * labels, 1.0)
    second = first + rng.normal(0.0, DISTORTION, setting.records)
    scores, others = expit(first - MIDDLE), expit(second - MIDDLE)
    return Clients.split(scores, labels, CLIENTS, "uniform", seed=0, second=others)
