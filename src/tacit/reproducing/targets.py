"""Our own targets: what the product's protocols gain over the papers', and whether errors are true.

Every ratio compares settings that were measured in the same run on the same clients.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tacit.privacy.noise import NoNoise
from tacit.protocols.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.fedauc import FedAUC
from tacit.protocols.rank_noise import RESPONSE
from tacit.reproducing.dpauc_tables import LAPLACE_THRESHOLDS, paper_laplace
from tacit.reproducing.fedauc_tables import ADAPTIVE
from tacit.reproducing.figures import NAMES
from tacit.reproducing.measuring import IID, NON_IID, Bench, Job, Split, centre, quotient, spread
from tacit.reproducing.rows import Target
from tacit.running.evaluating import repeat_findings
from tacit.running.simulation import simulate

EPSILONS = (1.0, 2.0, 4.0, 8.0)
CLIENTS = (10, 458, 4_584, 45_840)

AGAINST_ADAPTIVE = {(1.0, 10): 0.68, (1.0, 458): 0.76, (1.0, 4_584): 0.90}
"""By epsilon and clients, IID: the most that influence may have of the adaptive deviation."""

AGAINST_ADAPTIVE_STAIRCASE = {**AGAINST_ADAPTIVE, (8.0, 10): 0.30, (8.0, 458): 0.30}
"""The same for staircase noise, which gains more at a large epsilon."""

AGAINST_BETTER = 1.12
"""The most that influence may have, anywhere, of the better of adaptive and response."""

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

    def deviation(protocol: FedAUC, of: Split = split) -> float:
        return spread(bench.estimates(protocol, of))

    row = f"eps={epsilon:g} {NAMES[split.by]} K={split.clients}"
    response = bench.once(
        ("response", epsilon), lambda: deviation(FedAUC(epsilon, RESPONSE), Split())
    )
    adaptive, staircase = deviation(ADAPTIVE(epsilon)), deviation(FedAUC(epsilon))
    better = quotient(staircase, min(adaptive, response))
    column = "influence staircase / better of RR and adaptive Laplace"
    found = [Target(table, row, column, better, at_most=AGAINST_BETTER)]
    if split.by != IID:
        return found
    setting = (epsilon, split.clients)
    if setting in AGAINST_ADAPTIVE_STAIRCASE:
        bound, ours = AGAINST_ADAPTIVE_STAIRCASE[setting], quotient(staircase, adaptive)
        column = "influence staircase / adaptive Laplace"
        found.append(Target(table, row, column, ours, at_most=bound))
    if setting in AGAINST_ADAPTIVE:
        ours = quotient(deviation(FedAUC(epsilon, "laplace")), adaptive)
        column = "influence Laplace / adaptive Laplace"
        found.append(Target(table, row, column, ours, at_most=AGAINST_ADAPTIVE[setting]))
    return found


def histogram(table: str) -> list[Job]:
    """The noisy histogram against the paper's noisy confusion counts, at epsilon 1."""
    return [
        Job(partial(_histogram, table, Split(clients)), records=clients)
        for clients in HISTOGRAM_CLIENTS
    ]


def _histogram(table: str, split: Split, bench: Bench) -> list[Target]:
    row = f"eps=1 T={LAPLACE_THRESHOLDS} K={split.clients}"
    printed = spread(bench.estimates(paper_laplace(1.0), split))
    found = []
    for adjacency in ("record", "label"):
        ours = DPAUC(1.0, LAPLACE_THRESHOLDS, "histogram", adjacency=adjacency)
        tight = DPAUC(1.0, LAPLACE_THRESHOLDS, "laplace", accounting="tight", adjacency=adjacency)
        estimates = bench.estimates(ours, split)
        deviation = spread(estimates)
        plain = float(simulate(bench.clients(split), ours, NoNoise()).findings.value)
        bias = quotient(abs(centre(estimates) - plain), deviation)
        if adjacency == "record":
            column = "std of Laplace, paper accounting (label) / histogram (record)"
            found.append(Target(table, row, column, quotient(printed, deviation), at_least=10))
        column = f"std of Laplace, tight accounting ({adjacency}) / histogram ({adjacency})"
        gain = quotient(spread(bench.estimates(tight, split)), deviation)
        found.append(Target(table, row, column, gain, at_least=3))
        column = f"|mean - noiseless area| / std of histogram ({adjacency})"
        found.append(Target(table, row, column, bias, at_most=0.3))
    return found


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
    protocols = {
        f"{mechanism} influence": FedAUC(epsilon, mechanism)
        for mechanism in ("staircase", "discrete-laplace", "laplace")
    }
    protocols["gaussian influence"] = FedAUC(epsilon, "gaussian", delta=DELTA)
    protocols["laplace adaptive"] = ADAPTIVE(epsilon)
    protocols["laplace orthogonal"] = FedAUC(epsilon, "laplace", allocation="orthogonal")
    protocols["laplace fixed"] = FedAUC(epsilon, "laplace", allocation="fixed")
    protocols[RESPONSE] = FedAUC(epsilon, RESPONSE)
    return {f"FedAUC eps={epsilon:g} {name}": own for name, own in protocols.items()}


def _dpauc_mechanisms(epsilon: float) -> dict[str, Protocol]:
    """Every mechanism; the paper's forms with clamped counts and without."""
    gaussian = partial(DPAUC, epsilon, mechanism="gaussian", delta=DELTA)
    protocols = {
        "histogram (record)": DPAUC(epsilon),
        "histogram (label)": DPAUC(epsilon, adjacency="label"),
        "laplace (record)": DPAUC(epsilon, mechanism="laplace"),
        "laplace (record) unclamped": DPAUC(epsilon, mechanism="laplace", clamp=False),
        "gaussian (record)": gaussian(),
        "gaussian (record) unclamped": gaussian(clamp=False),
        f"{RESPONSE} (label)": DPAUC(epsilon, mechanism=RESPONSE, adjacency="label"),
    }
    return {f"DPAUC eps={epsilon:g} {name}": own for name, own in protocols.items()}


def _coverage(
    table: str, name: str, protocol: Protocol, split: Split, bench: Bench
) -> list[Target]:
    found = repeat_findings(
        bench.clients(split), protocol, bench.repeats, bench.seed(protocol, split)
    )
    predicted = quotient(float(np.sqrt(np.mean(found.privacy_error**2))), spread(found.value))
    inside = found.covers(bench.exact(split), 0.95)
    row = f"{name} K={split.clients}"
    return [
        Target(table, row, "predicted / measured std", predicted, 0.9, 1.1),
        Target(table, row, "coverage of the 95 % interval", float(inside.mean()), 0.93, 0.97),
    ]
