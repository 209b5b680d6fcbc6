"""How a run by default divides epsilon between the figures of a report.

For every figure the noise in its sampling error, as the results state both, the median over runs,
beside what two aims gave before (``balance_before.json``): all of epsilon for the AUC, which was
the default, or for curves.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.special import expit, logit

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.protocol.conversation import Protocol
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.results.evaluation import Evaluation
from tacit_studies.measuring import Bench, Job
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import Floats, Labels

CLIENTS = 10

ADJACENCIES = ("record", "replace")

SPREAD, SLOPE, DISTORTION = 1.3, 0.9, 0.3
"""Of log-odds: their standard deviation, and a classifier's slope and noise about them."""

AUC = "AUC"

FIGURES = (
    "calibration_slope",
    "calibration_intercept",
    "observed_over_expected",
    "ici",
    "e50",
    "e90",
    "emax",
    "brier",
    "scaled_brier",
    "log_loss",
    "net_benefit_at_0.1",
    "net_benefit_at_0.2",
    "sensitivity_at_specificity_0.9",
    "specificity_at_sensitivity_0.9",
    "lift_of_top_0.1",
    "kolmogorov_smirnov",
)
"""Figures of a report beside the AUC, by their names among the measures."""

GOOD_SIGNAL = 0.5
"""Noise of the AUC in its sampling error, with all of epsilon for curves, up to which figures are
compared with what that gave."""

MAX_RATIO = 1.1
"""Largest ratio of a figure's noise to that."""

MAX_TOTAL, MAX_TOTAL_RATIO = 1.10, 1.05
"""The AUC's total error in its sampling error, or in that of the default before, if larger."""

MAX_BYTES, MAX_ROUNDS = 8_000, 4
"""Of a run of 40,000 records."""


@dataclass(frozen=True)
class Cell:
    """Records of a prevalence (of log-odds, before their spread) at an epsilon."""

    records: int
    prevalence: float
    epsilon: float

    @property
    def name(self) -> str:
        """As tables name it."""
        return f"{self.records:,} records, {self.prevalence:g}, epsilon {self.epsilon:g}"


CELLS = (
    Cell(1_000, 0.1, 1.0),
    Cell(1_000, 0.2, 3.0),
    Cell(4_000, 0.1, 0.3),
    Cell(4_000, 0.2, 1.0),
    Cell(40_000, 0.1, 0.1),
    Cell(40_000, 0.1, 1.0),
    Cell(40_000, 0.02, 1.0),
    Cell(400, 0.28, 1.0),
    Cell(400_000, 0.1, 0.1),
)

FOR_AUC = Cell(40_000, 0.1, 1.0)
"""The cell that is measured with the other aim, too."""

REAL_EPSILONS = (0.1, 1.0)
"""At which records of a file are measured, too."""


