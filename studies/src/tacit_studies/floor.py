"""Errors beside their floors: the least errors that noise of the agreed privacy allows.

Both classes private, in one noisy sum: a record moves the AUC by at most ``max(A, 1-A) / m``, m the
smaller class, and its replacement by ``1 / m``. The floor is the mean absolute value of Laplace
noise of that sensitivity. Labels private and scores public: a label moves the AUC by at most
``max(c, M - 1 - c) / (P N)``, with ``c = P - 1/2 + A (N - P)``; the floor is the standard deviation
of Laplace noise of that sensitivity, whatever the number of clients.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from tacit.data.clients import Clients
from tacit.protocol.conversation import Protocol
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.running.evaluating import exact_auc, repeat
from tacit_studies.measuring import Bench, Job, Split
from tacit_studies.rows import Measured, Row, Target

SUM_CLIENTS = 10
"""Number of clients of a sum over both classes; its error does not depend on it."""

SECOND_ROUND = 0.9
"""Fraction of epsilon of the second round where only the AUC is wanted."""

SUMS = (("record", 1.0, 3.8 / 3.25), ("replace", 1.0, 5.2 / 4.4), ("record", 0.1, 4.5 / 3.25))
"""Adjacency, epsilon, and the largest ratio of the mean absolute error to its floor."""

RANKED_CLIENTS = (10, 458, 4_584)
MAX_RANKED_RATIO = 1.1
"""Largest ratio of the standard deviation of FedAUC by secure sum to its floor."""


def floors(table: str) -> list[Job]:
    """Sums over both classes, on the scores as they are, and sums of ranks at several sizes."""
    sums = [Job(partial(_of_sum, table, *setting)) for setting in SUMS]
    ranked = [
        Job(partial(_of_ranks, table, clients), records=clients) for clients in RANKED_CLIENTS
    ]
    return sums + ranked


def _of_sum(
    table: str, adjacency: str, epsilon: float, at_most: float, bench: Bench
) -> list[Measured]:
    clients = _as_they_are(bench)
    exact, smaller = exact_auc(clients), int(min(np.bincount(clients.labels, minlength=2)))
    width = max(exact, 1 - exact) if adjacency == "record" else 1.0
    protocol = ScoreHistogram(
        epsilon=epsilon,
        adjacency=adjacency,  # type: ignore[arg-type]
        second_round=SECOND_ROUND,
    )
    errors = _errors(protocol, clients, exact, bench)
    row = f"sum over clients, {adjacency}, epsilon {epsilon:g}"
    return _beside(
        table, row, "mean absolute error", errors[0], width / (epsilon * smaller), at_most
    )


def _of_ranks(table: str, count: int, bench: Bench) -> list[Measured]:
    clients = bench.clients(Split(count))
    exact, (negatives, positives) = exact_auc(clients), np.bincount(clients.labels, minlength=2)
    records = clients.records
    centre = positives - 0.5 + exact * (negatives - positives)
    floor = math.sqrt(2) * max(centre, records - 1 - centre) / (positives * negatives)
    errors = _errors(FedAUC(1.0, trust="secure-sum"), clients, exact, bench)
    row = f"sum of ranks, epsilon 1, K={count}"
    return _beside(table, row, "standard deviation", errors[1], float(floor), MAX_RANKED_RATIO)


def _as_they_are(bench: Bench) -> Clients:
    """The records of a file, unchanged, or the small evaluation set where there is no file."""
    real = bench.source.real
    if real is None:
        return bench.clients(Split(SUM_CLIENTS))
    seed = bench.seed("as they are")
    return bench.once(
        "as they are", lambda: Clients.split(real.scores, real.labels, SUM_CLIENTS, seed=seed)
    )


def _errors(
    protocol: Protocol, clients: Clients, exact: float, bench: Bench
) -> tuple[float, float]:
    """Mean absolute error and standard deviation of repeated estimates."""
    seed = bench.seed(protocol, clients.count)
    errors = repeat(clients, protocol, bench.repeats, seed) - exact
    return float(np.mean(np.abs(errors))), float(np.std(errors))


def _beside(
    table: str, row: str, figure: str, error: float, floor: float, at_most: float
) -> list[Measured]:
    """The error beside its floor, and their ratio as a target."""
    return [
        Row(table, row, f"{figure} (paper: floor)", floor, error),
        Target(table, row, f"{figure} / floor", error / floor, at_most=round(at_most, 3)),
    ]
