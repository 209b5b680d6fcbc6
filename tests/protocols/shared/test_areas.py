"""AUCs of cells that earlier counts placed: ties, corrections, and how wrong they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Clients, ScoreHistogram, binormal_scores
from tacit.arrays import Floats, Labels
from tacit.counts.noisy_areas import areas, influence_weights
from tacit.metrics.curves import chance_of_several
from tacit.metrics.ranking import auc
from tacit.running.evaluating import exact_auc, repeat_results

EXACT = np.zeros(4)
"""Variances of the levels of a tree of 8 cells without noise."""

COUNTS = st.lists(st.integers(0, 50), min_size=16, max_size=16)


def cells_of(counts: list[int]) -> Floats:
    """Both classes' counts in 8 cells, neither class empty."""
    cells = np.array(counts, dtype=np.float64).reshape(2, 8)
    cells[:, 3] += 1
    return cells


@given(COUNTS)
def test_cells_of_one_score_give_the_exact_area_and_hide_nothing(counts: list[int]) -> None:
    cells = cells_of(counts)
    made = areas(cells, (EXACT, EXACT), even=False, tied=np.ones(8, dtype=np.bool_))
    scores = np.repeat(np.tile(np.arange(8.0), 2), cells.ravel().astype(np.int64))
    labels = np.repeat([1, 0], cells.sum(axis=-1).astype(np.int64))
    assert float(made.value) == pytest.approx(auc(scores, labels), abs=1e-12)
    assert float(made.cell_variance) == 0


@given(COUNTS, st.lists(st.booleans(), min_size=8, max_size=8))
def test_the_correction_takes_nothing_from_tied_cells(counts: list[int], ties: list[bool]) -> None:
    """Its weights are those of the plain area there, and elsewhere its differences of counts.

    The weights of the correction leave out the change of the classes' totals.
    """
    cells, tied = cells_of(counts), np.array(ties)
    weights = influence_weights(cells, tied)
    plain = influence_weights(cells, np.ones(8, dtype=np.bool_))
    np.testing.assert_allclose(weights[:, tied], plain[:, tied])
    pairs = float(np.prod(cells.sum(axis=-1)))
    apart = np.where(tied, 0.0, cells)
    slopes = 2 * np.gradient(apart, axis=-1)
    expected = np.stack([-slopes[1], slopes[0]]) / 12 / pairs
    if np.prod(apart.sum(axis=-1)) > 0:
        np.testing.assert_allclose((weights - plain)[:, ~tied], expected[:, ~tied], atol=1e-12)


def test_cells_that_hold_a_score_hold_another_by_chance() -> None:
    """100 scores at random in 1,000 cells, 600 times.

    The mean difference has a standard error below 0.001, of which five are allowed: a false alarm
    of 6e-7. The chance itself is 0.05, so that 30 % of it are 15 standard errors.
    """
    rng = np.random.default_rng(0)
    drawn = [np.bincount(rng.integers(0, 1000, 100), minlength=1000) for _ in range(600)]
    several = np.array([np.mean(each[each > 0] > 1) for each in drawn])
    stated = chance_of_several(np.array([np.mean(each > 0) for each in drawn]))
    error = (several - stated).std() / np.sqrt(several.size)
    assert error < 0.001
    assert abs(float(np.mean(several - stated))) < 5 * error


RUNS = 120
MOST_SQUARES, LEAST_SQUARES = 1.5, 0.6
"""Bounds of the mean of so many squared standard normals (chi-squared of 120 degrees: above the
one with a probability of 3e-4, below the other of 2e-4).

Where stated errors are 30 % too small the mean is 2.04, and below 1.5 with a probability of 1.3e-2;
where they are 30 % too large 0.59, and where twice too large 0.25."""


def square_errors(scores: Floats, labels: Labels, epsilon: float) -> float:
    """The mean square of the error of a report's AUC, in stated errors, over the runs."""
    clients = Clients.split(scores, labels, clients=10, seed=0)
    runs = repeat_results(clients, ScoreHistogram("secure-sum", epsilon), RUNS, seed=1)
    stated = np.hypot(runs.privacy_error, runs.approximation_error)
    return float(np.mean(((runs.value - exact_auc(clients)) / stated) ** 2))


def test_a_report_of_many_records_errs_as_it_states() -> None:
    """Where noise is so small that the area of 128 cells without the correction errs by two."""
    scores, labels = binormal_scores(60_000, 340_000, 0.8, seed=2)
    assert LEAST_SQUARES < square_errors(scores, labels, 8.0) < MOST_SQUARES


def test_frequent_scores_do_not_err_more_than_is_stated() -> None:
    """40 values that are not round, so that no cell holds one of them alone by design."""
    scores, labels = binormal_scores(6_000, 34_000, 0.8, seed=2)
    values = np.sort(np.random.default_rng(5).uniform(0.02, 0.95, 40))
    ranks = np.digitize(scores, np.quantile(scores, np.linspace(0, 1, 41)[1:-1]))
    assert square_errors(values[ranks], labels, 8.0) < MOST_SQUARES


@pytest.mark.parametrize(("digits", "epsilon"), [(1, 8.0), (2, 1.0)])
def test_round_scores_err_as_is_stated(digits: int, epsilon: float) -> None:
    scores, labels = binormal_scores(6_000, 34_000, 0.8, seed=2)
    squares = square_errors(scores.round(digits), labels, epsilon)
    assert LEAST_SQUARES < squares < MOST_SQUARES


@pytest.mark.parametrize(
    ("trust", "epsilon", "aim"), [("each", 1.0, "report"), ("each", 4.0, "auc")]
)
def test_a_handful_of_scores_do_not_err_more_than_is_stated(
    trust: Any, epsilon: float, aim: Any
) -> None:
    """Seven values at random places in 24 files, of which flat cells hold one or several.

    95 % of 120 intervals are to hold the exact AUC, of which 80 % are asked for: the runs of a
    file share what its cells hide, so that the mean of 24 files has a standard error of at most
    0.045, and a false alarm is 4 in 10,000. Where ties in flat cells go unnoticed, 50 to 70 % do.
    """
    held = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        scores, labels = binormal_scores(1000, 3000, 0.8, seed=seed)
        ranks = np.digitize(scores, np.quantile(scores, np.linspace(0, 1, 8)[1:-1]))
        clients = Clients.split(np.sort(rng.beta(1.2, 2.5, 7))[ranks], labels, clients=5, seed=0)
        runs = repeat_results(clients, ScoreHistogram(trust, epsilon, aim=aim), 5, seed=seed)
        stated = np.hypot(runs.privacy_error, runs.approximation_error)
        held.append(np.abs(runs.value - exact_auc(clients)) < 1.96 * stated)
    assert np.mean(held) > 0.8
