"""A million phones in the local model, in a process of its own: seconds and peak memory."""

from __future__ import annotations

import resource
import time

import tacit
from benchmarks.timing import row

CLIENTS, HEIGHT = 1_000_000, 10


def million_phones() -> str:
    """One simulated local histogram of so many one-record clients."""
    scores, labels = tacit.binormal_scores(CLIENTS // 2, CLIENTS - CLIENTS // 2, 0.75, seed=0)
    clients = tacit.Clients.split(scores, labels, CLIENTS, seed=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    protocol = tacit.ScoreHistogram("local", 5.0, HEIGHT)
    result = tacit.evaluate(clients, protocol, seed=1)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    note = f"height {HEIGHT}, {CLIENTS:,} clients; peak {peak:.0f} MiB, {before:.0f} before; "
    return row("ScoreHistogram, local", seconds, f"{note}estimate {result.auc.value:.4f}")


if __name__ == "__main__":
    print(million_phones(), flush=True)
