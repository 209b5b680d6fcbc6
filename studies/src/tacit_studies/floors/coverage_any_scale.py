"""Whether 95 % intervals cover the exact AUC on any scale, and stated errors are the measured ones.

Every protocol that draws noise and gives an interval, at few and at many clients, on scores as they
are, crowded at both ends, rounded to two digits, and on few records. Runs that give no figure are
left out, as users do not see them; a cell in which most runs give none is not judged.

Clients enter neither the law of a sum over all of them nor that of reports of single records whose
protocol does not ask for their number: those are measured at one number of clients. Where every
record draws a report, a part of the scores is taken, drawn at random once: noise of many reports is
slow to simulate. ``counted_runs`` simulates it by numbers of reports where it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tacit.data.clients import Clients
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.local.paired.protocol import PairedUStatistic
from tacit.local.two_round.protocol import TwoRoundAUC
from tacit.local.ustatistic.protocol import UStatistic
from tacit.protocol.conversation import Protocol
from tacit.protocols.dpauc import DPAUC
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.protocols.histogram.protocol import SUM_HEIGHT, ScoreHistogram
from tacit.results.figure import MIN_CLASS_SIZE_IN_ERRORS
from tacit.results.server_result import ServerResult
from tacit.running.evaluating import exact_auc
from tacit_studies.floors.counted_runs import simulated_results
from tacit_studies.floors.rows import dealt, records_of
from tacit_studies.measuring import Bench, Job, quotient
from tacit_studies.rows import Beside, Measured, Row
from tacit_studies.score_maps import AS_THEY_ARE, DENSE, TWO_DIGITS
from tacit_studies.small_records import breast_cancer, digits
from tacit_studies.sources import Floats

CLIENTS = (3, 10, 1_000)
RECORDS_A_CLIENT = 5
"""Least mean number of records of a client."""

DRAWN = 50_000
"""Largest number of records of protocols whose records each draw a report."""

WITHIN = (0.93, 0.97)
STATED = (0.85, 1.15)
"""Bounds of the coverage, and of the stated over the measured error where noise dominates."""

MOSTLY = 0.5
"""Least part of the runs that must give a figure for a cell to be judged."""

SHIFTED = 0.5
"""Least ratio of a mean error to the root mean square at which it explains a miss."""

COVERAGE, RATIO = "coverage of the 95 % interval", "stated / measured error"


@dataclass(frozen=True)
class Kind:
    """A protocol with the settings at which it is measured.

    Parameters
    ----------
    name : what rows call it.
    protocol : makes it for an epsilon.
    epsilons : its budgets.
    by_clients : whether their number matters for the error.
    most : the largest number of records, of which more are drawn from; None for all.
    """

    name: str
    protocol: Callable[[float], Protocol]
    epsilons: tuple[float, ...] = (1.0,)
    by_clients: bool = True
    most: int | None = None


ALL = (0.1, 1.0, 8.0)
LOCAL = (1.0, 5.0)
KINDS = (
    Kind("ScoreHistogram secure-sum record", partial(ScoreHistogram, "secure-sum"), ALL, False),
    Kind(
        "ScoreHistogram secure-sum replace",
        lambda epsilon: ScoreHistogram("secure-sum", epsilon, adjacency="replace"),
        by_clients=False,
    ),
    Kind(
        "ScoreHistogram secure-sum one round",
        lambda epsilon: ScoreHistogram("secure-sum", epsilon, SUM_HEIGHT),
        by_clients=False,
    ),
    Kind(
        "ScoreHistogram secure-sum record, aim auc",
        partial(ScoreHistogram, "secure-sum", aim="auc"),
        by_clients=False,
    ),
    Kind("ScoreHistogram each", partial(ScoreHistogram, "each"), ALL),
    Kind("ScoreHistogram local", partial(ScoreHistogram, "local"), LOCAL, False, DRAWN),
    Kind("DPAUC record", DPAUC, ALL),
    Kind("DPAUC replace", lambda epsilon: DPAUC(epsilon, adjacency="replace")),
    Kind("DPAUC label", lambda epsilon: DPAUC(epsilon, adjacency="label")),
    Kind("FedAUC each", FedAUC, ALL),
    Kind("FedAUC secure-sum", lambda epsilon: FedAUC(epsilon, trust="secure-sum"), ALL, False),
    Kind("TwoRoundAUC private", TwoRoundAUC, LOCAL, False, DRAWN),
    Kind("TwoRoundAUC public", lambda epsilon: TwoRoundAUC(epsilon, "public"), LOCAL, False, DRAWN),
    Kind("HierarchicalAUC", HierarchicalAUC, LOCAL, most=DRAWN),
    Kind("UStatistic auc", partial(UStatistic, "auc"), LOCAL, most=DRAWN),
    Kind("PairedUStatistic auc", partial(PairedUStatistic, "auc"), LOCAL, most=DRAWN),
)


def _mapped(score_map: Callable[[Clients], Clients], bench: Bench) -> Clients:
    return score_map(records_of(bench))


DATA: dict[str, Callable[[Bench], Clients]] = {
    "as they are": partial(_mapped, AS_THEY_ARE.mapped),
    DENSE.name: partial(_mapped, DENSE.mapped),
    TWO_DIGITS.name: partial(_mapped, TWO_DIGITS.mapped),
    "569 records": lambda bench: breast_cancer(),
    "1,797 records": lambda bench: digits(),
}
"""The records of the grid, by name."""

FEWEST = {"569 records": 569, "1,797 records": 1_797}
"""Numbers of records that are known before they are read."""


@dataclass(frozen=True)
class Cell:
    """One cell of the grid."""

    kind: Kind
    epsilon: float
    clients: int
    data: str

    @property
    def name(self) -> str:
        """The row."""
        name = f"{self.kind.name}, epsilon {self.epsilon:g}, K={self.clients:,}, {self.data}"
        if self.kind.most is None or self.data in FEWEST:
            return name
        return f"{name}, {self.kind.most:,} records"


def cells() -> Iterator[Cell]:
    """The grid: as many clients as the records allow."""
    for kind in KINDS:
        for epsilon in kind.epsilons:
            for data in DATA:
                for clients in CLIENTS if kind.by_clients else CLIENTS[1:2]:
                    if clients * RECORDS_A_CLIENT <= FEWEST.get(data, math.inf):
                        yield Cell(kind, epsilon, clients, data)


def grid(table: str) -> list[Job]:
    """The coverage and the stated error of every cell."""
    return [
        Job(partial(_cell, table, cell), cell.clients * RECORDS_A_CLIENT, cell.name)
        for cell in cells()
    ]


def _cell(table: str, cell: Cell, bench: Bench) -> list[Measured]:
    known = bench.once(("any scale", cell.data), lambda: DATA[cell.data](bench))
    clients = bench.once(
        ("any scale", cell.data, cell.clients, cell.kind.most),
        lambda: dealt(drawn(known, cell.kind.most, bench), cell.clients, bench),
    )
    results = simulated_results(
        clients, cell.kind.protocol(cell.epsilon), bench.repeats, bench.seed("any scale", cell.name)
    )
    return Judged.of(results, exact_auc(clients)).rows(table, cell.name)


def drawn(clients: Clients, most: int | None, bench: Bench) -> Clients:
    """So many of the records at random, the same of every scale; all where there are no more."""
    if most is None or clients.records <= most:
        return clients
    rng = np.random.default_rng(bench.seed("any scale", most))
    rows = np.sort(rng.choice(clients.records, most, replace=False))
    return Clients.from_arrays(clients.scores[rows], clients.labels[rows])


@dataclass(frozen=True, eq=False)
class Judged:
    """The runs of a cell that gave a figure.

    Parameters
    ----------
    errors : the centre of the interval less the exact figure.
    noise, cells : the stated errors by noise, and by what cells or thresholds hide.
    reach : half the widths of the stated intervals.
    runs : how many runs there were, with a figure or without.
    """

    errors: Floats
    noise: Floats
    cells: Floats
    reach: Floats
    runs: int

    @classmethod
    def of(cls, results: ServerResult, exact: float) -> Judged:
        """The runs whose figures would be published."""
        given = given_figures(results)
        noise, cells, reach = (
            np.broadcast_to(error, results.value.shape)
            for error in (results.privacy_error, results.approximation_error, results.reach())
        )
        errors = results.value - results.bias - exact
        return cls(errors[given], noise[given], cells[given], reach[given], results.value.size)

    @property
    def stated(self) -> float:
        """The root mean square of the stated errors."""
        return _root_mean_square(np.hypot(self.noise, self.cells))

    @property
    def coverage(self) -> float:
        """The part of the intervals that hold the exact figure; NaN without any."""
        if not self.errors.size:
            return math.nan
        return float(np.mean(np.abs(self.errors) <= self.reach))

    @property
    def judged(self) -> bool:
        """Whether enough runs gave a figure."""
        return self.errors.size >= MOSTLY * self.runs

    def rows(self, table: str, name: str) -> list[Measured]:
        """The coverage and the ratio; no target where most runs give no figure."""
        if not self.judged:
            part = self.errors.size / self.runs
            return [Row(table, name, "part of the runs that give a figure", None, part)]
        ratio = quotient(self.stated, _root_mean_square(self.errors))
        missed = not WITHIN[0] <= self.coverage <= WITHIN[1]
        reason = self.coverage_reason if missed else ""
        covered = Beside(table, name, COVERAGE, self.coverage, *WITHIN, reason=reason)
        if _root_mean_square(self.cells) > _root_mean_square(self.noise):
            return [covered, Row(table, name, f"{RATIO}, mostly by cells", None, ratio)]
        missed = not STATED[0] <= ratio <= STATED[1]
        reason = self.reason if missed else ""
        return [covered, Beside(table, name, RATIO, ratio, *STATED, reason=reason)]

    @property
    def reason(self) -> str:
        """The reason of a miss, from the errors."""
        root = _root_mean_square(self.errors)
        clauses = [f"stated {self.stated:.1e}, measured {root:.1e}"]
        if _root_mean_square(self.cells) > _root_mean_square(self.noise):
            clauses.append(f"{_root_mean_square(self.cells):.1e} of it for what cells hide")
        mean = float(np.mean(self.errors))
        if abs(mean) > SHIFTED * root:
            clauses.append(f"mean error {mean:.1e}")
        if self.errors.size < self.runs:
            clauses.append(f"{self.runs - self.errors.size} of {self.runs} runs give no figure")
        return ", ".join(clauses)

    @property
    def coverage_reason(self) -> str:
        """The same for a coverage, with whether more runs may move it over its bound."""
        bound = min(WITHIN, key=lambda each: abs(self.coverage - each))
        known = math.sqrt(bound * (1 - bound) / self.errors.size)
        if abs(self.coverage - bound) > 2 * known:
            return self.reason
        return f"{self.reason}, within what {self.errors.size} runs tell of the bound"


def given_figures(results: ServerResult) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which runs give a figure: the rule of ``ServerResult.published``, for all runs at once."""
    centre, reach = results.value - results.bias, results.reach()
    low, high = centre - reach, centre + reach
    least, most = results.limits
    smaller = np.minimum(results.positives, results.negatives)
    clear = smaller >= MIN_CLASS_SIZE_IN_ERRORS * np.asarray(results.positives_error)
    silent = ((low <= least) & (high >= most)) | (low > most) | (high < least)
    return np.asarray(np.isfinite(centre) & np.isfinite(reach) & clear & ~silent)


def _root_mean_square(errors: Floats) -> float:
    return math.sqrt(float(np.mean(errors**2))) if errors.size else math.nan
