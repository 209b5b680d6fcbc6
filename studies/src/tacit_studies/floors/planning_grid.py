"""Whether planned errors are the true ones: a grid of protocols, sizes, clients and epsilons.

Every cell draws its records from the shape that the plan assumes, anew for every few runs, and
compares the root mean square error about each data set's exact figure with the planned one. Real
scores are not used: the plan does not know them either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.metrics.ranking import auc
from tacit.planning.searching import best_settings, families
from tacit.protocol.conversation import Protocol
from tacit.protocol.forecast import AREA, ECE, Family, Metric
from tacit.protocol.scenario import Scenario, Shape
from tacit.protocols.histogram.figure_forecast import ece_of
from tacit.results.measures.catalogue import rates_at
from tacit.running.evaluating import repeat
from tacit_studies.measuring import Bench, Job, quotient
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import Floats
from tacit_studies.spelling import PLANNED_TRUSTS, table_settings

DATA_SETS = 50
"""Number of data sets among which the repetitions of a cell are divided."""

WITHIN, MIN_FRACTION_WITHIN = 0.2, 0.9
"""Largest relative error of a planned error in all but a tenth of the cells."""

PRECISION = "precision@0.3"

EVEN, CALIBRATED = Shape(0.8), Shape(0.75, "calibrated")

Sizes = tuple[int, int, int, float]
"""Records, positives, clients and epsilon."""


@dataclass(frozen=True)
class Kind:
    """Cells of one family.

    Parameters
    ----------
    trust : whose family it is.
    place : which one of the trust's in ``TITLES``.
    cells : the sizes.
    shape : the shape of the scores.
    metric : what is measured.
    """

    trust: str
    place: int
    cells: tuple[Sizes, ...]
    shape: Shape = EVEN
    metric: str = AREA


@dataclass(frozen=True)
class CellErrors:
    """A cell's planned and measured error."""

    planned: float
    measured: float

    @property
    def ratio(self) -> float:
        """Planned over measured."""
        return quotient(self.planned, self.measured)


FEW_CLIENTS: tuple[Sizes, ...] = (
    (2_000, 600, 10, 1.0),
    (4_000, 400, 40, 2.0),
    (10_000, 2_000, 10, 0.5),
    (10_000, 5_000, 100, 1.0),
    (20_000, 2_000, 50, 4.0),
)
LONE_CLIENTS: tuple[Sizes, ...] = (
    (2_000, 1_000, 2_000, 4.0),
    (5_000, 1_500, 5_000, 2.0),
    (10_000, 5_000, 10_000, 1.0),
    (20_000, 3_000, 20_000, 3.0),
    (20_000, 8_000, 20_000, 1.0),
)
KINDS = (
    Kind("server-sees-scores", 0, (*FEW_CLIENTS, (5_000, 1_500, 5_000, 2.0))),
    Kind("server-sees-scores", 1, FEW_CLIENTS[1:]),
    Kind("each", 0, FEW_CLIENTS),
    Kind("each", 0, FEW_CLIENTS[2:4], CALIBRATED),
    Kind("each", 1, FEW_CLIENTS[::2]),
    Kind("each", 2, FEW_CLIENTS[1:4]),
    Kind("each", 3, FEW_CLIENTS[1:4]),
    Kind("secure-sum", 0, FEW_CLIENTS),
    Kind("secure-sum", 0, FEW_CLIENTS[2:4], CALIBRATED),
    Kind("secure-sum", 1, FEW_CLIENTS[::2]),
    Kind("secure-sum", 2, FEW_CLIENTS[1:4]),
    Kind("secure-sum", 3, FEW_CLIENTS[1:4]),
    Kind("secure-sum", 0, FEW_CLIENTS[2:4], metric=PRECISION),
    Kind("secure-sum", 0, FEW_CLIENTS[2:4], metric=ECE),
    Kind("local", 0, LONE_CLIENTS),
    Kind("local", 1, LONE_CLIENTS[:4]),
    Kind("local", 2, LONE_CLIENTS),
    Kind("local", 3, LONE_CLIENTS),
    Kind("local", 4, LONE_CLIENTS),
    Kind("mpc", 0, LONE_CLIENTS[::2]),
    Kind("mpc", 0, FEW_CLIENTS[1::2]),
)
"""The grid; encrypted AUCs have no noise and are left to the tables of Baykara et al. 2024."""

TITLES = {
    "server-sees-scores": ("fedauc, each", "fedauc, local"),
    "each": (
        "dpauc, record",
        "dpauc, replace",
        "dpauc, label",
        "published-dpauc, randomised-response, label",
    ),
    "secure-sum": (
        "score-histogram, secure-sum, record, one round",
        "score-histogram, secure-sum, replace, one round",
        "score-histogram, exact-sum",
        "score-histogram, secure-sum, record, aim auc",
    ),
    "local": (
        "two-round-auc, window, private",
        "ustatistic",
        "two-round-auc, window, public",
        "hierarchical-auc",
        "score-histogram, local, replace",
    ),
    "mpc": ("paired-ustatistic",),
}
"""The titles of each trust's families, in the order in which ``Kind`` counts them."""


