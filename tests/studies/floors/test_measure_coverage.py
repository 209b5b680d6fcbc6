"""The coverage of measures is judged on records that are drawn anew."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tacit.results.estimate import Estimate
from tacit_studies.floors import measure_coverage
from tacit_studies.floors.measure_coverage import (
    COVERAGE,
    RUNS_OF_RECORDS,
    Repetition,
    _cell,
    _measured,
    _rows,
    measures,
)
from tacit_studies.measuring import Bench
from tacit_studies.rows import Beside
from tacit_studies.sources import Scores
from tests.studies.sources import check_rows


def test_there_is_a_job_for_each_data_set_and_size() -> None:
    names = [job.name for job in measures("measures", (4_000,))]
    assert names == ["distorted, n=4,000", "given scores, n=4,000"]


def test_records_are_drawn_anew_for_every_few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here by threads, which need not import everything again."""
    monkeypatch.setattr(
        measure_coverage, "ProcessPoolExecutor", lambda workers, _: ThreadPoolExecutor(workers)
    )
    bench = Bench(Scores(), RUNS_OF_RECORDS + 1, seed=1)
    exact = [each.exact["brier"].value for each in _measured("distorted", 1_500, bench)]
    assert len(exact) == RUNS_OF_RECORDS + 1
    assert len(set(exact)) == 2
    assert exact[0] == exact[RUNS_OF_RECORDS - 1] != exact[RUNS_OF_RECORDS]


def test_every_row_survives_json_and_is_named_once() -> None:
    check_rows(_cell("measures", "distorted", 1_500, Bench(Scores(), 2, seed=1)))


@pytest.mark.parametrize(("error", "coverage"), [(0.5, 1.0), (3.0, 0.5)])
def test_coverage_counts_the_intervals_that_hold_their_own_exact_figure(
    error: float, coverage: float
) -> None:
    """Two runs on other records: each is held against the exact figure of its own."""

    def run(exact: float, off: float) -> Repetition:
        found = {"brier": Estimate(exact + off, 1.0, 0.0)}
        return Repetition(found, {"brier": Estimate(exact, 0.0, 0.0)}, None)

    rows = list(_rows("measures", "row", "brier", [run(10.0, 0.0), run(20.0, error)]))
    (judged,) = [row for row in rows if isinstance(row, Beside)]
    assert (judged.column, judged.ours) == (COVERAGE, coverage)
