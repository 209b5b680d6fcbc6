"""Figures 3 and 4 of Bell et al. 2020 on synthetic records."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.metrics.pairwise import kendall_tau
from tacit_studies.papers import ustatistics
from tacit_studies.registry import TABLES
from tacit_studies.rows import Row, Target
from tacit_studies.sources import Scores
from tests.studies.sources import check_rows


@pytest.mark.parametrize("shape", list(ustatistics.SHAPES))
def test_ratings_have_the_papers_tau_and_their_frequencies(shape: str) -> None:
    """10,000 pairs; frequencies by chi-square, whose false alarm is 1e-6 over the seed."""
    ratings = ustatistics.made_ratings(ustatistics.SHAPES[shape], 10_000, seed=1)
    assert ustatistics.tau_of(ratings) == pytest.approx(ustatistics.TAU, abs=1e-3)
    for values in np.divmod(ratings, ustatistics.SCALE):
        counts = np.bincount(values, minlength=ustatistics.SCALE)
        expected = np.array(ustatistics.SHAPES[shape]) * ratings.size
        assert stats.chisquare(counts, expected).pvalue > 1e-6
    clients = ustatistics.raters(ratings)
    assert clients.second is not None
    assert clients.count == clients.records == 10_000
    assert kendall_tau(clients.scores, clients.second) == pytest.approx(
        ustatistics.tau_of(ratings), abs=1e-12
    )


def test_means_of_laplace_draws_are_as_if_drawn_one_by_one() -> None:
    """Against 3 and 400 draws each: false alarm 1e-4 over the seeds, and a wrong scale is found."""
    for draws in (3, 400):
        naive = np.random.default_rng(6).laplace(scale=2.0, size=(4_000, draws)).mean(axis=1)
        ours = ustatistics.laplace_means(np.random.default_rng(7), draws, 2.0, 4_000)
        assert stats.ks_2samp(naive, ours).pvalue > 1e-4
        assert stats.ks_2samp(naive, 1.3 * ours).pvalue < 1e-4


@pytest.mark.parametrize("epsilon", ustatistics.EPSILONS)
def test_releases_compose_to_the_whole_epsilon(epsilon: float) -> None:
    own = ustatistics.pair_epsilon(epsilon, 1_000)
    spent = own * math.sqrt(2_000 * math.log(1 / ustatistics.DELTA)) + 1_000 * own * math.expm1(own)
    assert spent == pytest.approx(epsilon, rel=1e-9)


def test_figure_3_has_a_point_for_every_domain() -> None:
    rows = TABLES["ustatistics-figure-3"].measure(Scores(), repeats=3, seed=1)
    points = [row for row in rows if not row.column.startswith("claim")]
    assert len(points) == 2 * len(ustatistics.EPSILONS) * len(ustatistics.HEIGHTS)
    assert all(isinstance(row, Row) and row.paper is None for row in rows)
    means = {row.row: row.ours for row in points if row.column == "mean absolute error"}
    assert all(0 < error < 1 for error in means.values())
    assert means["eps=5 d=2^4"] < means["eps=0.5 d=2^12"]


def test_the_patients_have_the_papers_smaller_class() -> None:
    clients = ustatistics._patients(0)
    assert (clients.positives, clients.count) == (693, clients.records)
    assert clients.positives / clients.records == pytest.approx(11_357 / 101_766, rel=1e-3)


def test_figure_4_has_its_points_and_the_order_of_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """6,000 raters, 60 repetitions, where the first of the three is ahead by a wide margin."""
    monkeypatch.setattr(ustatistics, "RATERS", 6_000)
    rows = TABLES["ustatistics-figure-4"].measure(Scores(), repeats=60, seed=1)
    check_rows(rows)
    points = [row for row in rows if "absolute error" in row.column]
    assert len(points) == 2 * len(ustatistics.SHAPES) * len(ustatistics.EPSILONS) * (
        3 + len(ustatistics.MATCHINGS)
    )
    targets = {(row.row, row.column): row for row in rows if isinstance(row, Target)}
    assert len(targets) == 3 * 2 * len(ustatistics.SHAPES) - 1
    for (_, column), target in targets.items():
        if "P=1" in column:
            assert target.ours < 0.7
    assert targets[("even ratings eps=2", "error of randomised response / of 2PC all pairs")].met
