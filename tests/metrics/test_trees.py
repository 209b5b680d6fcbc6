"""Consistent trees against dense weighted least squares, and the errors of their leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import null_space

from tacit.metrics import trees

Floats = NDArray[np.float64]

few = settings(max_examples=60, deadline=None)
NOISE = st.floats(0.05, 50.0)
UPPER = st.one_of(NOISE, st.just(np.inf))


@st.composite
def level_variances(draw: st.DrawFn) -> Floats:
    """Two to six levels; of those above the leaves one may be exact, and any not be observed."""
    variances = np.array([*draw(st.lists(UPPER, min_size=1, max_size=5)), draw(NOISE)])
    exact = draw(st.none() | st.integers(0, variances.size - 2))
    if exact is not None:
        variances[exact] = 0.0
    return variances


def sums_by_level(levels: int) -> list[Floats]:
    """The matrices that add leaves up to the nodes of each level."""
    leaves = 1 << (levels - 1)
    return [np.kron(np.eye(1 << level), np.ones(leaves >> level)) for level in range(levels)]


def observed_levels(variances: Floats, rng: np.random.Generator, lead: tuple[int, ...]) -> Any:
    return [
        rng.normal(20.0, 10.0, (*lead, 1 << level)) if np.isfinite(variance) else None
        for level, variance in enumerate(variances)
    ]


def dense(variances: Floats) -> tuple[Floats, Floats, Floats]:
    """The leaves that meet what is exact, the free directions, and scaled rows of what is noisy.

    The rows of exact levels come first, then those of noisy ones divided by their deviation.
    """
    matrices = sums_by_level(variances.size)
    exact = [m for m, v in zip(matrices, variances, strict=True) if v == 0]
    noisy = [
        m / np.sqrt(v) for m, v in zip(matrices, variances, strict=True) if v > 0 and np.isfinite(v)
    ]
    size = matrices[-1].shape[1]
    fixed = np.concatenate(exact) if exact else np.zeros((0, size))
    free = null_space(fixed) if exact else np.eye(size)
    return fixed, free, np.concatenate(noisy)


def dense_leaves(levels: Any, variances: Floats) -> Floats:
    fixed, free, rows = dense(variances)
    pairs = list(zip(levels, variances, strict=True))
    exact = np.concatenate([np.zeros(0), *(own for own, v in pairs if v == 0)])
    scaled = np.concatenate([own / np.sqrt(v) for own, v in pairs if v > 0 and np.isfinite(v)])
    start = np.linalg.lstsq(fixed, exact, rcond=None)[0] if exact.size else np.zeros(rows.shape[1])
    moved = np.linalg.lstsq(rows @ free, scaled - rows @ start, rcond=None)[0]
    return start + free @ moved


def dense_covariance(variances: Floats) -> Floats:
    """The covariance of the least-squares leaves (Gauss and Markov)."""
    _, free, rows = dense(variances)
    seen = rows @ free
    return free @ np.linalg.inv(seen.T @ seen) @ free.T


@few
@given(variances=level_variances(), seed=st.integers(0, 2**32 - 1))
def test_consistent_leaves_are_dense_weighted_least_squares(variances: Floats, seed: int) -> None:
    """Of each tree: leading axes hold trees of their own."""
    levels = observed_levels(variances, np.random.default_rng(seed), (2, 3))
    leaves = trees.consistent_leaves(levels, variances)
    assert leaves.shape == (2, 3, 1 << (variances.size - 1))
    for place in np.ndindex(2, 3):
        alone = [None if own is None else own[place] for own in levels]
        expected = dense_leaves(alone, variances)
        np.testing.assert_allclose(leaves[place], expected, rtol=1e-7, atol=1e-7)


@few
@given(variances=level_variances(), seed=st.integers(0, 2**32 - 1))
def test_observation_weights_are_the_adjoint(variances: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(2, 1 << (variances.size - 1)))
    levels = observed_levels(variances, rng, ())
    computed_weights = trees.observation_weights(weights, variances)
    assert [own.shape for own in computed_weights] == [
        (2, 1 << level) for level in range(variances.size)
    ]
    pairs = zip(computed_weights, levels, strict=True)
    weighed = np.sum([own @ level for own, level in pairs if level is not None], axis=0)
    expected = weights @ trees.consistent_leaves(levels, variances)
    np.testing.assert_allclose(weighed, expected, rtol=1e-9, atol=1e-9)
    for own, variance in zip(computed_weights, variances, strict=True):
        assert np.isfinite(variance) or not own.any(), "a level that was not observed has a weight"


@few
@given(variances=level_variances())
def test_variances_of_nodes_and_of_roots_of_subtrees_are_the_dense_ones(variances: Floats) -> None:
    covariance, of_nodes = dense_covariance(variances), trees.node_variances(variances)
    of_roots = trees.subtree_variances(variances)
    for level, sums in enumerate(sums_by_level(variances.size)):
        diagonal = np.diag(sums @ covariance @ sums.T)
        np.testing.assert_allclose(diagonal, of_nodes[level], rtol=1e-6, atol=1e-6)
        own = variances[level:]
        root = own[0] if own.size == 1 else dense_covariance(own).sum()
        assert of_roots[level] == pytest.approx(root, rel=1e-6, abs=1e-6)


def test_shares_of_levels() -> None:
    for variances, shares in (([2.0, 1.0], [0.5, 1.0]), ([np.inf, 0.0, 1.0], [0.0, 1.0, 1.0])):
        fractions, _ = trees.fractions_and_variances(np.array(variances))
        np.testing.assert_allclose(fractions, shares)
    with pytest.raises(ValueError, match="leaves of a tree must be observed"):
        trees.fractions_and_variances(np.array([1.0, np.inf]))
    nodes = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(trees.pair_sums(nodes), [[1, 5], [9, 13], [17, 21]])


LEVELS = 6
"""A total, two classes, and four levels of cells below."""

RECORDS = np.random.default_rng(1).integers(0, 120, 1 << (LEVELS - 1))
DEALT = np.array([0.0, 0.0, 0.4, 0.3, 0.2, 0.1])
"""The fraction of records that report on each level."""

ALARM = 4.5
"""Standard errors of a sample variance; a correct one exceeds them with probability 1e-5."""


FLIP = 0.02
"""The probability that a bit is set that is not a report's own; its own is set half the time."""


