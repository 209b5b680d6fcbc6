"""Whether 95 % intervals of all measures cover the records' own figures, and how large errors are.

The exact figures are those of the same records in the finest cells without noise. Where in its cell
a record lies is a part of the error, and is fixed for given records: records are drawn anew for
every few runs. A figure that most runs state as absent is not judged; the row says what part of the
runs give it. The band of the smooth calibration curve is judged where the population's is known.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy

from tacit.api import evaluate
from tacit.data.clients import Clients
from tacit.data.splitting import binormal_scores
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.results.estimate import Estimate
from tacit.results.evaluation import Evaluation
from tacit.results.measures.computing import CURVE_CELLS, calibration_curve
from tacit.results.measures.figures import too_few_records
from tacit_studies.measuring import WORKERS, Bench, Job
from tacit_studies.rows import Beside, Row, Target
from tacit_studies.sources import Floats

EPSILON, CLIENTS = 1.0, 10
SIZES = (4_000, 40_000)
WITHIN = (0.93, 0.97)
COVERAGE = "coverage of the 95 % interval"
DISTORTED = "distorted"
BAND = ("observed_low", "observed_high")
MOSTLY = 0.5
"""Least part of the runs that must give a figure for its coverage to be judged."""
RUNS_OF_RECORDS = 8
"""Runs with the same records."""
CHUNKS = 4
"""How many parts of the runs each process measures one after another."""
BAND_POINTS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Parts of the length of the smooth calibration curve at which its band is judged."""
SHIFT, FACTOR, CENTRE, SPREAD = 0.3, 0.8, -1.2, 1.2
"""Of the synthetic records: log-odds are normal, and scores distort them by ``0.3 + 0.8 x``."""

Measured = Row | Target


def distorted(records: int, seed: int) -> tuple[Floats, Floats]:
    """Synthetic scores whose log-odds are ``0.3 + 0.8 x``, x those of the labels' probability."""
    source = np.random.default_rng(seed)
    odds = source.normal(CENTRE, SPREAD, records)
    labels = (source.random(records) < scipy.special.expit(odds)).astype(np.float64)
    return scipy.special.expit(SHIFT + FACTOR * odds), labels


