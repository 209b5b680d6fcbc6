"""Targets of this package: gains over the papers' protocols, and accuracy of predicted errors.

Every ratio compares settings that were measured in the same run on the same clients.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tacit.counts import rank_noise
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.noise import NoNoise
from tacit.protocol.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.published.dpauc import (
    Gaussian,
    Laplace,
    PublishedDPAUC,
    RandomisedResponse,
)
from tacit.protocols.published.fedauc import Gaussian as RankGaussian
from tacit.protocols.published.fedauc import PublishedFedAUC
from tacit.running.evaluating import repeat_results
from tacit.running.simulation import simulate
from tacit_studies.figures import NAMES
from tacit_studies.measuring import (
    IID,
    NON_IID,
    Bench,
    Job,
    Split,
    centre,
    quotient,
    standard_deviation,
)
from tacit_studies.papers.dpauc import LAPLACE_THRESHOLDS, paper_laplace
from tacit_studies.papers.fedauc import ADAPTIVE
from tacit_studies.rows import Target

EPSILONS = (1.0, 2.0, 4.0, 8.0)
CLIENTS = (10, 458, 4_584, 45_840)

AGAINST_ADAPTIVE = {(1.0, 10): 0.68, (1.0, 458): 0.76, (1.0, 4_584): 0.90}
"""Maximum ratio of influence to adaptive deviations, IID, by epsilon and number of clients."""

AGAINST_ADAPTIVE_STAIRCASE = {**AGAINST_ADAPTIVE, (8.0, 10): 0.30, (8.0, 458): 0.30}
"""Maximum ratio for staircase noise, which gains more at a large epsilon."""

AGAINST_BETTER = 1.12
"""Maximum ratio, in all settings, of influence to the better of adaptive and response."""

HISTOGRAM_CLIENTS = (10, 1_000)

COVERAGE_EPSILONS = (1.0, 8.0)
FEDAUC_CLIENTS = (10, 458)
DPAUC_CLIENTS = (10, 1_000)
DELTA = 1e-6


def influence(table: str) -> list[Job]:
    """The influence allocation against the paper's methods, by epsilon, clients and setting."""
    return [
        Job(partial(_influence, table, epsilon, Split(clients, by)), records=clients)
        for epsilon in EPSILONS
        for clients in CLIENTS
        for by in (IID, NON_IID)
    ]


def _influence(table: str, epsilon: float, split: Split, bench: Bench) -> list[Target]:
    """Randomised response does not depend on the clients, and is measured once an epsilon."""

    def deviation(protocol: Protocol, of: Split = split) -> float:
        return standard_deviation(bench.estimates(protocol, of))

    row = f"eps={epsilon:g} {NAMES[split.by]} K={split.clients}"
    response = bench.once(
        ("response", epsilon), lambda: deviation(FedAUC(epsilon, trust="local"), Split())
    )
    adaptive, staircase = deviation(ADAPTIVE(epsilon)), deviation(FedAUC(epsilon))
    better = quotient(staircase, min(adaptive, response))
    column = "influence staircase / better of RR and adaptive Laplace"
    targets = [Target(table, row, column, better, at_most=AGAINST_BETTER)]
    if split.by != IID:
        return targets
    setting = (epsilon, split.clients)
    if setting in AGAINST_ADAPTIVE_STAIRCASE:
        bound, ratio = AGAINST_ADAPTIVE_STAIRCASE[setting], quotient(staircase, adaptive)
        column = "influence staircase / adaptive Laplace"
        targets.append(Target(table, row, column, ratio, at_most=bound))
    if setting in AGAINST_ADAPTIVE:
        ratio = quotient(deviation(PublishedFedAUC(epsilon, allocation="influence")), adaptive)
        column = "influence Laplace / adaptive Laplace"
        targets.append(Target(table, row, column, ratio, at_most=AGAINST_ADAPTIVE[setting]))
    return targets


def histogram(table: str) -> list[Job]:
    """The noisy histogram against the paper's noisy confusion counts, at epsilon 1."""
    return [
        Job(partial(_histogram, table, Split(clients)), records=clients)
        for clients in HISTOGRAM_CLIENTS
    ]