def predicted(flip: float = FLIP) -> trees.TreeNoise:
    """Records dealt out to levels as unary bits, whose counts are scaled up to all records."""
    factors = np.append([0.0, 0.0], 1 / DEALT[2:])
    records, bit_variance = RECORDS.sum(), flip * (1 - flip) / (0.5 - flip) ** 2
    variances = np.where(factors > 0, factors * records * bit_variance, np.inf)
    variances[0] = 0.0
    assumed = variances + factors * 2 * records / 2.0 ** np.arange(LEVELS)
    return trees.TreeNoise(variances, assumed, factors, extra=1.0, centred=True)


def drawn(rng: np.random.Generator, runs: int) -> Floats:
    """Consistent leaves of so many runs, by the predicted noise's weighting."""
    chosen = rng.multinomial(RECORDS, DEALT, (runs, RECORDS.size)).transpose(2, 0, 1)
    levels: list[Floats | None] = [np.full((runs, 1), float(RECORDS.sum())), None]
    for level in range(2, LEVELS):
        counts = trees.levels_of(chosen[level].astype(np.float64))[level].astype(np.int64)
        reports = counts.sum(axis=-1, keepdims=True)
        ones = rng.binomial(counts, 0.5) + rng.binomial(reports - counts, FLIP)
        levels.append(RECORDS.sum() / reports * (ones - reports * FLIP) / (0.5 - FLIP))
    return trees.consistent_leaves(levels, predicted().weighting)


def off(sums: Floats, predicted: float) -> float:
    """How many of its own standard errors a sample variance lies off a predicted one."""
    squares = (sums - sums.mean()) ** 2
    return abs(float(squares.mean()) - predicted) / (float(squares.std()) / math.sqrt(sums.size))


def weights_to_try() -> Floats:
    """A ramp, a cumulative count, one class, one cell, and noise."""
    size = RECORDS.size
    half = size // 2
    ramp = np.concatenate([np.arange(half) / half - 0.7, 0.3 - np.arange(half) / half])
    threshold = np.concatenate([np.arange(half) > 5, np.zeros(half)])
    classes = np.repeat([1.0, 0.0], half)
    alone = np.eye(size)[3]
    return np.stack([ramp, threshold, classes, alone, np.random.default_rng(3).normal(size=size)])


def offs(drawn: Floats, noise: trees.TreeNoise) -> list[float]:
    """How far the variance of each weighted sum lies off that of this noise.

    Where nothing but the partition errs, its weighting finds the classes' sizes exactly to first
    order; a deviation of one in 1,900 records is left.
    """
    weights = weights_to_try()
    predicted = noise.variance_of(weights, RECORDS.astype(np.float64))
    assert predicted.shape == (len(weights),)
    return [
        float((drawn @ own).std() > 1) * 2 * ALARM
        if variance < 1e-9
        else off(drawn @ own, variance)
        for own, variance in zip(weights, predicted.tolist(), strict=True)
    ]


