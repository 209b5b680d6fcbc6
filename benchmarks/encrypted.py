"""The aggregator of EncryptedAUC: ``python -m benchmarks.encrypted [--parties 15 100 1000]``."""

from __future__ import annotations

import argparse
import os
import resource
import statistics
from collections.abc import Callable

import numpy as np

import tacit
from benchmarks.timing import clock, row
from tacit.crypto.homomorphic.bfv import BfvEvaluator, bfv_parameters
from tacit.data.clients import Clients
from tacit.protocols.encrypted.bfv import ExactAggregator, ExactParty, ExactScheme
from tacit.protocols.encrypted.packing import Scale, cumulative_counts

THRESHOLDS, SHARES, TIMES = 100, 4, 3
PARTIES = (15, 100, 1000)
MAX_MEMORY = 4.0
"""GiB."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encrypted", description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=PARTIES)
    print(f"{THRESHOLDS} thresholds; times in seconds, medians of {TIMES} runs")
    for parties in parser.parse_args().parties:
        for checked in (False, True):
            print("\n".join(measured(parties, checked)), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory {peak:.2f} GiB, all parties in this process; target {MAX_MEMORY:g}")


def measured(parties: int, checked: bool) -> list[str]:
    """A party's work, the aggregator's reading and computing apart, and decryption.

    Computing does not depend on the number of parties, so it is timed on one party's ciphertexts.
    """
    scheme = ExactScheme(THRESHOLDS, Scale(2**20), checked, SHARES, perturbed=True)
    party = ExactParty(scheme, os.urandom(32), os.urandom(16), parties)
    counts = cumulative_counts(federation(parties), THRESHOLDS)
    keys = party.evaluation_keys()
    uploads = party.uploads(counts, range(parties))
    aggregator = ExactAggregator(scheme, keys)
    reading = median(lambda: totals(keys, uploads, scheme.runs))
    computing = median(lambda: aggregator.answers(uploads[:1]))
    answers = aggregator.answers(uploads)
    sizes = [sum(map(len, upload)) for upload in uploads]
    key_bytes = sum(map(len, keys))
    name = f"{parties:,} parties, " + ("malicious" if checked else "semi-honest")
    return [
        row(f"{name}: read and add", reading, f"{max(sizes):,} bytes up a party"),
        row(f"{name}: compute and answer", computing, f"{sum(map(len, answers)):,} bytes"),
        row(f"{name}: one party encrypts", median(lambda: party.uploads(counts, [0])), ""),
        row(f"{name}: decryption", median(lambda: party.decrypted(answers)), ""),
        row(f"{name}: making keys", median(party.evaluation_keys), f"{key_bytes:,} bytes"),
    ]


def federation(parties: int) -> Clients:
    scores, labels = tacit.binormal_scores(117_317, 341_090, auc=0.75, seed=0)
    return Clients.split(np.clip(scores, 0, 1), labels, parties, seed=0)


def totals(keys: list[bytes], uploads: list[list[bytes]], runs: int) -> None:
    for run in range(runs):
        evaluator = BfvEvaluator(bfv_parameters(run), keys)
        evaluator.total([each[run] for each in uploads])


def median(work: Callable[[], object]) -> float:
    return statistics.median(clock(work) for _ in range(TIMES))


if __name__ == "__main__":
    main()
