"""Tables I to III and figures 2 and 3 of Baykara et al. 2024: the AUC under homomorphic encryption.

Real scores are taken as they are where a size of table I equals their number: on the paper's own
scores they give its printed digits. For every other size, synthetic records have the printed exact
AUC; half of them are positive, since the paper prints no class sizes. Where counts are few the
noise of DPAUC leaves denominators near zero, so that neither the paper's mean nor its deviation has
a limit.

Aggregator times are of the processor, in the thread that computes. The paper's were taken on
another machine, so their ratio compares two machines as well as two methods.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit.data.splitting import binormal_scores
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.noise import NoNoise
from tacit.protocols.encrypted.hidden import MALICIOUS, SEMI_HONEST, HiddenAUC
from tacit.protocols.encrypted.protocol import EncryptedAUC
from tacit.protocols.published.dpauc import Laplace, PublishedDPAUC
from tacit.protocols.published.fhe.packing import cumulative_counts
from tacit.protocols.published.fhe.protocol import Bfv, FheAUC
from tacit.running.evaluating import exact_auc, repeat
from tacit.running.simulation import simulate
from tacit_studies.measuring import Bench, Job, centre, quotient, standard_deviation
from tacit_studies.references import encrypted as paper
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import EvaluationSet

ALLOWED = 1e-6
"""Maximum difference between a result and the same sum without encryption."""

FEWER_BYTES = 10.0
"""Our target: the minimum ratio of the paper's bytes of a client to ours."""

POINTS = (25, 50, 100, 150, 200)
"""Figure 2: numbers of decision points."""

PARTIES = (5, 15, 25, 50, 75, 100)
"""Figure 3: numbers of parties."""

ADVERSARIES = (SEMI_HONEST, MALICIOUS)
VARIANTS: Mapping[str, Callable[..., HiddenAUC]] = {
    SEMI_HONEST: FheAUC,
    MALICIOUS: partial(FheAUC, scheme=Bfv(MALICIOUS)),
    "ckks": partial(FheAUC, scheme="ckks"),
    "masked": EncryptedAUC,
    "masked, malicious": partial(EncryptedAUC, adversary=MALICIOUS),
}
"""Protocols by the name of a column: ciphertexts of both schemes, and masked values."""

TIMES = 3
"""Number of runs, of whose times the median is taken."""

RECORDS = 20_000
"""Number of records for bytes and times, which do not depend on it."""


def accuracy(table: str, blocks: tuple[paper.Block, ...]) -> list[Job]:
    """Tables I and II: our AUC, DPAUC's, and the exact one, by size and number of points."""
    return [Job(partial(_exact, table, block), records=block.records) for block in blocks] + [
        Job(partial(_line, table, block, points), records=block.records)
        for block in blocks
        for points in block.cells
    ]


def _exact(table: str, block: paper.Block, bench: Bench) -> list[Measured]:
    area = exact_auc(_dealt(block, bench))
    return [Row(table, f"M={block.records}", "exact", block.exact, area)]


def _line(table: str, block: paper.Block, points: int, bench: Bench) -> list[Measured]:
    """One line of the paper's table, and how far encryption moves the AUC."""
    clients, printed = _dealt(block, bench), block.cells[points]
    row = f"M={block.records} N={points}"
    plain = plain_area(clients, points)
    areas = {name: encrypted_area(clients, points, name) for name in VARIANTS}
    rows: list[Measured] = [Row(table, row, "plain, same thresholds", None, plain)]
    rows += [
        Row(table, row, f"ours, {name}", printed.encrypted, area) for name, area in areas.items()
    ]
    worst = max(abs(area - plain) for area in areas.values())
    rows.append(Target(table, row, "ours - plain, the largest", worst, at_most=ALLOWED))
    for epsilon, pair in zip(paper.EPSILONS, printed.dpauc, strict=True):
        noisy = PublishedDPAUC(epsilon, points, Laplace("paper", "plain"), "label", EVEN)
        estimates = repeat(clients, noisy, bench.repeats, bench.seed(row, epsilon))
        column = f"DPAUC eps={epsilon:g}"
        rows.append(Row(table, f"{row} mean", column, pair[0], centre(estimates)))
        rows.append(Row(table, f"{row} std", column, pair[1], standard_deviation(estimates)))
    return rows


def _dealt(block: paper.Block, bench: Bench) -> Clients:
    """The records of a size, dealt out to the paper's parties."""

    def made() -> Clients:
        real, seed = bench.source.real, bench.seed("encrypted", block.records, block.exact)
        scores, labels = (
            (real.scores, real.labels)
            if real is not None and real.records == block.records
            else bench.source.draw(_half(block), 0, seed)
        )
        return Clients.split(scores, labels, paper.PARTIES, seed=seed)

    return bench.once(("encrypted", block.records, block.exact), made)


def _half(block: paper.Block) -> EvaluationSet:
    positives = block.records // 2
    return EvaluationSet(positives, block.records - positives, (block.exact,))


