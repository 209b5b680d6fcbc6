"""Run every benchmark: ``python -m benchmarks [--scores FILE] [--quick]``.

``python -m benchmarks.federation`` takes minutes and is run by itself.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import tacit
from benchmarks.hierarchical import server_side
from benchmarks.timing import clock, paired, row
from tacit.privacy.mechanisms import DiscreteLaplace, Staircase
from tacit.privacy.noise import SimulatedNoise, SystemNoise

RECORDS, POSITIVES = 458_407, 117_317
APART = (
    ("local_histogram",),
    ("encrypted",),
    ("paper_layout",),
    ("cheating", "--tries", "5"),
    ("secure_sum",),
)
"""Benchmarks in processes of their own, with their arguments."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scores", type=Path, help="a file of real scores and labels")
    parser.add_argument("--only-simulation", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    scores, labels = load(options.scores)
    if options.only_simulation:
        one_record_clients(scores, labels)
        return
    print(f"{scores.size:,} records; times in seconds, medians of paired runs")
    exact_against_scikit_learn(scores, labels)
    in_separate_process(options.scores)
    repetitions(scores, labels)
    exact_samplers()
    print("\n".join(server_side()), flush=True)
    for module, *arguments in APART:
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments], check=True)


def load(path: Path | None) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    if path is not None:
        clients = tacit.read(path)
        return clients.scores, clients.labels
    return tacit.binormal_scores(POSITIVES, RECORDS - POSITIVES, auc=0.75, seed=0)


def exact_against_scikit_learn(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> None:
    """The whole conversation, from arrays to the estimate, against ``roc_auc_score``."""

    def exact_area() -> float:
        clients = tacit.Clients.from_arrays(scores, labels)
        return tacit.evaluate(clients, tacit.ExactAUC()).auc.value

    def scikit_learn_area() -> float:
        return float(roc_auc_score(labels, scores))

    difference = abs(exact_area() - scikit_learn_area())
    seconds, peer_seconds, ratio = paired(exact_area, scikit_learn_area, times=15)
    report(
        "ExactAUC, arrays to result",
        seconds,
        f"roc_auc_score {peer_seconds:.3f}, ratio {ratio:.2f}",
    )
    print(f"  values differ by {difference:.1e}; target ratio at most 1.0")


def in_separate_process(scores: Path | None) -> None:
    """One-record clients, apart from the rest so that peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks", "--only-simulation"]
    subprocess.run(command + (["--scores", str(scores)] if scores else []), check=True)


def one_record_clients(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> None:
    """One simulated evaluation in which every record is a client."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    clients = tacit.Clients.split(scores, labels, clients=scores.size, seed=0)
    start = time.perf_counter()
    result = tacit.evaluate(clients, tacit.FedAUC(epsilon=1.0), seed=1)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note = f"{clients.count:,} clients; peak {peak:.0f} MiB, of which {before:.0f} before"
    report("FedAUC, one record a client", seconds, note)
    sort = median(lambda: np.argsort(scores, kind="stable"), 5)
    print(f"  {seconds / sort:.1f} times one argsort; estimate {result.auc.value:.4f}")


def repetitions(scores: NDArray[np.float64], labels: NDArray[np.int8]) -> None:
    """100 repetitions of adaptive Laplace at 45,840 clients, against its noise draws alone."""
    clients = tacit.Clients.split(scores, labels, clients=45_840, seed=0)
    protocol = tacit.PublishedFedAUC(1.0)
    rng = np.random.default_rng(0)
    seconds, bare, ratio = paired(
        lambda: tacit.repeat(clients, protocol, times=100, seed=1),
        lambda: rng.laplace(size=(100, 2 * clients.count)),
        times=3,
    )
    note = f"NumPy's Laplace draws alone {bare:.3f}, ratio {ratio:.2f}"
    report("100 x adaptive Laplace, 45,840 clients", seconds, note)


def exact_samplers() -> None:
    """Exact noise from the operating system against simulated noise of the same distribution."""
    shape = (10_000,)
    system, simulated = SystemNoise(), SimulatedNoise(0)
    for name, mechanism in (
        ("discrete Laplace", DiscreteLaplace(2, 1.0)),
        ("staircase", Staircase(1000, 1.0)),
    ):
        seconds, peer_seconds, ratio = paired(
            partial(system.draw, mechanism, shape),
            partial(simulated.draw, mechanism, shape),
            times=3,
        )
        report(
            f"10,000 exact {name} draws",
            seconds,
            f"simulated {peer_seconds:.4f}, ratio {ratio:.0f}",
        )


def median(work: Callable[[], object], times: int) -> float:
    return statistics.median(clock(work) for _ in range(times))


def report(name: str, seconds: float, note: str) -> None:
    print(row(name, seconds, note), flush=True)


if __name__ == "__main__":
    main()
