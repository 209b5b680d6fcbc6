"""How far private curves are from the records' own: areas between ROC curves, and between
precision-recall curves, beside those of FedCurve with its best number of quantiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit, logit

from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import PROBABILITY, named_scale
from tacit.privacy.noise import SimulatedNoise
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.running.simulation import simulate
from tacit_studies.measuring import Bench, Job
from tacit_studies.references.fedcurve import QUANTILES, fedcurve
from tacit_studies.references.smooth_curves import SmoothCurves
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import EDGE, Floats, Labels

CLIENTS = 10
"""Number of clients; the noise of a sum does not depend on it."""

EPSILONS = (0.3, 1.0, 3.0)

MAX_ROC_RATIO, MAX_PRECISION_RATIO = 0.55, 0.65
"""Largest ratios of our mean area to FedCurve's, between ROC and between precision curves."""

PLACES = (np.arange(20_000) + 0.5) / 20_000
"""False-positive rates and recalls at which curves are compared."""

FINE_CELLS = 2**13
"""Number of cells of either scale at whose borders FedCurve's curves are computed."""

SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "as they are": lambda scores: scores,
    "crowded": lambda scores: expit(6 * logit(np.clip(scores, EDGE, 1 - EDGE))),
}
"""The scores, and log-odds times 6, which crowd at 0 and 1."""


def areas(table: str) -> list[Job]:
    """Both areas of both sets of scores at every epsilon."""
    return [
        Job(partial(_beside, table, shape, epsilon)) for shape in SHAPES for epsilon in EPSILONS
    ]


def _beside(table: str, shape: str, epsilon: float, bench: Bench) -> list[Measured]:
    scores, labels = _records(bench)
    scores = SHAPES[shape](scores)
    exact = exact_curves(scores, labels)
    seeds = [bench.seed("curves", shape, epsilon, index) for index in range(bench.repeats)]
    areas = np.mean(
        [areas_between(exact, _smooth_curves(scores, labels, epsilon, s)) for s in seeds], axis=0
    )
    best = _best_of_fedcurve(scores, labels, epsilon, exact, seeds)
    measured: list[Measured] = []
    bounds = (MAX_ROC_RATIO, MAX_PRECISION_RATIO)
    for index, figure in enumerate(("ROC", "precision-recall")):
        row = f"scores {shape}, epsilon {epsilon:g}, K={CLIENTS}"
        area, other = float(areas[index]), float(best[index])
        measured += [
            Row(table, row, f"{figure} area (paper: FedCurve's best)", other, area),
            Target(table, row, f"{figure} area / FedCurve's", area / other, at_most=bounds[index]),
        ]
    return measured


def _records(bench: Bench) -> tuple[Floats, Labels]:
    """The records of a file, unchanged, or the small evaluation set where there is no file."""
    real = bench.source.real
    return bench.scored() if real is None else (real.scores, real.labels)


def _smooth_curves(scores: Floats, labels: Labels, epsilon: float, seed: int) -> SmoothCurves:
    clients = Clients.split(scores, labels, CLIENTS, seed=0)
    protocol = ScoreHistogram(epsilon=epsilon)
    histogram = simulate(clients, protocol, SimulatedNoise(seed)).server_result.histogram
    if histogram is None:
        raise ValueError(f"noise of epsilon {epsilon:g} leaves no curve of {clients.records}")
    return SmoothCurves.of(histogram)


def _best_of_fedcurve(
    scores: Floats, labels: Labels, epsilon: float, exact: SmoothCurves, seeds: list[int]
) -> Floats:
    """The least mean area of either kind over all numbers of quantiles."""
    even = np.linspace(0.0, 1.0, FINE_CELLS + 1)
    thresholds = np.union1d(even, named_scale(PROBABILITY).scores(even))
    means = []
    for quantiles in QUANTILES:
        made = [
            fedcurve(scores, labels, epsilon, quantiles, thresholds, np.random.default_rng(seed))
            for seed in seeds
        ]
        means.append(np.mean([areas_between(exact, each) for each in made], axis=0))
    return np.min(means, axis=0)


def exact_curves(scores: Floats, labels: Labels) -> SmoothCurves:
    """The records' own curves: a step at every distinct score, with ties as straight lines."""
    values = np.unique(scores)
    classes = [np.sort(scores[labels == label]) for label in (1, 0)]
    above = [
        np.append(1 - np.searchsorted(class_scores, values, side="left") / class_scores.size, 0.0)
        for class_scores in classes
    ]
    thresholds = np.append(values, np.nextafter(values[-1], np.inf))
    return SmoothCurves(thresholds, above[1], above[0], classes[0].size, classes[1].size)


def areas_between(first: SmoothCurves, second: SmoothCurves) -> tuple[float, float]:
    """The area between two ROC curves, and that between the precision-recall curves."""
    recalls = first.recall_at(PLACES) - second.recall_at(PLACES)
    precisions = first.precision_at(PLACES) - second.precision_at(PLACES)
    return float(np.mean(np.abs(recalls))), float(np.mean(np.abs(precisions)))
