"""Errors and coverage of the mean of bounded scores, and of every figure of a regression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.outcomes.bounded import BoundedMean
from tacit.outcomes.regression import RegressionError
from tacit.protocol.conversation import Protocol
from tacit.results.estimate import Estimate
from tacit.results.evaluation import Evaluation
from tacit.running.evaluating import repeat_results
from tacit_studies.measuring import Bench, Job
from tacit_studies.rows import Row, Target

SITES = 5
WITHIN = (0.93, 0.97)
MEANS = (0.5, 0.8)
REACH = {(1_000, 0.5): 9.2e-4, (10_000, 0.5): 9e-5, (1_000, 0.8): 1.45e-3, (10_000, 0.8): 1.4e-4}
"""The largest error at epsilon 1 under secure sums, by records and mean: 9e-4 at 1,000 and the
middle of the bounds, with what 2,000 runs leave open of a deviation."""

OUTCOMES, ERRORS = 20.0, 10.0
"""Standard deviations of outcomes and of errors, where values lie between 0 and 100."""

Measured = Row | Target


def jobs(table: str) -> list[Job]:
    """A job for each number of records and mean or trust."""
    scores = [
        Job(partial(_scores, table, size, mean), 0, f"scores, n={size:,}, mean {mean:g}")
        for size, mean in REACH
    ]
    regressions = [
        Job(partial(_regression, table, trust), 0, f"regression, {trust}")
        for trust in ("secure-sum", "each")
    ]
    return [*scores, *regressions]


def _sites(records: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(records) % SITES


def _scores(table: str, records: int, mean: float, bench: Bench) -> list[Measured]:
    """The mean of scores in [0, 1] at epsilon 1."""
    drawn = np.random.default_rng(bench.seed("scores", records, mean)).normal(mean, 0.15, records)
    clients = Clients.from_values(np.clip(drawn, 0.0, 1.0), client_ids=_sites(records))
    protocol: Protocol = BoundedMean((0.0, 1.0), 1.0)
    exact = protocol.exact(clients)
    runs = repeat_results(clients, protocol, bench.repeats, bench.seed("noise", records, mean))
    deviation, row = float(np.std(runs.value)), f"scores, n={records:,}, mean {mean:g}"
    ratio = deviation / float(np.mean(runs.privacy_error))
    return [
        Target(table, row, "standard deviation", deviation, at_most=REACH[records, mean]),
        Target(table, row, "observed / stated error", ratio, 0.9, 1.1),
        Target(table, row, "coverage", float(np.mean(runs.covers(exact))), *WITHIN),
    ]


def _regression(table: str, trust: str, bench: Bench, records: int = 20_000) -> list[Measured]:
    """Every figure of predictions of 20,000 outcomes in [0, 100] at epsilon 1."""
    source = np.random.default_rng(bench.seed("pairs"))
    outcome = source.normal(50.0, OUTCOMES, records)
    predicted = outcome + source.normal(1.0, ERRORS, records)
    clients = Clients.from_values(predicted, outcome, _sites(records))
    exact = _figures(evaluate(clients, RegressionError((0.0, 100.0), trust="exact-sum")))
    protocol = RegressionError((0.0, 100.0), 1.0, trust)
    runs = [
        _figures(evaluate(clients, protocol, seed=bench.seed("noise", trust, run)))
        for run in range(bench.repeats)
    ]
    made: list[Measured] = []
    for name, figure in exact.items():
        stated = [run[name] for run in runs]
        held = [low <= figure.value <= high for low, high in map(Estimate.interval, stated)]
        deviation = float(np.std([each.value for each in stated]))
        row = f"regression, {trust}, n={records:,}"
        made += [
            Row(table, row, f"{name}: standard deviation", None, deviation),
            Target(table, row, f"{name}: coverage", float(np.mean(held)), *WITHIN),
        ]
    return made


def _figures(result: Evaluation) -> Mapping[str, Estimate]:
    """All figures of a result by name."""
    others = {} if result.breakdown is None else result.breakdown.overall
    return {result.figure: result.estimate, **others}
