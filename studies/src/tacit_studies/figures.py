"""The points of the papers' figures, and a row for every claim that the text makes about one.

The paper's text does not give the figures' values, so their rows have no paper's number. Curves
over a budget fraction are measured with the same random numbers at every fraction, so that luck
does not decide where the deviation is smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tacit.counts import allocating
from tacit.counts.rank_noise import RankNoise
from tacit.metrics.ranking import doubled_mid_ranks
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.published.fedauc import Fixed, Orthogonal, PublishedFedAUC
from tacit_studies.measuring import (
    IID,
    NON_IID,
    Bench,
    Job,
    Setting,
    Split,
    quotient,
    standard_deviation,
)
from tacit_studies.papers.fedauc import ADAPTIVE
from tacit_studies.references import fedauc as paper
from tacit_studies.rows import Row

BUDGET_FRACTIONS = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""The budget shares alpha and beta at which curves are measured."""

CURVE_EPSILONS = (1.0, 2.0, 4.0, 8.0)
"""Epsilons of Table 1; the paper's text does not say which ones figures 1b and 4 show."""

CURVE_CLIENTS = 1_000
"""Number of clients in figures 1b, 4 and 5."""

THOUSAND_RECORDS_EACH = 458
"""Figures 1c and 6 have 1,000 records a client; figure 8 does not say, and is taken alike."""

DECILES = tuple(range(0, 101, 10))

BINS = 50

NAMES: dict[Setting, str] = {IID: "IID", NON_IID: "Non-IID"}


def data_size(table: str) -> list[Job]:
    """Figure 1a: randomised response on the small and the large set."""
    return [Job(partial(_data_size, table, epsilon)) for epsilon in paper.TABLE_5]


def _data_size(table: str, epsilon: float, bench: Bench) -> list[Row]:
    small, large = (
        standard_deviation(bench.estimates(FedAUC(epsilon, trust="local"), Split(large=large)))
        for large in (False, True)
    )
    row = f"eps={epsilon:g}"
    return [
        Row(table, row, "small set", None, small),
        Row(table, row, "large set", None, large),
        Row(
            table,
            row,
            "claim: large/small = 1/sqrt(10)",
            paper.LARGE_TO_SMALL,
            quotient(large, small),
        ),
    ]


def alpha_curves(
    table: str, settings: Sequence[Setting], epsilons: Sequence[float] = CURVE_EPSILONS
) -> list[Job]:
    """Figures 1b, 4 and 5: LocalLaplace over alpha, the rank sum's fraction of the budget."""
    return [
        Job(partial(_alpha_curve, table, epsilon, by), records=CURVE_CLIENTS)
        for epsilon in epsilons
        for by in settings
    ]


def _alpha_curve(table: str, epsilon: float, by: Setting, bench: Bench) -> list[Row]:
    row = f"eps={epsilon:g} {NAMES[by]}"
    deviations = _curve(bench, Split(CURVE_CLIENTS, by), partial(_local, epsilon), row)
    points = _points(table, row, "alpha", deviations)
    low, high = paper.BEST_ALPHA
    best = BUDGET_FRACTIONS[int(np.argmin(deviations))]
    return [*points, Row(table, row, f"claim: best alpha in [{low}, {high}]", None, best)]


def allocations(table: str, by: Setting) -> list[Job]:
    """Figures 1c and 6: naive and orthogonal over their fraction, and adaptive, at epsilon 1."""
    return [Job(partial(_allocations, table, by), records=THOUSAND_RECORDS_EACH)]


def _allocations(table: str, by: Setting, bench: Bench) -> list[Row]:
    split = Split(THOUSAND_RECORDS_EACH, by)
    naive = _curve(bench, split, partial(_local, 1.0), table)
    orthogonal = _curve(bench, split, _orthogonal, table)
    adaptive = standard_deviation(bench.estimates(ADAPTIVE(1.0), split, draws=table))
    claimed = (
        ("claim: best orthogonal/best naive < 1", quotient(min(orthogonal), min(naive))),
        ("claim: adaptive/best orthogonal < 1", quotient(adaptive, min(orthogonal))),
    )
    return [
        *_points(table, "naive", "alpha", naive),
        *_points(table, "orthogonal", "beta", orthogonal),
        Row(table, "adaptive", "every client's own beta", None, adaptive),
        *(Row(table, NAMES[by], claim, None, ratio) for claim, ratio in claimed),
    ]


def _local(epsilon: float, alpha: float) -> PublishedFedAUC:
    return PublishedFedAUC(epsilon, allocation=Fixed(alpha))


def _orthogonal(beta: float) -> PublishedFedAUC:
    return PublishedFedAUC(1.0, allocation=Orthogonal(beta))


def _curve(
    bench: Bench, split: Split, protocol: Callable[[float], PublishedFedAUC], draws: str
) -> list[float]:
    """The deviation at every fraction, from the same random numbers."""
    return [
        standard_deviation(bench.estimates(protocol(fraction), split, draws=draws))
        for fraction in BUDGET_FRACTIONS
    ]


def _points(table: str, row: str, fraction: str, deviations: Sequence[float]) -> list[Row]:
    return [
        Row(table, row, f"{fraction}={at:g}", None, value)
        for at, value in zip(BUDGET_FRACTIONS, deviations, strict=True)
    ]


def adaptive_shares(table: str) -> list[Job]:
    """Figure 8: the distribution of the adaptive allocation's beta over the clients."""
    return [
        Job(partial(_adaptive_shares, table, by), records=THOUSAND_RECORDS_EACH)
        for by in (IID, NON_IID)
    ]


def _adaptive_shares(table: str, by: Setting, bench: Bench) -> list[Row]:
    clients = bench.clients(Split(THOUSAND_RECORDS_EACH, by))
    geometry = allocating.RankGeometry.of(clients.ragged(doubled_mid_ranks(clients.scores)))
    fraction = allocating.adaptive_allocation(geometry, RankNoise("laplace", 1.0)).fraction
    return [
        Row(table, NAMES[by], f"percentile {decile}", None, float(value))
        for decile, value in zip(DECILES, np.percentile(fraction, DECILES), strict=True)
    ]


def score_densities(table: str) -> list[Job]:
    """Figure 3 of Sun et al. 2022b: how both classes' scores are distributed."""
    return [Job(partial(_score_densities, table))]


def _score_densities(table: str, bench: Bench) -> list[Row]:
    scores, labels = bench.scored()
    classes = {"positives": scores[labels == 1], "negatives": scores[labels == 0]}
    edges = np.linspace(0.0, 1.0, BINS + 1)
    rows = [
        Row(table, name, f"[{low:.2f}, {low + 1 / BINS:.2f}]", None, float(count))
        for name, class_scores in classes.items()
        for low, count in zip(edges, np.histogram(class_scores, edges)[0], strict=False)
    ]
    lead = float(classes["positives"].mean() - classes["negatives"].mean())
    return [*rows, Row(table, "positives - negatives", "claim: mean score > 0", None, lead)]
