"""Joint computations between processes: ``python -m benchmarks.two_party [--pairs N ...]``.

Seconds and megabytes of noisy AUC pairs between two parties, and of ranks among two and three, all
processes on this machine: from the beginning of the session to its last share, then with starting
and linking the processes, and the processor time of all of them.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace

import numpy as np
from tests.running.mpc.federations import answer_mpc

from benchmarks.timing import row
from tacit.data.clients import Clients
from tacit.data.ragged import Ragged
from tacit.local.paired.kernels import GRIDS, paired_values
from tacit.local.paired.mpc import seated_pairs
from tacit.local.paired.protocol import PairedUStatistic, compute_pairs
from tacit.protocol.steps import Query, Reply, View
from tacit.protocols.fedauc.hidden_ranks import rank_together
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.running.mpc.transport import Session

PAIRS = (10_000, 100_000)
SCORES = (10_000,)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_party", description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="*", default=PAIRS)
    parser.add_argument("--scores", type=int, nargs="*", default=SCORES)
    parser.add_argument("--kernels", nargs="*", default=("auc",), choices=tuple(GRIDS))
    parser.add_argument("--noise", default="laplace", choices=("laplace", "randomised-response"))
    options = parser.parse_args()
    for pairs in options.pairs:
        for kernel in options.kernels:
            print(measured_pairs(pairs, kernel, options.noise), flush=True)
    for scores in options.scores:
        for parties in (2, 3):
            print(measured_ranks(scores, parties), flush=True)


def measured_pairs(pairs: int, kernel: str, noise: str) -> str:
    """All pairs are between the two parties, each of which holds one record of every pair."""
    clients = federation(2 * pairs, 2)
    rng = np.random.default_rng(1)
    seats = np.concatenate([2 * rng.permutation(pairs), 2 * rng.permutation(pairs) + 1])
    protocol = PairedUStatistic(kernel, 1.0, matchings=1, noise=noise)
    each = {"seats": Ragged(seats[np.newaxis], clients.offsets)}
    query = Query(compute_pairs, protocol, {"epsilon": 1.0}, each, View.MPC)
    reply, sessions, times = answered(clients, query)
    first, second = seated_pairs(seats)
    rows = protocol.rows(clients)
    exact = paired_values(kernel, rows[:, first], rows[:, second]).mean()
    pair = protocol.pair_noise(1.0)
    estimate = float(pair.debiased(np.asarray(reply["values"])).mean())
    errors = (estimate - exact) / np.sqrt(pair.variance(1.0) / pairs)
    name = f"{pairs:,} pairs, {kernel}, {noise}"
    return described(name, sessions, times, f"; {errors:+.1f} standard errors off")


def measured_ranks(scores: int, parties: int) -> str:
    protocol = FedAUC(1.0, trust="mpc")
    clients = federation(scores, parties)
    _, sessions, times = answered(clients, Query(rank_together, protocol, view=View.MPC))
    return described(f"ranks of {scores:,} scores, {parties} parties", sessions, times, "")


def federation(records: int, clients: int) -> Clients:
    rng = np.random.default_rng(0)
    labels = (rng.random(records) < 0.25).astype(np.int8)
    scores = np.clip(rng.normal(0.4 + 0.15 * labels, 0.15), 0, 1)
    owners = np.arange(records) * clients // records
    made = Clients.from_arrays(scores, labels, owners, second=np.round(scores, 1))
    return replace(made, simulated=True)


def answered(clients: Clients, query: Query) -> tuple[Reply, tuple[Session, ...], str]:
    start, spent = time.perf_counter(), processor_seconds()
    reply, sessions = answer_mpc(clients, query, timeout=600, silent=False)
    seconds, processor = time.perf_counter() - start, processor_seconds() - spent
    return reply, sessions, f"{seconds:.1f} s with processes, {processor:.1f} s of processor time"


def processor_seconds() -> float:
    """Of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def described(name: str, sessions: tuple[Session, ...], times: str, note: str) -> str:
    session = max(sessions, key=lambda each: each.seconds)
    return row(name, session.seconds, f"{session.bytes_sent / 1e6:.1f} MB; {times}{note}")


if __name__ == "__main__":
    main()