def grid(table: str) -> list[Job]:
    """Every cell's planned and measured error, and how many agree."""
    jobs = [
        Job(partial(_cell, table, kind, sizes), name=TITLES[kind.trust][kind.place])
        for kind in KINDS
        for sizes in kind.cells
    ]
    return [*jobs, Job(partial(_agreement, table))]


def cells() -> list[tuple[Kind, Sizes]]:
    """All cells of the grid."""
    return [(kind, sizes) for kind in KINDS for sizes in kind.cells]


def chosen(kind: Kind, sizes: Sizes) -> tuple[Scenario, Family, Protocol]:
    """The cell's scenario, and the settings that a plan which knows the shape would choose."""
    scenario = Scenario(*sizes)
    offered = families(kind.trust, scenario, Metric(kind.metric))
    title = TITLES[kind.trust][kind.place]
    family = next(each for each in offered if each.protocols[0].title == title)
    return scenario, family, best_settings(family, scenario, (kind.shape,))


def _cell(table: str, kind: Kind, sizes: Sizes, bench: Bench) -> list[Measured]:
    scenario, _, protocol = chosen(kind, sizes)
    errors = _cell_errors(kind, sizes, bench)
    row = _called(kind, scenario, protocol)
    bounds = (1 - WITHIN, 1 + WITHIN)
    return [
        Row(table, row, "planned error", None, errors.planned),
        Row(table, row, "measured error", None, errors.measured),
        Target(table, row, "planned / measured", errors.ratio, *bounds),
    ]


def _agreement(table: str, bench: Bench) -> list[Measured]:
    ratios = np.array([_cell_errors(*cell, bench).ratio for cell in cells()])
    fraction = float(np.mean(np.abs(ratios - 1) <= WITHIN))
    return [
        Target(
            table,
            f"all {ratios.size} cells",
            "share within 20 %",
            fraction,
            at_least=MIN_FRACTION_WITHIN,
        )
    ]


def _cell_errors(kind: Kind, sizes: Sizes, bench: Bench) -> CellErrors:
    def measured() -> CellErrors:
        scenario, family, protocol = chosen(kind, sizes)
        planned = family.forecast(protocol, scenario, kind.shape).error
        errors = _errors(kind, scenario, protocol, bench)
        return CellErrors(planned, math.sqrt(float(np.mean(errors**2))))

    return bench.once(("planning", kind, sizes), measured)


def _errors(kind: Kind, scenario: Scenario, protocol: Protocol, bench: Bench) -> Floats:
    """The errors about each data set's exact figure; runs without an estimate count as 1/2."""
    times = -(-bench.repeats // DATA_SETS)
    sets = range(-(-bench.repeats // times))
    run, errors = run_of(kind, scenario), []
    spelled = replace(kind, trust=PLANNED_TRUSTS.get(kind.trust, kind.trust))
    for number in sets:
        seed = bench.seed("planning", spelled, scenario, number)
        errors.append(run(scenario.drawn(kind.shape, seed), protocol, times, seed + 1))
    return np.nan_to_num(np.concatenate(errors), nan=0.5)


Runs = Callable[[Clients, Protocol, int, int], Floats]


def run_of(kind: Kind, scenario: Scenario) -> Runs:
    """The function that measures the errors of some runs on one data set, by the runs' seed."""
    if kind.metric == AREA:
        return _areas
    return partial(_figures, Metric(kind.metric), kind, scenario)


def _areas(clients: Clients, protocol: Protocol, times: int, seed: int) -> Floats:
    return repeat(clients, protocol, times, seed) - auc(clients.scores, clients.labels)


def _figures(
    metric: Metric,
    kind: Kind,
    scenario: Scenario,
    clients: Clients,
    protocol: Protocol,
    times: int,
    seed: int,
) -> Floats:
    """Errors of a histogram's precision, or of its calibration error about the population's."""
    calibration = metric.name == ECE
    if calibration:
        exact = ece_of(kind.shape, scenario)
    else:
        exact = float(np.mean(clients.labels[clients.scores >= metric.threshold]))
    errors = []
    for run_seed in np.random.SeedSequence(seed).generate_state(times, np.uint64):
        histogram = evaluate(clients, protocol, seed=int(run_seed)).histogram
        if histogram is None:
            value = math.nan
        elif calibration:
            value = histogram.debiased_ece().value
        else:
            value = rates_at(histogram, metric.threshold)["precision"].value
        errors.append(value - exact)
    return np.array(errors)


def _called(kind: Kind, scenario: Scenario, protocol: Protocol) -> str:
    shown = ("trust", "mechanism", "labels", "adjacency")
    settings, name = table_settings(protocol), protocol.name.removeprefix("published-")
    parts = [str(settings[name]) for name in shown if name in settings]
    parts += ["two rounds"] if TITLES[kind.trust][kind.place].endswith("aim auc") else []
    parts += [] if kind.metric == AREA else [kind.metric]
    parts += [kind.shape.form] if kind.shape.form != "even" else []
    return (
        f"{name} {' '.join(parts)} M={scenario.records} P={scenario.positives} "
        f"K={scenario.clients} eps={scenario.epsilon:g}"
    )