def _histogram(table: str, split: Split, bench: Bench) -> list[Target]:
    row = f"eps=1 T={LAPLACE_THRESHOLDS} K={split.clients}"
    printed = standard_deviation(bench.estimates(paper_laplace(1.0), split))
    targets = []
    for adjacency in ("record", "label"):
        agreed: Any = {"adjacency": adjacency, "scale": EVEN}
        protocol = DPAUC(1.0, LAPLACE_THRESHOLDS, **agreed)
        tight = PublishedDPAUC(1.0, LAPLACE_THRESHOLDS, **agreed)
        estimates = bench.estimates(protocol, split)
        deviation = standard_deviation(estimates)
        plain = float(simulate(bench.clients(split), protocol, NoNoise()).server_result.value)
        bias = quotient(abs(centre(estimates) - plain), deviation)
        if adjacency == "record":
            column = "std of Laplace, paper accounting (label) / histogram (record)"
            targets.append(Target(table, row, column, quotient(printed, deviation), at_least=10))
        column = f"std of Laplace, tight accounting ({adjacency}) / histogram ({adjacency})"
        gain = quotient(standard_deviation(bench.estimates(tight, split)), deviation)
        targets.append(Target(table, row, column, gain, at_least=3))
        column = f"|mean - noiseless area| / std of histogram ({adjacency})"
        targets.append(Target(table, row, column, bias, at_most=0.3))
    return targets


def coverage(table: str) -> list[Job]:
    """Whether predicted errors are the true ones and intervals cover the exact AUC.

    Where thresholds cost more than noise does, the error is nearly the same in every repetition,
    and an interval covers nearly always or nearly never.
    """
    fedauc = [
        Job(partial(_coverage, table, name, protocol, Split(clients)), records=clients)
        for epsilon in COVERAGE_EPSILONS
        for clients in FEDAUC_CLIENTS
        for name, protocol in _fedauc_mechanisms(epsilon).items()
    ]
    dpauc = [
        Job(partial(_coverage, table, name, protocol, Split(clients)), records=clients)
        for epsilon in COVERAGE_EPSILONS
        for clients in DPAUC_CLIENTS
        for name, protocol in _dpauc_mechanisms(epsilon).items()
    ]
    return fedauc + dpauc


def _fedauc_mechanisms(epsilon: float) -> dict[str, Protocol]:
    """Every mechanism with the influence allocation, and the paper's allocations."""
    influence = partial(PublishedFedAUC, epsilon, allocation="influence")
    protocols: dict[str, Protocol] = {
        "staircase influence": FedAUC(epsilon),
        "discrete-laplace influence": influence(mechanism="discrete-laplace"),
        "laplace influence": influence(),
        "gaussian influence": influence(mechanism=RankGaussian(DELTA)),
    }
    protocols["laplace adaptive"] = ADAPTIVE(epsilon)
    protocols["laplace orthogonal"] = PublishedFedAUC(epsilon, allocation="orthogonal")
    protocols["laplace fixed"] = PublishedFedAUC(epsilon, allocation="fixed")
    protocols[rank_noise.RESPONSE] = FedAUC(epsilon, trust="local")
    return {f"FedAUC eps={epsilon:g} {name}": protocol for name, protocol in protocols.items()}


def _dpauc_mechanisms(epsilon: float) -> dict[str, Protocol]:
    """Every mechanism; the paper's forms with clamped counts and without."""
    even = partial(DPAUC, epsilon, 100, scale=EVEN)
    paper = partial(PublishedDPAUC, epsilon, 100, scale=EVEN)
    protocols = {
        "histogram (record)": even(),
        "histogram (label)": even(adjacency="label"),
        "laplace (record)": paper(),
        "laplace (record) unclamped": paper(Laplace(points="plain")),
        "gaussian (record)": paper(Gaussian(delta=DELTA)),
        "gaussian (record) unclamped": paper(Gaussian(points="plain", delta=DELTA)),
        f"{rank_noise.RESPONSE} (label)": paper(RandomisedResponse(), "label"),
    }
    return {f"DPAUC eps={epsilon:g} {name}": protocol for name, protocol in protocols.items()}


def _coverage(
    table: str, name: str, protocol: Protocol, split: Split, bench: Bench
) -> list[Target]:
    results = repeat_results(
        bench.clients(split), protocol, bench.repeats, bench.seed(protocol, split)
    )
    predicted = quotient(
        float(np.sqrt(np.mean(results.privacy_error**2))), standard_deviation(results.value)
    )
    inside = results.covers(bench.exact(split), 0.95)
    row = f"{name} K={split.clients}"
    return [
        Target(table, row, "predicted / measured std", predicted, 0.9, 1.1),
        Target(table, row, "coverage of the 95 % interval", float(inside.mean()), 0.93, 0.97),
    ]
