"""The distance of the classes and the drift of two releases: what noise adds is taken out."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.arrays import Floats
from tacit.metrics.trees import TreeNoise
from tacit.results.curves.histogram import Histogram
from tacit.results.measures.distances import (
    DRAWS,
    Parts,
    _walks,
    class_separation,
    largest_shift,
    population_stability,
)
from tacit.results.measures.figures import CellView

RUNS, CELLS, DEVIATION = 60, 2**10, 0.3


def distance(clients: tacit.Clients) -> float:
    """The largest difference of both classes' parts above a threshold, by its definition."""
    labels = clients.labels[np.argsort(-clients.scores)]
    apart = np.cumsum(labels) / labels.sum() - np.cumsum(1 - labels) / (1 - labels).sum()
    return float(apart.max())


def noisy_view(clients: tacit.Clients, seed: int) -> CellView:
    """Counts in even cells with normal noise on every cell, and on nothing else."""
    exact = clients.counts_in(np.arange(1, CELLS) / CELLS).sum(axis=-1).astype(np.float64)
    noise = np.random.default_rng(seed).normal(0.0, DEVIATION, exact.shape)
    variances = np.full((2 * CELLS).bit_length(), np.inf)
    variances[-1] = DEVIATION**2
    return CellView.of(Histogram(exact + noise, TreeNoise(variances), 1, 1))


@pytest.mark.parametrize("auc", [0.6, 0.8])
def test_the_distance_has_no_bias_beside_its_error(auc: float) -> None:
    """The mean error of 60 runs on records drawn anew is below 0.4 of the stated one.

    It has a standard error of 0.13: an estimate with a bias of 0.1 fails with a probability of
    1 %, and one that takes the largest value at the quantiles for that over all thresholds, which
    is about 0.65 too small, passes with 3 %.
    """
    errors, stated, covered = [], [], []
    for seed in range(RUNS):
        scores, labels = tacit.binormal_scores(4_000, 12_000, auc, seed=seed)
        clients = tacit.Clients.from_arrays(scores, labels)
        found, exact = class_separation(noisy_view(clients, seed)), distance(clients)
        errors.append(found.value - found.bias - exact)
        stated.append(found.standard_error)
        covered.append(found.interval().low <= exact <= found.interval().high)
    assert abs(np.mean(errors)) < 0.4 * np.mean(stated)
    assert 0.7 < np.std(errors) / np.mean(stated) < 1.35
    assert np.mean(covered) > 0.85


def test_largest_values_are_those_of_walks_in_steps() -> None:
    """Beside 4,000 walks step by step, within 5 standard errors of the mean over ``DRAWS``.

    A largest value over the quantiles alone is lower by half of what a walk passes between two
    of them, or 5.8, which is 9 standard errors.
    """
    quantiles, between = 5, 100
    found = _walks(np.zeros(quantiles), 1.0, between, np.random.default_rng(0))[1]
    steps = np.random.default_rng(1).standard_normal((4_000, (quantiles - 1) * between))
    naive = np.maximum(steps.cumsum(axis=-1).max(axis=-1), 0.0)
    assert abs(found.mean() - naive.mean()) < 5 * naive.std() / np.sqrt(DRAWS)


EVEN = np.full(10, 0.1)
MOVED = np.array([0.07, 0.08, 0.09, 0.1, 0.1, 0.1, 0.1, 0.11, 0.12, 0.13])
EMPTIED = np.array([0.02, 0.02, 0.02, 0.02, 0.1, 0.14, 0.17, 0.17, 0.17, 0.17])
SCALE = 0.004
COVARIANCE = SCALE**2 * (np.eye(10) - 0.1)
DRIFT_RUNS = 400


def noisy(parts: Floats, source: np.random.Generator, scale: float = SCALE) -> Parts:
    noise = source.normal(0, scale, 10)
    return Parts(parts + noise - noise.mean(), COVARIANCE, 1e9)


def exact_index(second: Floats) -> float:
    return float(np.sum((second - EVEN) * np.log(second / EVEN)))


def test_without_noise_the_index_is_its_definition() -> None:
    none = np.zeros((10, 10))
    found = population_stability(Parts(EVEN, none, 1e12), Parts(MOVED, none, 1e12))
    assert found.value == pytest.approx(exact_index(MOVED), rel=1e-12)
    assert (found.bias, found.privacy_error) == (0.0, 0.0)


@pytest.mark.parametrize("second", [EVEN, MOVED, EMPTIED])
def test_the_indexs_noise_is_removed(second: Floats) -> None:
    """Of 400 runs the mean error is known to 5 %: a bound of 4 of its errors fails once in 15,000.

    Noise 30 % too large would leave a bias of 0.69 of the one removed, and is noticed.
    """
    source = np.random.default_rng(0)
    found = [
        population_stability(noisy(EVEN, source), noisy(second, source)) for _ in range(DRIFT_RUNS)
    ]
    centres = np.array([each.value - each.bias for each in found])
    known = centres.std() / np.sqrt(DRIFT_RUNS)
    assert centres.mean() == pytest.approx(exact_index(second), abs=4 * known)
    errors = np.sqrt(np.mean(np.square([each.privacy_error for each in found])))
    assert errors == pytest.approx(centres.std(), rel=0.25)
    louder = [
        population_stability(noisy(EVEN, source, 1.3 * SCALE), noisy(EVEN, source, 1.3 * SCALE))
        for _ in range(DRIFT_RUNS)
    ]
    wrong = np.array([each.value - each.bias for each in louder])
    assert wrong.mean() > 4 * wrong.std() / np.sqrt(DRIFT_RUNS)


def test_the_largest_shift_is_found() -> None:
    """An alarm without drift comes in 5 % of runs: in 8 % of 300 once in 100 tests."""
    none = np.zeros((10, 10))
    found = largest_shift(Parts(EVEN, none, 1e12), Parts(MOVED, none, 1e12))
    assert found.value == pytest.approx(0.06)
    source = np.random.default_rng(1)
    again = [largest_shift(noisy(EVEN, source), noisy(MOVED, source)) for _ in range(100)]
    centres = np.array([each.value - each.bias for each in again])
    assert centres.mean() == pytest.approx(0.06, abs=4 * centres.std() / 10)
    still = [largest_shift(noisy(EVEN, source), noisy(EVEN, source)) for _ in range(300)]
    alarms = np.array([each.interval().low > 0 for each in still])
    assert 0.01 < alarms.mean() < 0.08
