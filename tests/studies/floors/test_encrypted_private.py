"""Errors of the AUC by masked sums with noise, beside their floor, on few records."""

from __future__ import annotations

import pytest

from tacit.running.evaluating import exact_auc
from tacit_studies.floors.encrypted_private import COVERAGE, Case, cases
from tacit_studies.floors.rows import MEAN
from tacit_studies.registry import TABLES
from tacit_studies.rows import Beside, Measured
from tacit_studies.score_maps import AS_THEY_ARE, TWO_DIGITS
from tests.studies.sources import few, real_clients


@pytest.fixture(scope="module")
def rows() -> list[Measured]:
    return TABLES["encrypted-private"].measure(few(real_clients(300, 300)), repeats=40, seed=1)


def test_every_case_has_an_error_and_a_coverage(rows: list[Measured]) -> None:
    assert {(row.row, row.column) for row in rows} == {
        (case.name, column) for case in cases() for column in (MEAN, COVERAGE)
    }
    assert len({row.row for row in rows}) == 10


def test_only_smooth_scores_without_colluders_have_a_target(rows: list[Measured]) -> None:
    reached = {case.name for case in cases() if case.reach is not None}
    assert reached == {row.row for row in rows if isinstance(row, Beside) and row.floor is not None}
    assert Case(1.0, TWO_DIGITS).reach is Case(1.0, AS_THEY_ARE, colluding=0.2).reach is None


def test_the_floor_is_laplace_noise_of_one_records_largest_influence(rows: list[Measured]) -> None:
    known = real_clients(300, 300)
    exact = exact_auc(known)
    floors = {row.row: row.floor for row in rows if isinstance(row, Beside) and row.floor}
    assert floors[Case(1.0, AS_THEY_ARE).name] == pytest.approx(exact / 300)
    assert floors[Case(0.1, AS_THEY_ARE).name] == pytest.approx(exact / 30)