def _drawn(records: int, seed: int, bench: Bench) -> tuple[Floats, Floats]:
    """Records of the given scores, without replacement; binormal ones where none are given."""
    source = np.random.default_rng(seed)
    real = bench.source.real
    if real is None:
        scores, labels = binormal_scores(records // 4, records - records // 4, 0.75, seed=seed)
        return scores, labels.astype(np.float64)
    chosen = source.choice(real.records, min(records, real.records), replace=False)
    return real.scores[chosen], real.labels[chosen].astype(np.float64)


DATA: dict[str, Callable[[int, int, Bench], tuple[Floats, Floats]]] = {
    DISTORTED: lambda records, seed, bench: distorted(records, seed),
    "given scores": _drawn,
}
"""Both data sets by name."""


def measures(table: str, sizes: tuple[int, ...] = SIZES) -> list[Job]:
    """A job for each data set and number of records."""
    return [
        Job(partial(_cell, table, data, size), 0, f"{data}, n={size:,}")
        for data in DATA
        for size in sizes
    ]


@dataclass(frozen=True)
class Repetition:
    """One run, with the exact figures of its records.

    Parameters
    ----------
    estimated, exact : measures by name; ``estimated`` is empty where the run gives no histogram.
    curve : the smooth calibration curve with its band; None where there is none.
    """

    estimated: Mapping[str, Estimate]
    exact: Mapping[str, Estimate]
    curve: Mapping[str, Floats] | None


def _cell(table: str, data: str, size: int, bench: Bench) -> list[Measured]:
    """Every figure of one data set: exact, the mean estimate, its error and its coverage."""
    repetitions = _measured(data, size, bench)
    rows: list[Measured] = []
    for name, figure in repetitions[0].exact.items():
        if math.isfinite(figure.value):
            rows += _rows(table, f"{data}, n={size:,}, {name}", name, repetitions)
    if data == DISTORTED:
        rows += _band_rows(table, f"{data}, n={size:,}, calibration_curve", repetitions)
    return rows


def _measured(data: str, size: int, bench: Bench) -> list[Repetition]:
    """All runs, by processes: figures of small arrays hold the interpreter's lock."""
    blocks = [
        range(start, min(start + RUNS_OF_RECORDS, bench.repeats))
        for start in range(0, bench.repeats, RUNS_OF_RECORDS)
    ]
    work = partial(_repetitions, data, size, bench)
    chunk = -(-len(blocks) // (CHUNKS * WORKERS))
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        return [each for block in pool.map(work, blocks, chunksize=chunk) for each in block]


def _repetitions(data: str, size: int, bench: Bench, runs: range) -> list[Repetition]:
    """Runs with the same records, which the first of them draws."""
    protocol = ScoreHistogram("secure-sum", epsilon=EPSILON)
    first = bench.seed("measures", data, size)
    scores, labels = DATA[data](size, bench.seed("records", data, size, runs.start), bench)
    clients = Clients.split(scores, labels, clients=CLIENTS, seed=runs.start)
    exact = _figures(evaluate(clients, ScoreHistogram("exact-sum")))
    made = []
    for index in runs:
        result = evaluate(clients, protocol, seed=first + index)
        curve = _curve(result) if data == DISTORTED else None
        made.append(Repetition(_figures(result), exact, curve))
    return made


def _curve(result: Evaluation) -> Mapping[str, Floats] | None:
    """The smooth calibration curve alone, without the time that other curves take."""
    if result.histogram is None or too_few_records(result.measures.view) is not None:
        return None
    return calibration_curve(result.measures.view.merged(CURVE_CELLS)) or None


def _figures(result: Evaluation) -> Mapping[str, Estimate]:
    """All measures of a result; none where it gives no figure."""
    return {} if result.histogram is None else result.measures.by_name


def _rows(table: str, row: str, name: str, repetitions: list[Repetition]) -> Iterator[Measured]:
    """The rows of one figure."""
    given = [
        (each.estimated[name], each.exact[name].value)
        for each in repetitions
        if each.estimated and each.estimated[name].given and each.exact[name].given
    ]
    yield Row(
        table, row, "exact", None, float(np.mean([each.exact[name].value for each in repetitions]))
    )
    if len(given) < MOSTLY * len(repetitions):
        yield Row(table, row, "part of the runs that give it", None, len(given) / len(repetitions))
        return
    errors = np.array([measure.value - measure.bias - exact for measure, exact in given])
    stated = math.sqrt(float(np.mean([measure.standard_error**2 for measure, _ in given])))
    covered = [exact in measure.interval() for measure, exact in given]
    error, mean = math.sqrt(float(np.mean(errors**2))), float(np.mean(errors))
    yield Row(table, row, "mean error", None, mean)
    yield Row(table, row, "error", None, error)
    yield _coverage(
        table, row, covered, f"stated {stated:.1e}, measured {error:.1e}, mean error {mean:.1e}"
    )


def _coverage(table: str, row: str, covered: list[bool], reason: str) -> Beside:
    """The part of the intervals that cover, with the reason where it is a miss."""
    coverage = float(np.mean(covered))
    missed = not WITHIN[0] <= coverage <= WITHIN[1]
    return Beside(table, row, COVERAGE, coverage, *WITHIN, reason=reason if missed else "")


def _band_rows(table: str, row: str, repetitions: list[Repetition]) -> Iterator[Measured]:
    """How often the band holds the population's curve, at points along it."""
    known = [each.curve for each in repetitions if each.curve is not None]
    if len(known) < MOSTLY * len(repetitions):
        yield Row(table, row, "part of the runs that give it", None, len(known) / len(repetitions))
        return
    for part in BAND_POINTS:
        covered = []
        for curve in known:
            place = round(part * (len(curve["predicted"]) - 1))
            predicted, low, high = (curve[name][place] for name in ("predicted", *BAND))
            true = scipy.special.expit((scipy.special.logit(predicted) - SHIFT) / FACTOR)
            covered.append(bool(low <= true <= high))
        yield _coverage(table, f"{row} at {part:g} of its length", covered, "pointwise band")
