"""Every table and figure that can be measured, by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tacit_studies import figures, targets
from tacit_studies.floors import (
    balance,
    compared,
    coverage_any_scale,
    curve_areas,
    measure_coverage,
    planning_grid,
    survival,
)
from tacit_studies.floors import bounded as bounded_scores
from tacit_studies.floors import table as floor
from tacit_studies.measuring import IID, NON_IID, Job, Table
from tacit_studies.papers import dpauc as dpauc_tables
from tacit_studies.papers import encrypted, federated, federated_figures, local_targets, ustatistics
from tacit_studies.papers import fedauc as fedauc_tables
from tacit_studies.references import encrypted as encrypted_paper
from tacit_studies.references import fedauc as paper

TARGET_REPEATS = 1_000
"""A ratio of two deviations is then known to about 3 %, and a coverage to about 0.7 points."""


def _table(
    name: str,
    description: str,
    jobs: Callable[..., list[Job]],
    *settings: Any,
    repeats: int = 100,
) -> Table:
    return Table(name, description, partial(jobs, name, *settings), repeats)


_FEDAUC_TABLES = (
    _table(
        "fedauc-table-1",
        "std of the AUC: randomised response, global, local and adaptive Laplace noise",
        fedauc_tables.deviations,
        paper.TABLE_1,
        paper.TABLE_1_CLIENTS,
    ),
    _table(
        "fedauc-table-2",
        "std of the AUC when class sizes are exact and only rank sums are noisy",
        fedauc_tables.deviations_with_class_sizes,
    ),
    _table(
        "fedauc-table-3",
        "AUC of labels flipped by randomised response, without debiasing",
        fedauc_tables.without_debiasing,
    ),
    _table(
        "fedauc-table-5",
        "mean and std of randomised response, small evaluation set",
        fedauc_tables.response_estimates,
        paper.TABLE_5,
        False,
    ),
    _table(
        "fedauc-table-6",
        "mean and std of randomised response, large evaluation set (slow)",
        fedauc_tables.response_estimates,
        paper.TABLE_6,
        True,
    ),
    _table(
        "fedauc-table-7",
        "table 1 with three more numbers of clients",
        fedauc_tables.deviations,
        paper.TABLE_7,
        paper.TABLE_7_CLIENTS,
    ),
    _table(
        "fedauc-table-8",
        "labels guessed from the highest scores: precision and recall",
        fedauc_tables.label_guessing,
    ),
    _table(
        "fedauc-table-9",
        "AUC of scores with Laplace noise",
        fedauc_tables.noise_on_scores,
    ),
)

_FEDAUC_FIGURES = (
    _table(
        "fedauc-figure-1a",
        "std of randomised response on the small and the large set (slow)",
        figures.data_size,
    ),
    _table(
        "fedauc-figure-1b",
        "std of local Laplace noise over alpha, 1,000 IID clients",
        figures.alpha_curves,
        (IID,),
    ),
    _table(
        "fedauc-figure-1c",
        "std of naive, orthogonal and adaptive allocation, non-IID",
        figures.allocations,
        NON_IID,
    ),
    _table(
        "fedauc-figure-4",
        "std of local Laplace noise over alpha, 1,000 non-IID clients",
        figures.alpha_curves,
        (NON_IID,),
    ),
    _table(
        "fedauc-figure-5",
        "std of local Laplace noise over alpha at epsilon 4, IID and non-IID",
        figures.alpha_curves,
        (NON_IID, IID),
        (4.0,),
    ),
    _table(
        "fedauc-figure-6",
        "std of naive, orthogonal and adaptive allocation, IID",
        figures.allocations,
        IID,
    ),
    _table(
        "fedauc-figure-8",
        "distribution of the adaptive allocation's beta over the clients",
        figures.adaptive_shares,
    ),
)

_DPAUC_TABLES = (
    _table(
        "dpauc-table-1",
        "mean and std of randomised response with 200 thresholds",
        dpauc_tables.response_estimates,
    ),
    _table(
        "dpauc-table-2",
        "labels guessed from the highest scores (as fedauc-table-8)",
        fedauc_tables.label_guessing,
    ),
    _table(
        "dpauc-table-3",
        "AUC of scores with Laplace noise (as fedauc-table-9)",
        fedauc_tables.noise_on_scores,
    ),
    _table(
        "dpauc-table-4",
        "mean and std of Laplace noise on counts: IID and non-IID, 10 and 1,000 clients",
        dpauc_tables.by_setting,
    ),
    _table(
        "dpauc-table-5",
        "mean and std of Laplace noise on counts, by number of thresholds",
        dpauc_tables.by_thresholds,
    ),
    _table(
        "dpauc-figure-3",
        "how both classes' scores are distributed",
        figures.score_densities,
    ),
)

_ENCRYPTED_TABLES = (
    _table(
        "fhe-table-1",
        "AUC under encryption, plain and by DPAUC, by size and thresholds",
        encrypted.accuracy,
        encrypted_paper.TABLE_1,
    ),
    _table(
        "fhe-table-2",
        "the same at the sizes and AUCs of the second data set",
        encrypted.accuracy,
        encrypted_paper.TABLE_2,
    ),
    _table(
        "fhe-table-3",
        "bytes that a client sends, by adversary and number of clients",
        encrypted.traffic,
    ),
    _table(
        "fhe-figure-2",
        "the aggregator's seconds by the number of thresholds, 15 parties",
        encrypted.by_points,
    ),
    _table(
        "fhe-figure-3",
        "the aggregator's seconds by the number of parties, 100 thresholds",
        encrypted.by_parties,
    ),
)

_USTATISTICS_FIGURES = (
    _table(
        "ustatistics-figure-3",
        "error of the hierarchical AUC protocol by domain size",
        ustatistics.figure_3,
        repeats=20,
    ),
    _table(
        "ustatistics-figure-4",
        "Kendall's tau: randomised response against two-party computation",
        ustatistics.figure_4,
        repeats=800,
    ),
)

_FEDERATED_TABLES = (
    _table(
        "federated-table-1",
        "error bounds by trust model against measured slopes",
        federated.table_1,
        repeats=20,
    ),
    _table(
        "federated-figure-2",
        "error of precision, recall and accuracy by the height of the tree",
        federated_figures.figure_2,
        repeats=10,
    ),
    _table(
        "federated-figure-3",
        "error of precision, recall and accuracy by the number of records",
        federated_figures.figure_3,
        repeats=10,
    ),
    _table(
        "federated-figure-4",
        "error of the AUC by the number of buckets, three trust models",
        federated_figures.figure_4,
        repeats=10,
    ),
    _table(
        "federated-figure-5",
        "calibration error by the number of bins",
        federated_figures.figure_5,
        repeats=10,
    ),
)

_TARGETS = (
    _table(
        "fedauc-influence",
        "our target: the influence allocation against the paper's methods (slow)",
        targets.influence,
        repeats=TARGET_REPEATS,
    ),
    _table(
        "dpauc-histogram",
        "our target: the noisy histogram against noisy confusion counts (slow)",
        targets.histogram,
        repeats=TARGET_REPEATS,
    ),
    _table(
        "coverage",
        "our target: predicted errors and 95 % intervals against repeated runs (slow)",
        targets.coverage,
        repeats=TARGET_REPEATS,
    ),
    _table(
        "score-histogram",
        "our target: errors of histograms and local reports, and of recalibration (slow)",
        local_targets.histogram,
    ),
    _table(
        "histogram-coverage",
        "our target: 95 % intervals of histograms and local reports (slow)",
        local_targets.coverage,
        repeats=500,
    ),
    _table(
        "floor",
        "our target: errors beside the least that noise of the agreed privacy allows",
        floor.floors,
        repeats=200,
    ),
    _table(
        "bounded",
        "our target: errors and coverage of bounded scores and of a regression's figures",
        bounded_scores.jobs,
        repeats=2_000,
    ),
    _table(
        "survival",
        "our target: errors and coverage of survival, the concordance and the log-rank difference",
        survival.jobs,
        repeats=2_000,
    ),
    _table(
        "balance",
        "our target: every figure's noise beside its sampling error, by default and before",
        balance.balance,
        repeats=32,
    ),
    _table(
        "curves",
        "our target: areas between private curves and the records' own, beside FedCurve's",
        curve_areas.areas,
        repeats=20,
    ),
    _table(
        "compared",
        "our target: the difference of two AUCs on private scores, against two evaluations",
        compared.comparisons,
        repeats=TARGET_REPEATS,
    ),
    _table(
        "coverage-any-scale",
        "our target: 95 % intervals on any scale of the scores, few clients and many (slow)",
        coverage_any_scale.grid,
        repeats=2_000,
    ),
    _table(
        "measures",
        "our target: every measure of a histogram: exact, estimate, error, coverage (slow)",
        measure_coverage.measures,
        repeats=2_000,
    ),
    _table(
        "planning-grid",
        "our target: planned errors against measured ones, on scores that the plan assumes (slow)",
        planning_grid.grid,
        repeats=200,
    ),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        *_FEDAUC_TABLES,
        *_FEDAUC_FIGURES,
        *_DPAUC_TABLES,
        *_ENCRYPTED_TABLES,
        *_USTATISTICS_FIGURES,
        *_FEDERATED_TABLES,
        *_TARGETS,
    )
}
"""Every table and figure, in the papers' order, then our own targets."""
