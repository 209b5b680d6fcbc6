"""EncryptedAUC with an epsilon: the error of the AUC by masked sums with noise, beside its floor.

A record moves the AUC by at most ``max(A, 1 - A) / m``, m the smaller class; the floor is the mean
absolute value of Laplace noise of that sensitivity. Where the noise of some parties may be known,
the others draw all of it, and the floor is still the one of noise that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from tacit.protocols.encrypted.protocol import Colluding, EncryptedAUC
from tacit.running.evaluating import exact_auc, repeat_results
from tacit_studies.floors.rows import MEAN, Errors, dealt, floor_of, records_of
from tacit_studies.measuring import Bench, Job
from tacit_studies.rows import Beside, Measured, Row
from tacit_studies.score_maps import AS_THEY_ARE, CROWDED, MOVED, TWO_DIGITS, ScoreMap

PARTIES = 15
"""The number of parties in most tables of Baykara et al. 2024."""

SMOOTH = (AS_THEY_ARE, CROWDED, MOVED[-1])

REACH = {0.1: 4.5e-5 / 3.25e-5, 1.0: 3.8e-6 / 3.25e-6}
"""Largest ratio of a mean absolute error to its floor, by epsilon, as of other sums over both
classes."""

COVERAGE, LEAST_COVERAGE = "coverage of the 95 % interval", 0.93
"""Where cells hide more than noise does, an interval covers more than 95 % of runs."""


@dataclass(frozen=True)
class Case:
    """Records on a scale, and how much of the noise may be known.

    Parameters
    ----------
    epsilon : the privacy budget of a record.
    score_map : the map of the scores.
    colluding : the part of the parties whose noise may be known.
    """

    epsilon: float
    score_map: ScoreMap
    colluding: float = 0.0

    @property
    def name(self) -> str:
        """The row."""
        colluding = f", {self.colluding:g} of parties collude" if self.colluding else ""
        return f"epsilon {self.epsilon:g}, {self.score_map.name}{colluding}"

    @property
    def reach(self) -> float | None:
        """The largest ratio to the floor; None where more than the noise of one sum remains."""
        return REACH[self.epsilon] if self.score_map in SMOOTH and not self.colluding else None


def cases() -> Iterator[Case]:
    """Smooth scores on three scales, rounded ones, and a fifth of the parties that collude."""
    for epsilon in REACH:
        yield from (Case(epsilon, score_map) for score_map in (*SMOOTH, TWO_DIGITS))
        yield Case(epsilon, AS_THEY_ARE, colluding=0.2)


def noisy_sums(table: str) -> list[Job]:
    """Every case: the mean absolute error beside its floor, and what intervals cover."""
    return [Job(partial(_measured, table, case), PARTIES, case.name) for case in cases()]


def _measured(table: str, case: Case, bench: Bench) -> list[Measured]:
    clients = case.score_map.mapped(dealt(records_of(bench), PARTIES, bench))
    protocol = EncryptedAUC(
        epsilon=case.epsilon, adversary=Colluding(case.colluding), most_records=clients.records
    )
    seed = bench.seed("noisy sums", case.epsilon, case.colluding)
    results = repeat_results(clients, protocol, bench.repeats, seed)
    exact, floor = exact_auc(clients), floor_of(protocol, clients)
    errors = Errors(np.asarray(results.value) - exact)
    covered = float(np.mean(results.covers(exact)))
    if case.reach is None:
        rows: list[Measured] = [Row(table, case.name, MEAN, None, errors.figure(MEAN))]
    else:
        size, most = errors.figure(MEAN), float(f"{case.reach * floor:.3g}")
        reason = "" if size <= most else errors.reason(MEAN, most)
        rows = [Beside(table, case.name, MEAN, size, at_most=most, floor=floor, reason=reason)]
    return [*rows, Beside(table, case.name, COVERAGE, covered, at_least=LEAST_COVERAGE)]
