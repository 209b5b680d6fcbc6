"""Errors and coverage of survival curves, of the concordance and of the log-rank difference."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tacit.api import evaluate
from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.outcomes.survival.protocol import TimeToEvent
from tacit.running.evaluating import repeat_results
from tacit_studies.measuring import Bench, Job
from tacit_studies.rows import Row, Target

SITES, UNTIL, PLACES = 5, 2.0, 20
LAST = 2.6
"""After all times: the concordance is that of all records."""

WITHIN = (0.93, 0.97)
CURVES = {228: 0.032, 4_000: 0.0023}
"""The largest error over 20 places at epsilon 1, by records: 0.0022 with what 2,000 runs leave."""

CONCORDANCES = {1_000: np.inf, 4_000: np.inf, 10_000: 6e-4, 40_000: 1.5e-4}
"""The largest error about the data."""

POPULATION = 1_000_000
DATA_SETS = 20
FALSE_ALARMS = (0.04, 0.07)

Measured = Row | Target


def jobs(table: str) -> list[Job]:
    """A job for each number of records, and one for the difference of groups."""
    curves = [Job(partial(_curve, table, size), 0, f"survival, n={size:,}") for size in CURVES]
    concordances = [
        Job(partial(_concordance, table, size), 0, f"concordance, n={size:,}")
        for size in CONCORDANCES
    ]
    return [*curves, *concordances, Job(partial(_difference, table), 0, "log-rank")]


def _drawn(seed: int, records: int) -> tuple[Floats, Floats, Integers]:
    """Risks, times and events: exponential times by risk, evenly censored."""
    source = np.random.default_rng(seed)
    risk = source.random(records)
    event, last = source.exponential(1 / (0.4 + 1.2 * risk)), source.uniform(0.3, 2.5, records)
    return risk, np.minimum(event, last), (event <= last).astype(np.int64)


def _clients(seed: int, records: int) -> Clients:
    risk, time, died = _drawn(seed, records)
    return Clients.from_arrays(risk, died, np.arange(records) % SITES, time)


def _kaplan_meier(times: Floats, died: Integers, places: Floats) -> Floats:
    """The estimate of distinct times."""
    order = np.argsort(times)
    left = 1 - died[order] * 1.0 / (times.size - np.arange(times.size))
    return np.append(1.0, np.cumprod(left))[np.searchsorted(times[order], places, side="right")]


def _curve(table: str, records: int, bench: Bench) -> list[Measured]:
    """The survival curve at epsilon 1 about that of the records, its band about the population."""
    places = np.linspace(0.0, UNTIL, PLACES + 1)[1:]
    _, times, died = _drawn(bench.seed("population"), POPULATION)
    truth, squares, held = _kaplan_meier(times, died, places), list[Any](), list[Any]()
    for run in range(bench.repeats):
        seed = bench.seed("curve", records, run)
        clients, (_, times, died) = _clients(seed, records), _drawn(seed, records)
        exact = _kaplan_meier(times, died, places)
        protocol = TimeToEvent(epsilon=1.0, until=UNTIL)
        result = evaluate(clients, protocol, seed=bench.seed("noise", records, run))
        curve = {} if result.breakdown is None else result.breakdown.curves
        if "survival" in curve:
            known = curve["survival"]
            first = known.places.size - 1
            squares.append((known.value[1:] - exact[:first]) ** 2)
            low, high = known.low[1:], known.high[1:]
            held.append(np.asarray((low <= truth[:first]) & (truth[:first] <= high), np.float64))
    row = f"survival, n={records:,}"
    error = float(np.sqrt(np.concatenate(squares).mean()))
    given = float(np.mean([each.size for each in squares])) / PLACES
    return [
        Target(table, row, "error about the data", error, at_most=CURVES[records]),
        Target(table, row, "coverage", float(np.concatenate(held).mean()), *WITHIN),
        Row(table, row, "part of the places that is given", None, given),
    ]


def _concordance(table: str, records: int, bench: Bench) -> list[Measured]:
    """The concordance at epsilon 1 about that of the records, of 20 data sets."""
    protocol, apart, held = TimeToEvent(epsilon=1.0, until=LAST), list[Any](), list[Any]()
    for data in range(DATA_SETS):
        clients = _clients(bench.seed("concordance", records, data), records)
        exact, seed = protocol.exact(clients), bench.seed("noise", records, data)
        runs = repeat_results(clients, protocol, max(bench.repeats // DATA_SETS, 1), seed)
        apart.append(np.ravel(runs.value - exact))
        held.append(np.ravel(runs.covers(exact)).astype(np.float64))
    row, error = f"concordance, n={records:,}", float(np.sqrt(np.mean(np.square(apart))))
    if not np.isfinite(CONCORDANCES[records]):
        return [Row(table, row, "error about the data", None, error)]
    return [
        Target(table, row, "error about the data", error, at_most=CONCORDANCES[records]),
        Target(table, row, "coverage", float(np.mean(held)), *WITHIN),
    ]


def _difference(table: str, bench: Bench, records: int = 1_000) -> list[Measured]:
    """How often two groups with one survival differ by the log-rank test, at epsilon 0.5."""
    alarms = []
    protocol = TimeToEvent(epsilon=0.5, until=UNTIL, group_names=("a", "b"))
    for run in range(bench.repeats):
        groups = Categories(("a", "b"), np.arange(records) // SITES % 2)
        clients = _clients(bench.seed("groups", run), records)
        clients = clients.with_categories(groups, np.arange(records) % SITES)
        result = evaluate(clients, protocol, seed=bench.seed("alarm", run))
        if result.breakdown is not None:
            low, high = result.breakdown.differences[0].estimate.interval(0.95, "population")
            alarms.append(not low <= 0 <= high)
    row = f"log-rank, n={records:,}, epsilon 0.5"
    return [Target(table, row, "type-I error", float(np.mean(alarms)), *FALSE_ALARMS)]
