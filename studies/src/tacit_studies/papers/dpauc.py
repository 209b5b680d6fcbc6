"""The tables of Sun et al. 2022b: DPAUC's mean and standard deviation.

Its tables 2 and 3 are in Sun et al. 2022a, too.

The paper's budget is ``epsilon = 4 T epsilon'`` for T thresholds, and protects labels. Values that
it computes with TensorFlow are left out.
"""

from __future__ import annotations

from functools import partial

from tacit.metrics.cells.score_scale import EVEN
from tacit.protocols.published.dpauc import Laplace, PublishedDPAUC, RandomisedResponse
from tacit_studies.measuring import IID, NON_IID, Bench, Job, Split, centre, standard_deviation
from tacit_studies.references import dpauc as paper
from tacit_studies.rows import Row

SETTINGS = {"IID": IID, "Non-IID": NON_IID}

RESPONSE_THRESHOLDS = 200
LAPLACE_THRESHOLDS = 100


def paper_laplace(epsilon: float, thresholds: int = LAPLACE_THRESHOLDS) -> PublishedDPAUC:
    """The paper's protocol: Laplace noise, clamped counts, and its own accounting."""
    return PublishedDPAUC(epsilon, thresholds, Laplace("paper"), "label", EVEN)


def response_estimates(table: str) -> list[Job]:
    """Table 1: randomised response with 200 thresholds; it does not depend on the clients."""
    return [
        _job(
            table,
            PublishedDPAUC(epsilon, RESPONSE_THRESHOLDS, RandomisedResponse(), "label", EVEN),
            Split(epoch=epoch),
            f"epoch {epoch}",
            pair,
        )
        for epoch, pairs in enumerate(paper.TABLE_1)
        for epsilon, pair in zip(paper.EPSILONS, pairs, strict=True)
    ] + [
        Job(partial(_exact, table, Split(epoch=epoch), printed))
        for epoch, printed in enumerate(paper.EXACT)
    ]


def by_setting(table: str) -> list[Job]:
    """Table 4: Laplace noise, by epoch, setting and number of clients."""
    return [
        _job(
            table,
            paper_laplace(epsilon),
            Split(clients, SETTINGS[setting], epoch),
            f"epoch {epoch} {setting} K={clients}",
            pair,
        )
        for epoch, settings in enumerate(paper.TABLE_4)
        for (setting, clients), pairs in settings.items()
        for epsilon, pair in zip(paper.EPSILONS, pairs, strict=True)
    ]


def by_thresholds(table: str) -> list[Job]:
    """Table 5: Laplace noise at 10 IID clients, by epoch and number of thresholds."""
    return [
        _job(
            table,
            paper_laplace(epsilon, thresholds),
            Split(10, IID, epoch),
            f"epoch {epoch} T={thresholds}",
            pair,
        )
        for epoch, rows in enumerate(paper.TABLE_5)
        for thresholds, pairs in rows.items()
        for epsilon, pair in zip(paper.EPSILONS, pairs, strict=True)
    ]


def _job(table: str, protocol: PublishedDPAUC, split: Split, row: str, printed: paper.Pair) -> Job:
    return Job(partial(_estimate, table, protocol, split, row, printed), records=split.clients)


def _estimate(
    table: str, protocol: PublishedDPAUC, split: Split, row: str, printed: paper.Pair, bench: Bench
) -> list[Row]:
    estimates = bench.estimates(protocol, split)
    column = f"eps={protocol.epsilon:g}"
    return [
        Row(table, f"{row} mean", column, printed[0], centre(estimates)),
        Row(table, f"{row} std", column, printed[1], standard_deviation(estimates)),
    ]


def _exact(table: str, split: Split, printed: float, bench: Bench) -> list[Row]:
    """The exact AUC beside scikit-learn's, which agree because the scores were shifted so."""
    return [Row(table, f"epoch {split.epoch}", "exact", printed, bench.exact(split))]