def test_the_prediction_holds_and_needs_each_of_its_parts() -> None:
    """3,000 draws of the partition and the bits; false alarm 1e-5 for each weight.

    Without the partition's, the unary bits' or the centre's term some weight is off.
    """
    leaves = drawn(np.random.default_rng(9), 3000)
    np.testing.assert_allclose(leaves.mean(axis=0), RECORDS, atol=0.1 * RECORDS.max())
    assert max(offs(leaves, predicted())) < ALARM
    for wrong in ({"factors": None}, {"extra": 0.0}, {"centred": False}):
        assert max(offs(leaves, replace(predicted(), **wrong))) > 10


@pytest.mark.parametrize(
    "variances",
    [
        [math.inf, 3.0, 3.0, 3.0, 1.5],
        [0.0, math.inf, 2.0, math.inf, 4.0],
        [1.0, 2.0, 3.0, 4.0, 5.0],
        [math.inf, 0.0, math.inf, 2.0, 2.0],
    ],
)
def test_contrasts_have_the_variance_of_the_observed_counts(variances: list[float]) -> None:
    """The naive way adds up every observed count's noise, times the square of its weight.

    The weights may be those of other variances than the noise's own.
    """
    weights, by_level = np.random.default_rng(0).normal(size=(2, 3, 16)), np.array(variances)
    for assumed in (by_level, by_level * np.array([1.0, 0.5, 3.0, 0.2, 2.0])):
        observed = trees.observation_weights(weights, assumed)
        expected = sum(
            variance * np.sum(level**2, axis=-1)
            for level, variance in zip(observed, variances, strict=True)
            if math.isfinite(variance)
        )
        found = trees.TreeNoise(by_level, assumed).variance_of(weights, np.ones(16))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_groups_of_weights_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = predicted(0.3)
    weights = np.random.default_rng(0).normal(size=(3, 4, RECORDS.size))
    leaves = np.random.default_rng(1).random((3, 4, RECORDS.size)) * 50
    assert weights.size < trees.WEIGHTS_AT_ONCE
    whole = noise.variance_of(weights, leaves)
    monkeypatch.setattr("tacit.metrics.trees.WEIGHTS_AT_ONCE", 2 * RECORDS.size)
    np.testing.assert_allclose(noise.variance_of(weights, leaves), whole, rtol=1e-12)


def test_exact_counts_have_no_variance() -> None:
    variances = np.array([np.inf, np.inf, 0.0])
    assert trees.TreeNoise(variances).exact
    assert trees.TreeNoise(variances).variance_of(np.ones((5, 4)), np.ones(4)).tolist() == [0.0] * 5
    assert not trees.TreeNoise(np.array([np.inf, np.inf, 1.0])).exact
    assert not trees.TreeNoise(variances, factors=np.array([0.0, 0.0, 2.0])).exact


def test_covariances_are_those_of_variances() -> None:
    """``cov(a, b) = (var(a + b) - var(a - b)) / 4``."""
    noise, leaves = predicted(0.2), RECORDS.astype(np.float64)
    weights = np.random.default_rng(0).normal(0, 1, (4, RECORDS.size))
    sums, gaps = (weights[:, np.newaxis] + sign * weights for sign in (1, -1))
    expected = (noise.variance_of(sums, leaves) - noise.variance_of(gaps, leaves)) / 4
    assert noise.covariance_of(weights, leaves) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("observed", [(1, 5), (0, 1, 3, 5), (2, 3, 4, 5)])
def test_the_covariance_between_edges_is_that_of_its_leaves(observed: tuple[int, ...]) -> None:
    variances = np.full(LEVELS, np.inf)
    variances[list(observed)] = np.random.default_rng(2).uniform(1, 9, len(observed))
    noise, edges = trees.TreeNoise(variances), np.array([0, 1, 4, 5, 11, 16, 30])
    leaves = np.arange(1 << (LEVELS - 1))
    cells = (edges[:-1, np.newaxis] <= leaves) & (leaves < edges[1:, np.newaxis])
    naive = noise.covariance_of(cells.astype(np.float64), np.zeros(leaves.size))
    np.testing.assert_allclose(noise.cell_covariance(edges), naive, atol=1e-12)


def test_the_covariance_between_edges_is_refused_for_other_weights() -> None:
    with pytest.raises(ValueError, match="needs levels with their own variances"):
        predicted().cell_covariance(np.array([0, 4, 8]))
