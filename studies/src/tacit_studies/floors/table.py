"""Errors beside their floors: the least errors that noise of the agreed privacy allows.

Both classes private, in one noisy sum: a record moves the AUC by at most ``max(A, 1-A) / m``, m the
smaller class, and its replacement by ``1 / m``. The floor is the mean absolute value of Laplace
noise of that sensitivity. Where each of K clients draws noise by itself, the standard deviation is
``sqrt(2 K)`` times as large. Labels private and scores public: a label moves the AUC by at most
``max(c, M - 1 - c) / (P N)``, with ``c = P - 1/2 + A (N - P)``; the floor is the standard deviation
of Laplace noise of that sensitivity, whatever the number of clients.

What is to be reached was set on the 458,407 Criteo scores; on others it is moved as the floor is.
Before is what one round on equal cells of [0, 1] reaches; of sums of ranks, a sum of each client.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from tacit.api import evaluate
from tacit.protocol.conversation import Protocol
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.running.evaluating import exact_auc
from tacit_studies.floors.rows import (
    MANY,
    MEAN,
    STD,
    Errors,
    Figure,
    beside,
    dealt,
    floor_of,
    records_of,
    sum_floor,
)
from tacit_studies.floors.scales import earlier_form, moved_and_mapped
from tacit_studies.measuring import Bench, Job, Split
from tacit_studies.rows import Beside, Measured

SUM_CLIENTS = 10
"""Number of clients of a sum over both classes; its error does not depend on it."""

SMALLER, AREA = 229_027, 0.745416
"""Criteo's smaller class and AUC, which what is to be reached was set for."""

RANKED_CLIENTS = (10, 458, 4_584)
RANKED_REACH = 1.1e-5 / 1.00726e-5
"""Largest ratio of the standard deviation of FedAUC by secure sum to its floor."""

MAX_BYTES = 4_000
"""Largest number of bytes that a client sends for an AUC by secure sum."""

UPLOAD = "distributed-dp, epsilon 1"
"""The row of the bytes."""

BEFORE = {"scale": "even", "second_round": 0.0}
"""The settings of earlier versions, which had no others by default."""


@dataclass(frozen=True)
class AsItIs:
    """A protocol on the scores as they are, with what is to be reached on Criteo.

    Parameters
    ----------
    name : the row.
    protocol : as it is by default.
    figure : a statistic of its errors.
    reach : the largest value of the figure on Criteo.
    clients : their number.
    noises : how many of them draw noise by themselves; 1 for a sum.
    """

    name: str
    protocol: Protocol
    figure: Figure
    reach: float
    clients: int = SUM_CLIENTS
    noises: int = 1

    def scaled(self, floor: float) -> float:
        """The floor of a sum's mean absolute error, as the floor of this figure."""
        return floor if self.figure == MEAN else floor * math.sqrt(2 * self.noises)

    @property
    def floor_on_criteo(self) -> float:
        """The floor where ``reach`` was set."""
        return self.scaled(sum_floor(self.protocol.guarantee, AREA, SMALLER))


EACH = ScoreHistogram("each", 1.0, aim="auc")
AS_IT_IS = (
    AsItIs(
        "distributed-dp, record, epsilon 1", ScoreHistogram(epsilon=1.0, aim="auc"), MEAN, 3.8e-6
    ),
    AsItIs(
        "distributed-dp, replace, epsilon 1",
        ScoreHistogram(epsilon=1.0, adjacency="replace", aim="auc"),
        MEAN,
        5.2e-6,
    ),
    AsItIs(
        "distributed-dp, record, epsilon 0.1", ScoreHistogram(epsilon=0.1, aim="auc"), MEAN, 4.5e-5
    ),
    AsItIs("each, epsilon 1, K=10", EACH, STD, 1.8e-5, 10, 10),
    AsItIs("each, epsilon 1, K=1,000", EACH, STD, 1.9e-4, 1_000, 1_000),
)


def floors(table: str) -> list[Job]:
    """The scores as they are, sums of ranks, other scales of one set of scores, and the bytes."""
    return [
        *(Job(partial(_as_it_is, table, case), case.clients, case.name) for case in AS_IT_IS),
        *(Job(partial(_of_ranks, table, count), count, _ranked(count)) for count in RANKED_CLIENTS),
        *moved_and_mapped(table, BEFORE),
        Job(partial(_upload, table), name=UPLOAD),
    ]


def _as_it_is(table: str, case: AsItIs, bench: Bench) -> list[Measured]:
    clients = dealt(records_of(bench), case.clients, bench)
    seed = bench.seed("floor", case.name)
    measured = Errors.of(case.protocol, clients, seed, MANY * bench.repeats)
    earlier = earlier_form(case.protocol, BEFORE)
    before = Errors.of(earlier, clients, seed, bench.repeats)
    floor = case.scaled(floor_of(case.protocol, clients))
    reach = case.reach * floor / case.floor_on_criteo
    return [beside((table, case.name, case.figure), measured, reach, floor, before)]


def _of_ranks(table: str, count: int, bench: Bench) -> list[Measured]:
    clients = bench.clients(Split(count))
    exact, (negatives, positives) = exact_auc(clients), np.bincount(clients.labels, minlength=2)
    centre = positives - 0.5 + exact * (negatives - positives)
    widest = max(centre, clients.records - 1 - centre)
    floor = float(math.sqrt(2) * widest / (positives * negatives))
    seed = bench.seed("floor, ranks", count)
    by_sum = FedAUC(1.0, trust="secure-sum")
    measured = Errors.of(by_sum, clients, seed, MANY * bench.repeats)
    before = Errors.of(FedAUC(1.0), clients, seed, bench.repeats)
    return [beside((table, _ranked(count), STD), measured, RANKED_REACH * floor, floor, before)]


def _ranked(count: int) -> str:
    """The row of a sum of ranks."""
    return f"FedAUC by secure sum, epsilon 1, K={count:,}"


def _upload(table: str, bench: Bench) -> list[Measured]:
    """What a client sends in one evaluation, masks and keys of the secure sum excepted."""
    clients = dealt(records_of(bench), SUM_CLIENTS, bench)
    protocol = ScoreHistogram(epsilon=1.0, aim="auc")
    sent, before = (
        float(evaluate(clients, settled, bench.seed("floor, bytes")).traffic.bytes_sent.max())
        for settled in (protocol, earlier_form(protocol, BEFORE))
    )
    reason = "" if sent <= MAX_BYTES else f"{sent:.0f} bytes of counts"
    return [
        Beside(
            table, UPLOAD, "bytes a client", sent, at_most=MAX_BYTES, before=before, reason=reason
        )
    ]
