"""The grid of intervals: which cells there are, and how a cell's runs are judged."""

from __future__ import annotations

import math

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
from tacit_studies.rows import Beside, Row, format_rows
from tacit_studies.small_records import breast_cancer, digits
from tests.studies.sources import check_rows, few, real_clients

PAPERS = ("dpauc", "fedauc", "hierarchical", "histogram", "ustatistic")

NOT_MEASURED = {
    "exact": "no noise",
    "encrypted-auc": "no noise",
    "encrypted-class-auc": "no noise",
    "missing-records": "a count, with no cells",
    "compared-auc": "another figure",
    "grouped-histogram": "a figure of each group: measured by tests.coverage_of_parts",
    "multiclass-histogram": "a figure of each class: measured by tests.coverage_of_parts",
    **{
        f"published-{name}": "a paper's form: measured by the paper's tables"
        for name in (*PAPERS, "fedauc-response")
    },
    "published-fhe": "no noise",
    "published-noisy-scores": "no interval",
}


def judged(errors: Floats, noise: float, cells: float = 0.0) -> Judged:
    reach = np.full(errors.size, 1.96 * math.hypot(noise, cells))
    stated = np.full(errors.size, noise), np.full(errors.size, cells)
    return Judged(errors, *stated, reach, errors.size)


def test_every_protocol_with_noise_and_an_interval_is_in_the_grid() -> None:
    measured = {kind.protocol(1.0).name for kind in KINDS}
    assert measured == set(names_registered_by("tacit")) - set(NOT_MEASURED)


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
    covered, ratio = judged(errors, 1.0).rows("t", "cell")
    assert isinstance(covered, Beside)
    assert isinstance(ratio, Beside)
    assert (covered.column, ratio.column) == (COVERAGE, RATIO)
    assert covered.met
    assert ratio.met
    assert not covered.reason
    covered, ratio = judged(errors, 0.7).rows("t", "cell")
    assert isinstance(covered, Beside)
    assert not covered.met
    assert covered.reason == "stated 7.0e-01, measured 1.0e+00"
    moved, _ = judged(errors / 10 + 3, 1.0).rows("t", "cell")
    assert isinstance(moved, Beside)
    assert "mean error 3.0e+00" in moved.reason


def test_a_coverage_near_its_bound_says_how_much_the_runs_tell() -> None:
    errors = np.where(np.arange(100) < 8, 9.0, 0.1)
    covered, _ = judged(errors, 1.0).rows("t", "cell")
    assert isinstance(covered, Beside)
    assert covered.ours == pytest.approx(0.92)
    assert covered.reason.endswith("within what 100 runs tell of the bound")


def test_where_cells_hide_more_than_noise_the_ratio_is_no_target() -> None:
    errors = np.random.default_rng(0).normal(size=500)
    covered, ratio = judged(errors, 1.0, 20.0).rows("t", "cell")
    assert isinstance(ratio, Row)
    assert isinstance(covered, Beside)
    assert "2.0e+01 of it for what cells hide" in covered.reason


def test_a_cell_in_which_most_runs_give_no_figure_is_not_judged() -> None:
    (row,) = Judged(np.zeros(40), np.ones(40), np.zeros(40), np.ones(40), 100).rows("t", "cell")
    assert isinstance(row, Row)
    assert row.ours == pytest.approx(0.4)
    (row,) = Judged(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), 100).rows("t", "cell")
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
    columns = np.array(runs).T
    value, error, positives, positives_error = columns
    sizes = (positives, np.full(len(runs), 900.0), positives_error)
    unit = AUC_FIGURE.limits
    given = given_figures(ServerResult(value, error, np.zeros(len(runs)), *sizes, limits=unit))
    for index, (one, its_error, size, size_error) in enumerate(runs):
        shown, its = np.asarray(one), np.asarray(its_error)
        sizes_of_one = (np.asarray(size), np.asarray(900.0), size_error)
        single = ServerResult(shown, its, np.zeros(()), *sizes_of_one, limits=unit).published()
        published = bool(np.isfinite(single.value)) and math.isfinite(its_error)
        assert given[index] == published, runs[index]
    assert given.tolist() == [True, *[False] * 6, True]