def plain_area(clients: Clients, points: int) -> float:
    """The trapezoid sum of all counts, without encryption (Baykara et al. 2024, section IV-C)."""
    counts = cumulative_counts(clients, np.linspace(0.0, 1.0, points))
    rising, falling = counts.rising.sum(axis=1), counts.falling.sum(axis=1)
    pairs = int(counts.positives.sum()) * int(counts.negatives.sum())
    return int(np.dot(rising, falling)) / (2 * pairs)


def encrypted_area(clients: Clients, points: int, variant: str) -> float:
    """The AUC that the whole conversation gives.

    Parameters
    ----------
    variant : one of ``VARIANTS``.
    """
    return float(
        simulate(clients, _protocol(points, variant, clients), NoNoise()).server_result.value
    )


def _protocol(points: int, variant: str, clients: Clients) -> Any:
    return VARIANTS[variant](points, most_records=clients.records, scale=EVEN)


def traffic(table: str) -> list[Job]:
    """Table III: megabytes that a client sends, and that the aggregator receives."""
    return [
        Job(partial(_sent, table, variant, clients))
        for variant in VARIANTS
        for clients in paper.TABLE_3_CLIENTS
    ]


def _sent(table: str, variant: str, parties: int, bench: Bench) -> list[Measured]:
    """One line of table III; the first client sends keys too, and on masked values boxes of one."""
    clients = _federation(parties)
    protocol = _protocol(paper.POINTS, variant, clients)
    sent = simulate(clients, protocol, NoNoise()).bytes_sent / 1e6
    row, printed = (
        f"{variant} K={parties}",
        paper.TABLE_3[MALICIOUS if protocol.checked else SEMI_HONEST],
    )
    usual = float(np.median(sent))
    fewer = "paper's / ours, a client"
    return [
        Row(table, row, "a client, MB", printed, usual),
        Row(table, row, "the client that makes the keys, MB", None, float(sent[0])),
        Row(table, row, "server side, MB", parties * printed, float(sent.sum())),
        # CKKS has the paper's own layout
        Row(table, row, fewer, None, printed / usual)
        if variant == "ckks"
        else Target(table, row, fewer, printed / usual, at_least=FEWER_BYTES),
    ]


def by_points(table: str) -> list[Job]:
    """Figure 2: the aggregator's seconds at 15 parties, by number of decision points."""
    return [Job(partial(_points, table, adversary)) for adversary in ADVERSARIES]


def _points(table: str, adversary: str, bench: Bench) -> list[Measured]:
    medians = [aggregator_seconds(paper.PARTIES, points, adversary) for points in POINTS]
    rows: list[Measured] = [
        Row(table, f"{adversary} N={points}", "seconds", None, seconds)
        for points, seconds in zip(POINTS, medians, strict=True)
    ]
    claim = f"claim: grows with log N, N={POINTS[-1]} / N={POINTS[0]}"
    return [*rows, Row(table, adversary, claim, None, quotient(medians[-1], medians[0]))]


def by_parties(table: str) -> list[Job]:
    """Figure 3: the aggregator's seconds at 100 decision points, by number of parties."""
    return [Job(partial(_parties, table))]


def _parties(table: str, bench: Bench) -> list[Measured]:
    rows: list[Measured] = []
    last = {}
    for adversary in ADVERSARIES:
        medians = [aggregator_seconds(parties, paper.POINTS, adversary) for parties in PARTIES]
        rows += [
            Row(table, f"{adversary} K={parties}", "seconds", _printed(adversary, parties), seconds)
            for parties, seconds in zip(PARTIES, medians, strict=True)
        ]
        claim = "claim: linear in K, correlation"
        line = float(np.corrcoef(PARTIES, medians)[0, 1])
        rows.append(Row(table, adversary, claim, None, line))
        last[adversary] = medians[-1]
    printed = paper.SECONDS["malicious"] / paper.SECONDS["semi-honest"]
    twice = quotient(last["malicious"], last["semi-honest"])
    row = f"K={PARTIES[-1]}"
    return [*rows, Row(table, row, "claim: almost double, malicious / semi-honest", printed, twice)]


def _printed(adversary: str, parties: int) -> float | None:
    return paper.SECONDS[adversary] if parties == PARTIES[-1] else None


def aggregator_seconds(parties: int, points: int, adversary: str) -> float:
    """Median processor seconds of several runs, from all parties' bytes to the answer's bytes."""
    clients = _federation(parties)
    protocol = _protocol(points, adversary, clients)
    party = protocol.scheme_party(os.urandom(32), os.urandom(16), parties)
    counts = cumulative_counts(clients, np.linspace(0.0, 1.0, points))
    uploads = party.uploads(counts, range(parties))
    aggregator = protocol.scheme_aggregator(party.evaluation_keys())

    def timed() -> float:
        start = time.thread_time()
        aggregator.answers(uploads)
        return time.thread_time() - start

    return statistics.median(timed() for _ in range(TIMES))


def _federation(parties: int) -> Clients:
    scores, labels = binormal_scores(RECORDS // 2, RECORDS // 2, 0.75, seed=0)
    return Clients.split(scores, labels, parties, seed=0)
