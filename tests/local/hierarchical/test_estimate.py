"""Both areas of level counts against slow references that follow their definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.local.hierarchical import estimate
from tacit.local.hierarchical.protocol import HierarchicalAUC
from tacit.metrics.trees import levels_of
from tacit.protocols.published.ustatistics import traversal_area
from tacit.running.evaluating import repeat_results
from tests.federations import binormal_clients
from tests.metrics.test_trees import dense_covariance, dense_leaves

Floats = NDArray[np.float64]

HEIGHT = 4
CLASSES = np.array([3000.0, 2000.0])


def noisy_levels(seed: int) -> estimate.LevelCounts:
    """Two even trees with noise, in three replicates."""
    rng, classes = np.random.default_rng(seed), np.tile(CLASSES[:, np.newaxis], (3, 1, 1))
    counts = [classes]
    for level in range(1, HEIGHT + 1):
        noise = rng.normal(0, 60.0, (3, 2, 2**level))
        counts.append(classes / 2**level + noise - noise.mean(axis=-1, keepdims=True))
    reports = np.repeat(classes / HEIGHT, HEIGHT, axis=-1)
    return estimate.LevelCounts(
        CLASSES, counts, reports, estimate.ReportNoise(HEIGHT, 3.0, sampled=True)
    )


@pytest.mark.parametrize(
    "estimator",
    [traversal_area, lambda own: estimate.consistent_area(own, estimate.consistent_counts(own))],
)
def test_influences_are_the_derivatives(estimator) -> None:  # type: ignore[no-untyped-def]
    """A small change of a level's counts that keeps their sum and the walk's choices."""
    levels = noisy_levels(1)
    base = estimator(levels)
    for level in range(1, HEIGHT + 1):
        for side in (0, 1):
            step = np.zeros((1, 2, 2**level))
            step[0, side] = np.random.default_rng(level).normal(size=2**level)
            step[0, side] -= step[0, side].mean()
            counts = list(levels.counts)
            counts[level] = counts[level] + 1e-4 * step
            moved = estimator(replace(levels, counts=counts))
            expected = 1e-4 * np.sum(base.influences[level - 1][0] * step[0])
            assert moved.value[0] - base.value[0] == pytest.approx(expected, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("sampled", [True, False])
def test_consistent_leaves_solve_the_weighted_least_squares(sampled: bool) -> None:
    """A dense solve with a weight for every observed count and the root held exactly."""
    noise = estimate.ReportNoise(HEIGHT, 1.2, sampled)
    levels = replace(noisy_levels(2), noise=noise)
    counts = estimate.consistent_counts(levels)[0]
    for side in (0, 1):
        observed = [own[0, side] for own in levels.counts]
        solved = dense_leaves(observed, held_at_the_root(noise.record_variances))
        np.testing.assert_allclose(counts[side], solved, rtol=1e-6)


def held_at_the_root(variances: Floats) -> Floats:
    """The variances of all levels where the number of all records is known."""
    return np.concatenate([[0.0], variances[1:]])


@pytest.mark.parametrize("height", [1, 2, 3, 5])
def test_variances_of_leaves_and_of_products_are_those_of_the_matrices(height: int) -> None:
    variances = estimate.ReportNoise(height, 1.7, sampled=True).record_variances
    covariance = dense_covariance(held_at_the_root(variances))
    won = np.tri(2**height, k=-1) + np.eye(2**height) / 2
    product = np.trace(won @ covariance @ won.T @ covariance)
    assert estimate.product_variance(variances) == pytest.approx(product, rel=1e-9, abs=1e-9)
    assert estimate.leaf_variance(variances) == pytest.approx(np.diag(covariance).mean(), rel=1e-9)


def test_the_planned_error_is_that_of_evenly_spread_scores() -> None:
    """Over uninformative scores; predicted errors vary by a few percent between runs."""
    clients = binormal_clients(5000, 5000, 10000, auc=0.5, seed=0)
    protocol = HierarchicalAUC(2.0, 5, scale="even")
    planned = math.sqrt(estimate.planned_variance(protocol.report_noise(5), 10000))
    predicted = repeat_results(clients, protocol, 20, seed=0).privacy_error.mean()
    assert predicted == pytest.approx(planned, rel=0.15)


def test_levels_without_reports_follow_the_level_above() -> None:
    table = np.zeros((16, 2, 2), dtype=np.int64)
    table[3], table[5] = [[10, 2], [3, 9]], [[4, 4], [8, 0]]
    levels = estimate.LevelCounts.of(table, estimate.ReportNoise(3, 1.5, sampled=True))
    np.testing.assert_array_equal(levels.reports[:, 2], 0)
    np.testing.assert_allclose(levels.counts[3], np.repeat(levels.counts[2], 2, axis=-1) / 2)
    assert all(own.sum(axis=-1) == pytest.approx([20, 20]) for own in levels.counts)
    assert np.isfinite(traversal_area(levels).value)
    assert levels_of(estimate.consistent_counts(levels))[0].ravel() == pytest.approx([20, 20])
