"""Our aggregator beside the paper's layout in one run: ``python -m benchmarks.paper_layout``.

In Baykara et al. 2024 a client sends four CKKS ciphertexts of ring degree 2^14 (section VII-C): T,
F and both totals, and all of it twice where the aggregator may cheat. Here it is written with
TenSEAL's vectors, on one thread, with two chains of primes: one about as long as the paper's
1.70 MB a ciphertext take, and the shortest that two multiplications with its 50-bit scale need.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tenseal  # type: ignore[import-untyped]

import tacit
from benchmarks.timing import paired, row
from tacit.data.clients import Clients
from tacit.protocols.encrypted.hidden import MALICIOUS, SEMI_HONEST
from tacit.protocols.published.fhe.packing import Counts, cumulative_counts
from tacit.protocols.published.fhe.protocol import Bfv, FheAUC

PARTIES, THRESHOLDS, SHARES, TIMES = 100, 100, 4, 3
EVEN = np.linspace(0.0, 1.0, THRESHOLDS)
DISTINCT = 10
"""Parties that encrypt; their ciphertexts are sent several times, which reads as slowly."""
DEGREE, SCALE = 2**14, 2.0**50
CHAINS = {
    "paper's layout": [60, 50, 50, 50, 50, 50, 60],
    "paper's layout, shortest chain": [60, 50, 50, 60],
}
FASTER, FEWER = 8.0, 10.0
"""What we aim at."""


@dataclass(frozen=True)
class Side:
    """One way to do it: what a party sends, what the aggregator does, and the AUC that it gives."""

    upload_bytes: int
    work: Callable[[], list[bytes]]
    area: Callable[[list[bytes]], float]


def main() -> None:
    print(f"{PARTIES} parties, {THRESHOLDS} thresholds; seconds, medians of {TIMES} paired runs")
    for adversary in (SEMI_HONEST, MALICIOUS):
        print("\n".join(compared(adversary)), flush=True)


def compared(adversary: str) -> list[str]:
    """Seconds from all bytes received to all bytes sent, and bytes a party, of all."""
    clients, lines = federation(), []
    packed = packed_side(clients, adversary)
    for name, chain in CHAINS.items():
        printed = printed_side(clients, chain, 1 + (adversary == "malicious"))
        areas = packed.area(packed.work()), printed.area(printed.work())
        assert abs(areas[0] - areas[1]) < 1e-5, areas
        quick, slow, ratio = paired(packed.work, printed.work, TIMES)
        note = f"{name} {slow:.3f}, {1 / ratio:.1f} times; target {FASTER:g}"
        lines.append(row(f"FheAUC, {adversary}", quick, note))
        fewer = printed.upload_bytes / packed.upload_bytes
        sizes = f"{packed.upload_bytes:,} bytes a party, {name} {printed.upload_bytes:,}"
        lines.append(f"  {sizes}, {fewer:.1f} times; target {FEWER:g}")
    return lines


def federation() -> Clients:
    """The records of ``DISTINCT`` parties."""
    scores, labels = tacit.binormal_scores(20_000, 40_000, auc=0.75, seed=0)
    return Clients.split(scores, labels, DISTINCT, seed=0)


def packed_side(clients: Clients, adversary: Any) -> Side:
    """FheAUC, of distinct parties: it would notice a repeated one."""
    protocol = FheAUC(THRESHOLDS, Bfv(adversary), most_records=PARTIES * 6_000)
    party = protocol.scheme_party(os.urandom(32), os.urandom(16), PARTIES)
    counts = repeated(cumulative_counts(clients, EVEN))
    uploads = party.uploads(counts, range(PARTIES))
    aggregator = protocol.scheme_aggregator(party.evaluation_keys())
    return Side(
        max(sum(map(len, upload)) for upload in uploads),
        lambda: aggregator.answers(uploads),
        lambda answers: float(party.decrypted(answers).value),
    )


def repeated(counts: Counts) -> Counts:
    """The counts of all parties: those of the distinct ones, several times."""
    times = PARTIES // DISTINCT
    return Counts(
        np.tile(counts.rising, times),
        np.tile(counts.falling, times),
        np.tile(counts.inside, times),
        np.tile(counts.positives, times),
        np.tile(counts.negatives, times),
    )


def printed_side(clients: Clients, chain: list[int], runs: int) -> Side:
    """The paper's layout; a second run does the same on as many slots as its shares take."""
    keys = tenseal.context(tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=chain, n_threads=1)
    keys.global_scale = SCALE
    keys.generate_galois_keys()
    public = tenseal.context_from(keys.serialize(save_secret_key=False), n_threads=1)
    slots = THRESHOLDS if runs == 1 else THRESHOLDS * SHARES
    uploads = paper_uploads(keys, cumulative_counts(clients, EVEN), slots)
    received = uploads * (PARTIES // DISTINCT)

    def work() -> list[bytes]:
        return [answer for _ in range(runs) for answer in paper_answers(public, received)]

    def area(answers: list[bytes]) -> float:
        opened = [tenseal.ckks_vector_from(keys, answer).decrypt()[0] for answer in answers[:2]]
        return float(opened[0] / opened[1])

    return Side(runs * max(sum(map(len, upload)) for upload in uploads), work, area)


def paper_uploads(keys: Any, counts: Counts, slots: int) -> list[list[bytes]]:
    """Four ciphertexts a party: T, F, and the totals of both classes, scaled to below 2."""
    unit = 2.0 / float(counts.positives.sum() + counts.negatives.sum())
    padding = np.zeros(slots - THRESHOLDS)
    made = []
    for index in range(DISTINCT):
        client_counts = counts.of(index)
        values = (
            np.concatenate([client_counts.rising, padding]),
            np.concatenate([client_counts.falling, padding]),
            client_counts.positives,
            client_counts.negatives,
        )
        made.append([tenseal.ckks_vector(keys, unit * part).serialize() for part in values])
    return made


def paper_answers(public: Any, uploads: list[list[bytes]]) -> list[bytes]:
    """Section IV-D1: add over parties, multiply, sum the slots, multiply by a secret c."""
    totals = [tenseal.ckks_vector_from(public, part) for part in uploads[0]]
    for upload in uploads[1:]:
        for total, part in zip(totals, upload, strict=True):
            total += tenseal.ckks_vector_from(public, part)  # noqa: PLW2901 -- added in place
    rising, falling, positives, negatives = totals
    secret = 1.0 + int.from_bytes(os.urandom(4), "little") / 2**32
    numerator = (rising * falling).sum() * [secret]
    denominator = (positives * negatives) * [2 * secret]
    return [numerator.serialize(), denominator.serialize()]


if __name__ == "__main__":
    main()
