"""Consistent trees against dense weighted least squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.stats import chi2

from tacit.metrics.trees import (
    consistent_leaves,
    levels_of,
    node_variances,
    observation_fractions,
    observation_weights,
    pair_sums,
    subtree_variances,
)

Floats = NDArray[np.float64]

few = settings(max_examples=60, deadline=None)
NOISE = st.floats(0.05, 50.0)
UPPER = st.one_of(NOISE, st.just(np.inf))


@st.composite
def level_variances(draw: st.DrawFn) -> Floats:
    """Two to six levels; the root may be exact, levels above the leaves may not be observed."""
    inner = draw(st.lists(UPPER, min_size=0, max_size=4))
    root = draw(st.one_of(UPPER, st.just(0.0)))
    return np.array([root, *inner, draw(NOISE)])


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
def test_consistent_leaves_are_the_dense_weighted_least_squares(
    variances: Floats, seed: int
) -> None:
    levels = observed_levels(variances, np.random.default_rng(seed), ())
    leaves = consistent_leaves(levels, variances)
    np.testing.assert_allclose(leaves, dense_leaves(levels, variances), rtol=1e-7, atol=1e-7)
    if variances[0] == 0:
        assert leaves.sum() == pytest.approx(float(levels[0][0]))


@pytest.mark.parametrize("exact", [1, 2, 3])
def test_any_one_level_may_be_exact(exact: int) -> None:
    variances = np.array([3.0, 1.0, 2.0, 0.5])
    variances[exact] = 0.0
    levels = observed_levels(variances, np.random.default_rng(exact), ())
    leaves = consistent_leaves(levels, variances)
    np.testing.assert_allclose(leaves, dense_leaves(levels, variances), atol=1e-9)
    np.testing.assert_allclose(levels_of(leaves)[exact], levels[exact])


@few
@given(variances=level_variances(), seed=st.integers(0, 2**32 - 1))
def test_leading_axes_hold_trees_of_their_own(variances: Floats, seed: int) -> None:
    levels = observed_levels(variances, np.random.default_rng(seed), (2, 3))
    leaves = consistent_leaves(levels, variances)
    assert leaves.shape == (2, 3, 1 << (variances.size - 1))
    for place in np.ndindex(2, 3):
        alone = [None if own is None else own[place] for own in levels]
        np.testing.assert_allclose(leaves[place], consistent_leaves(alone, variances), rtol=1e-12)


@few
@given(variances=level_variances(), seed=st.integers(0, 2**32 - 1))
def test_what_is_consistent_stays_as_it_is(variances: Floats, seed: int) -> None:
    leaves = np.random.default_rng(seed).normal(size=1 << (variances.size - 1))
    levels = [
        own if np.isfinite(variance) else None
        for own, variance in zip(levels_of(leaves), variances, strict=True)
    ]
    np.testing.assert_allclose(consistent_leaves(levels, variances), leaves, atol=1e-9)


@few
@given(variances=level_variances(), seed=st.integers(0, 2**32 - 1))
def test_observation_weights_are_the_adjoint(variances: Floats, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(2, 1 << (variances.size - 1)))
    levels = observed_levels(variances, rng, ())
    computed_weights = observation_weights(weights, variances)
    assert [own.shape for own in computed_weights] == [
        (2, 1 << level) for level in range(variances.size)
    ]
    weighed = sum(
        (
            own @ level
            for own, level in zip(computed_weights, levels, strict=True)
            if level is not None
        ),
        np.zeros(2),
    )
    expected = weights @ consistent_leaves(levels, variances)
    np.testing.assert_allclose(weighed, expected, rtol=1e-9, atol=1e-9)
    for own, variance in zip(computed_weights, variances, strict=True):
        assert np.isfinite(variance) or not own.any(), "a level that was not observed has a weight"


@few
@given(variances=level_variances(), seed=st.integers(0, 2**32 - 1))
def test_an_estimate_is_unbiased(variances: Floats, seed: int) -> None:
    """The weights of the observations above a leaf add up to the leaf's own weight."""
    weights = np.random.default_rng(seed).normal(size=1 << (variances.size - 1))
    computed_weights = observation_weights(weights, variances)
    passed = sum(
        (np.repeat(own, weights.size // own.size) for own in computed_weights),
        np.zeros(weights.size),
    )
    np.testing.assert_allclose(passed, weights, atol=1e-9)


@few
@given(variances=level_variances())
def test_node_variances_are_the_dense_diagonals(variances: Floats) -> None:
    covariance = dense_covariance(variances)
    computed_variances = node_variances(variances)
    for level, sums in enumerate(sums_by_level(variances.size)):
        diagonal = np.diag(sums @ covariance @ sums.T)
        np.testing.assert_allclose(diagonal, computed_variances[level], rtol=1e-6, atol=1e-6)


@few
@given(variances=level_variances())
def test_subtree_variances_are_the_roots_of_trees_of_their_own(variances: Floats) -> None:
    computed_variances = subtree_variances(variances)
    for level in range(variances.size):
        own = variances[level:]
        expected = own[0] if own.size == 1 else dense_covariance(own).sum()
        assert computed_variances[level] == pytest.approx(expected, rel=1e-6, abs=1e-6)


@few
@given(variances=level_variances(), data=st.data())
def test_consistency_is_never_worse_than_the_leaves_alone(
    variances: Floats, data: st.DataObject
) -> None:
    size = 1 << (variances.size - 1)
    weights = np.array(data.draw(st.lists(st.floats(-10, 10), min_size=size, max_size=size)))
    consistent = sum(
        variance * float(np.sum(own**2))
        for own, variance in zip(observation_weights(weights, variances), variances, strict=True)
        if np.isfinite(variance)
    )
    alone = float(variances[-1] * np.sum(weights**2))
    assert consistent <= alone * (1 + 1e-9)
    assert consistent == pytest.approx(weights @ dense_covariance(variances) @ weights, abs=1e-6)


def test_drawn_errors_are_as_large_as_said_and_smaller_than_the_leaves_alone() -> None:
    """The chi-square law of a normal variance with 20,000 draws; false alarm 1e-4 over the seed.

    A scale 30 % off moves the variance by 40 of its own standard deviations.
    """
    rng, draws = np.random.default_rng(4), 20_000
    variances = np.array([0.0, 5.0, np.inf, 1.0, 2.0])
    truth = np.arange(16.0)
    levels = [
        own + rng.normal(0, np.sqrt(variance), (draws, own.size)) if np.isfinite(variance) else None
        for own, variance in zip(levels_of(truth), variances, strict=True)
    ]
    leaves = consistent_leaves(levels, variances)
    for level, variance in enumerate(node_variances(variances)[1:], start=1):
        nodes = levels_of(leaves)[level][:, 1] - levels_of(truth)[level][1]
        squares = float(np.sum(nodes**2)) / variance
        assert 5e-5 < chi2.cdf(squares, draws) < 1 - 5e-5
        assert not 5e-5 < chi2.cdf(squares / 1.3**2, draws) < 1 - 5e-5
    assert np.mean((leaves - truth) ** 2) < np.mean((np.asarray(levels[-1]) - truth) ** 2)


def test_shares_of_levels() -> None:
    np.testing.assert_allclose(observation_fractions(np.array([2.0, 1.0])), [0.5, 1.0])
    np.testing.assert_allclose(observation_fractions(np.array([np.inf, 0.0, 1.0])), [0.0, 1.0, 1.0])


def test_trees_without_leaves_are_refused() -> None:
    with pytest.raises(ValueError, match="leaves of a tree must be observed"):
        observation_fractions(np.array([1.0, np.inf]))


def test_parents_are_sums_of_neighbours() -> None:
    nodes = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(pair_sums(nodes), [[1, 5], [9, 13], [17, 21]])
    assert [own.shape for own in levels_of(nodes)] == [(3, 1), (3, 2), (3, 4)]