def patients(cell: Cell, seed: int) -> tuple[Floats, Labels]:
    """Scores and labels: log-odds are normal, and a classifier distorts them."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(logit(cell.prevalence), SPREAD, cell.records)
    labels = (rng.random(cell.records) < expit(truth)).astype(np.int8)
    distorted = 0.2 + SLOPE * truth + DISTORTION * rng.normal(size=cell.records)
    return np.asarray(expit(distorted)), labels


def balance(table: str) -> list[Job]:
    """Every cell at both adjacencies, and the records of a file; one cell with the other aim."""
    return [
        *(
            Job(partial(_balanced, table, adjacency, cell))
            for adjacency in ADJACENCIES
            for cell in (*CELLS, *REAL_EPSILONS)
        ),
        Job(partial(_for_auc, table, FOR_AUC)),
    ]


def _for_auc(table: str, cell: Cell, bench: Bench) -> list[Measured]:
    """What all other figures pay where the AUC alone is the aim."""
    ratios, _ = measured_ratios(partial(ScoreHistogram, aim="auc"), "record", cell, bench)
    return [
        Row(table, f"{cell.name}, record, aim auc", figure, None, ratio)
        for figure, ratio in ratios.items()
    ]


def _balanced(table: str, adjacency: Any, cell: Cell | float, bench: Bench) -> list[Measured]:
    if isinstance(cell, float) and bench.source.real is None:
        return []
    name = cell.name if isinstance(cell, Cell) else f"records of the file, epsilon {cell:g}"
    row = f"{name}, {adjacency}"
    ratios, runs = measured_ratios(ScoreHistogram, adjacency, cell, bench)
    before = before_of(row)
    auc, curves = (before.get(aim, {}) for aim in ("auc", "curves"))
    made: list[Measured] = [
        Row(table, row, f"{figure} (paper: aim curves before)", curves.get(figure), ratio)
        for figure, ratio in ratios.items()
    ]
    total = math.hypot(1.0, ratios[AUC])
    default = auc.get(AUC, math.nan)
    if math.isfinite(default):
        allowed = max(MAX_TOTAL, MAX_TOTAL_RATIO * math.hypot(1.0, default))
        made.append(Target(table, row, "AUC, total / sampling error", total, at_most=allowed))
    if curves.get(AUC, math.inf) <= GOOD_SIGNAL:
        made += [
            Target(table, row, f"{figure} / before", ratios[figure] / value, at_most=MAX_RATIO)
            for figure, value in curves.items()
            if figure != AUC and math.isfinite(value)
        ]
    sent = max(float(np.max(run.traffic.bytes_sent)) for run in runs)
    rounds = max(run.traffic.rounds for run in runs)
    if isinstance(cell, Cell) and cell.records <= 40_000:
        made.append(Target(table, row, "bytes of a client", sent, at_most=MAX_BYTES))
    made.append(Target(table, row, "rounds", float(rounds), at_most=MAX_ROUNDS))
    return made


def measured_ratios(
    kind: Callable[..., Protocol], adjacency: str, cell: Cell | float, bench: Bench
) -> tuple[dict[str, float], list[Evaluation]]:
    """Every figure's noise in its sampling error, median over runs, NaN where most have none."""
    runs = []
    for index in range(bench.repeats):
        seed = bench.seed("balance", cell, index)
        if isinstance(cell, Cell):
            scores, labels = patients(cell, seed)
            epsilon = cell.epsilon
        else:
            real = bench.source.real
            if real is None:
                raise ValueError("records of a file need one: add --scores")
            scores, labels, epsilon = real.scores, real.labels, cell
        clients = Clients.split(scores, labels, clients=CLIENTS, by="uniform", seed=index)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runs.append(
                evaluate(clients, kind(epsilon=epsilon, adjacency=adjacency), seed=seed + 1)
            )
    every = [_ratios(run) for run in runs]
    return {name: _median([each[name] for each in every]) for name in (AUC, *FIGURES)}, runs


def _ratios(run: Evaluation) -> dict[str, float]:
    """Of one run; NaN where it gives no figure."""
    measures = run.measures.by_name if run.histogram is not None else {}
    known = {name: measures.get(name) for name in FIGURES} | {AUC: run.auc}
    return {
        name: float(each.privacy_error) / float(each.sampling_error)
        if each is not None and math.isfinite(each.value) and each.sampling_error > 0
        else math.nan
        for name, each in known.items()
    }


def _median(ratios: list[float]) -> float:
    """Those of runs without a figure count as the largest."""
    ordered = sorted(math.inf if math.isnan(each) else each for each in ratios)
    middle = ordered[len(ordered) // 2]
    return middle if math.isfinite(middle) else math.nan


def before_of(row: str) -> Mapping[str, dict[str, float]]:
    """What the aims before gave in a row: median ratios of 32 runs by figure, by aim."""
    stored = json.loads(files("tacit_studies.floors").joinpath("balance_before.json").read_text())
    return {
        aim: {figure: math.nan if value is None else value for figure, value in rows[row].items()}
        for aim, rows in stored.items()
        if row in rows
    }
