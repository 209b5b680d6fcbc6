"""The grid of intervals: which cells there are, and how a cell's runs are judged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.arrays import Floats
from tacit.protocol.registry import names_registered_by
from tacit.results.figure import AUC_FIGURE
from tacit.results.server_result import ServerResult
from tacit_studies.floors.coverage_any_scale import (
    COVERAGE,
    KINDS,
    RATIO,
    Judged,
    cells,
    given_figures,
)
from tacit_studies.registry import TABLES
from tacit_studies.rows import Row, format_rows
from tacit_studies.small_records import breast_cancer, digits
from tests.studies.sources import check_rows, few, real_clients

NOT_MEASURED = {
    "exact": "no noise",
    "encrypted-auc": "no noise",
    "encrypted-class-auc": "no noise",
    "missing-records": "a count, with no cells",
    "bounded-mean": "a mean: measured by `tacit reproduce bounded`",
    "compared-auc": "another figure",
    "grouped-histogram": "a figure of each group: measured by tests.coverage_of_parts",
    "multiclass-histogram": "a figure of each class: measured by tests.coverage_of_parts",
    "regression-error": "means: measured by `tacit reproduce bounded`",
    "time-to-event": "measured by `tacit reproduce survival`",
}


def judged(errors: Floats, noise: float, cells: float = 0.0) -> Judged:
    reach = np.full(errors.size, 1.96 * math.hypot(noise, cells))
    stated = np.full(errors.size, noise), np.full(errors.size, cells)
    return Judged(errors, *stated, reach, errors.size)


def rows_of(made: Judged) -> Any:
    return tuple(made.rows("t", "cell"))


def test_every_protocol_with_noise_and_an_interval_is_in_the_grid() -> None:
    """But the papers' forms, which the papers' tables measure."""
    measured = {kind.protocol(1.0).name for kind in KINDS}
    ours = {name for name in names_registered_by("tacit") if not name.startswith("published-")}
    assert measured == ours - set(NOT_MEASURED)


def test_names_are_apart_and_clients_have_records() -> None:
    grid = list(cells())
    assert len({cell.name for cell in grid}) == len(grid)
    small = {cell.clients for cell in grid if cell.data.endswith("records")}
    assert small == {3, 10}
    assert {cell.clients for cell in grid} == {3, 10, 1_000}


def test_small_records_are_what_their_names_say() -> None:
    for clients, records, positives in ((breast_cancer(), 569, 212), (digits(), 1_797, 906)):
        assert (clients.records, int(clients.labels.sum())) == (records, positives)
        assert clients.scores.min() >= 0
        assert clients.scores.max() <= 1


def test_a_part_of_the_grid_is_measured_and_survives_json() -> None:
    source = few(real_clients())
    only = "DPAUC record, epsilon 1, K=10"
    rows = TABLES["coverage-any-scale"].measure(source, 20, seed=1, only=only)
    assert {row.row.rsplit(", ", 1)[0] for row in rows} >= {only}
    check_rows(rows)
    assert format_rows(rows)
    with pytest.raises(ValueError, match="no part of coverage-any-scale"):
        TABLES["coverage-any-scale"].measure(source, 2, only="no such cell")


def test_honest_errors_are_covered_and_wrong_ones_are_named() -> None:
    errors = np.random.default_rng(0).normal(size=2_000)
    covered, ratio = rows_of(judged(errors, 1.0))
    assert (covered.column, ratio.column) == (COVERAGE, RATIO)
    assert covered.met
    assert ratio.met
    assert not covered.reason
    covered, ratio = rows_of(judged(errors, 0.7))
    assert not covered.met
    assert covered.reason == "stated 7.0e-01, measured 1.0e+00"
    moved, _ = rows_of(judged(errors / 10 + 3, 1.0))
    assert "mean error 3.0e+00" in moved.reason


def test_a_coverage_near_its_bound_says_how_much_the_runs_tell() -> None:
    errors = np.where(np.arange(100) < 8, 9.0, 0.1)
    covered, _ = rows_of(judged(errors, 1.0))
    assert covered.ours == pytest.approx(0.92)
    assert covered.reason.endswith("within what 100 runs tell of the bound")


def test_where_cells_hide_more_than_noise_the_ratio_is_no_target() -> None:
    errors = np.random.default_rng(0).normal(size=500)
    covered, ratio = rows_of(judged(errors, 1.0, 20.0))
    assert isinstance(ratio, Row)
    assert "2.0e+01 of it for what cells hide" in covered.reason


def test_a_cell_in_which_most_runs_give_no_figure_is_not_judged() -> None:
    (row,) = rows_of(Judged(np.zeros(40), np.ones(40), np.zeros(40), np.ones(40), 100))
    assert isinstance(row, Row)
    assert row.ours == pytest.approx(0.4)
    (row,) = rows_of(Judged(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), 100))
    assert row.ours == 0


def test_runs_without_a_figure_are_those_that_are_not_published() -> None:
    runs = [
        (0.7, 0.01, 500.0, 5.0),
        (math.nan, 0.01, 500.0, 5.0),
        (0.7, math.nan, 500.0, 5.0),
        (0.7, 0.01, 29.0, 5.0),
        (0.6, 0.5, 500.0, 5.0),
        (1.4, 0.1, 500.0, 5.0),
        (-0.4, 0.1, 500.0, 5.0),
        (1.05, 0.1, 500.0, 5.0),
    ]

    def result(value: Floats, error: Floats, positives: Floats, unsure: Floats) -> ServerResult:
        none, negatives = np.zeros_like(value), np.full_like(value, 900.0)
        sizes = positives, negatives, unsure
        return ServerResult(value, error, none, *sizes, limits=AUC_FIGURE.limits)

    alone = [result(*map(np.asarray, run)).published() for run in runs]
    published = [bool(np.isfinite([one.value, one.privacy_error]).all()) for one in alone]
    given = given_figures(result(*np.array(runs).T))
    assert given.tolist() == published == [True, *[False] * 6, True]
