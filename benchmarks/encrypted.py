"""EncryptedAUC's bytes and aggregator: ``python -m benchmarks.encrypted [--parties 15 100 1000]``.

Masked values and ciphertexts, beside the paper's layout of 100 parties in the same run.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256

import numpy as np

import tacit
from benchmarks.paper_layout import CHAINS, printed_side
from benchmarks.paper_layout import federation as few_parties
from benchmarks.timing import clock, row
from tacit.crypto.homomorphic.schemes import BfvEvaluator, bfv_parameters
from tacit.data.clients import Clients
from tacit.privacy.noise import NoNoise
from tacit.protocols.encrypted.masked_scheme import MaskedScheme, class_cells
from tacit.protocols.encrypted.masked_sides import MaskedAggregator, MaskedParty
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.published.fhe.bfv import ExactAggregator, ExactParty, ExactScheme
from tacit.protocols.published.fhe.packing import Scale, cumulative_counts
from tacit.protocols.published.fhe.protocol import Bfv, FheAUC
from tacit.running.simulation import simulate

THRESHOLDS, TIMES = 100, 3
BESIDE, MANY_THRESHOLDS = 100, 10_000
TARGETS = defaultdict(
    lambda: "none", {(100, 100): "0.010 s", (1000, 100): "0.1 s", (100, 10_000): "0.2 s"}
)
"""What the aggregator's seconds are to be, by parties and thresholds."""
CONVERSED_TARGETS = {
    "masked, semi-honest": "; target 3,500 and 8,000",
    "masked, malicious": "; target 7,000 and 12,000",
}
"""What a client may send, in the median and at most."""
PARTIES = (15, 100, 1000)
MAX_MEMORY = 4.0
"""GiB."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.encrypted", description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=PARTIES)
    print(f"{THRESHOLDS} thresholds but where stated; times in seconds, medians of {TIMES} runs")
    for parties in parser.parse_args().parties:
        for checked in (False, True):
            print("\n".join(masked(parties, THRESHOLDS, checked)), flush=True)
            print("\n".join(measured(parties, checked)), flush=True)
    print("\n".join(masked(BESIDE, MANY_THRESHOLDS)), flush=True)
    print("\n".join([*conversed(), *printed()]), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory {peak:.2f} GiB, all parties in this process; target {MAX_MEMORY:g}")


def measured(parties: int, checked: bool) -> list[str]:
    """A party's work, the aggregator's reading and computing apart, and decryption.

    Computing does not depend on the number of parties, so it is timed on one party's ciphertexts.
    """
    scheme = ExactScheme(THRESHOLDS, Scale(2**20), checked, perturbed=True)
    party = ExactParty(scheme, os.urandom(32), os.urandom(16), parties)
    counts = cumulative_counts(federation(parties), np.linspace(0.0, 1.0, THRESHOLDS))
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


def masked(parties: int, thresholds: int, checked: bool = False) -> list[str]:
    """A party's work, and the aggregator's from all bytes received to all bytes sent."""
    scheme = MaskedScheme(thresholds, 2**20, checked=checked)
    party = MaskedParty(scheme, os.urandom(16), os.urandom(16), parties, pair_key)
    cells = class_cells(federation(parties), np.linspace(0.0, 1.0, thresholds))
    first = cells[0][:, :1], cells[1][:, :1]
    uploads = party.uploads(*cells, range(parties))
    aggregator = MaskedAggregator(scheme, party.session)
    answering = median(lambda: aggregator.answer(uploads))
    answer = aggregator.answer(uploads)
    name = f"{parties:,} parties, masked{' and proved' * checked}, {thresholds:,}"
    target = TARGETS[parties, thresholds]
    sizes = f"{answering:.5f} s, target {target}; {len(uploads[0]):,} bytes of counts a party"
    return [
        row(f"{name}: aggregator", answering, sizes),
        row(f"{name}: one party masks", median(lambda: party.uploads(*first, [0])), ""),
        row(f"{name}: opening", median(lambda: party.decrypted(answer)), ""),
    ]


def pair_key(party: int, other: int) -> bytes:
    """In a session it is agreed by X25519, which takes 0.1 ms for each neighbour."""
    return sha256(b"%d %d" % (min(party, other), max(party, other))).digest()


def conversed() -> list[str]:
    """What clients send in a whole conversation, all four messages."""
    clients, lines = federation(BESIDE), []
    for name, protocol in (
        ("masked, semi-honest", EncryptedAUC(THRESHOLDS, scale="even")),
        ("masked, malicious", EncryptedAUC(THRESHOLDS, "malicious", scale="even")),
        ("ciphertexts, semi-honest", FheAUC(THRESHOLDS, scale="even")),
        ("ciphertexts, malicious", FheAUC(THRESHOLDS, Bfv("malicious"), scale="even")),
    ):
        made = simulate(clients, protocol, NoNoise())
        sent, area = made.bytes_sent, float(made.server_result.value)
        target = CONVERSED_TARGETS.get(name, "")
        lines.append(
            f"  {name}: {np.median(sent):,.0f} bytes a client (median), {sent.max():,} (most)"
            f"{target}; AUC {area:.7f}"
        )
    return lines


def printed() -> list[str]:
    """The paper's layout, written with TenSEAL, at as many parties."""
    lines = []
    for name, chain in CHAINS.items():
        side = printed_side(few_parties(), chain, 1)
        size = f"{side.upload_bytes:,} bytes a party"
        lines.append(row(f"{BESIDE} parties, {name}", median(side.work), size))
    return lines


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
