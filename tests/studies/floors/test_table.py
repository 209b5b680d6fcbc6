"""Errors beside their floors, on few records, and what their rows consist of."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit import Adjacency, Clients, Cost, ScoreHistogram
from tacit_studies.floors.rows import MEAN, STD, Errors, beside, floor_of, spread_of, sum_floor
from tacit_studies.floors.scales import FEW, RARE, SAMPLES, _drawn
from tacit_studies.floors.table import AS_IT_IS
from tacit_studies.measuring import Bench
from tacit_studies.registry import TABLES
from tacit_studies.rows import Beside, Measured, summary
from tacit_studies.score_maps import (
    AS_THEY_ARE,
    DENSE,
    MOVED,
    OTHER_SCALES,
    TWO_DIGITS,
    ScoreMap,
)
from tests.studies.sources import check_rows, few, real_clients

CRITEO_FLOORS = {
    "distributed-dp, record, epsilon 1": 3.25e-6,
    "distributed-dp, replace, epsilon 1": 4.4e-6,
    "distributed-dp, record, epsilon 0.1": 3.25e-5,
    "each, epsilon 1, K=10": 1.5e-5,
    "each, epsilon 1, K=1,000": 1.5e-4,
}


@pytest.fixture(scope="module")
def rows() -> list[Measured]:
    return TABLES["floor"].measure(few(real_clients()), repeats=2, seed=1)


def test_every_row_has_a_floor_or_is_a_ratio_or_a_size(rows: list[Measured]) -> None:
    assert all(isinstance(row, Beside) for row in rows)
    without = {row.column for row in rows if isinstance(row, Beside) and row.floor is None}
    assert without == {"largest / least mean |error|", "bytes a client"}


def test_every_row_begins_with_the_name_of_its_part(rows: list[Measured]) -> None:
    names = [job.name for job in TABLES["floor"].jobs()]
    assert len(set(names)) == len(names)
    assert all(row.row.startswith(tuple(names)) for row in rows)


def test_rows_survive_json_and_name_why_they_miss(rows: list[Measured]) -> None:
    check_rows(rows)
    missed = [row for row in rows if isinstance(row, Beside) and not row.met]
    assert missed
    assert all(row.reason for row in missed)
    assert summary(rows).targets == len(rows)


def test_floors_on_criteo_are_those_that_were_published() -> None:
    for case in AS_IT_IS:
        assert case.floor_on_criteo == pytest.approx(CRITEO_FLOORS[case.name], rel=0.035)
        assert case.reach > case.floor_on_criteo


def test_a_floor_is_the_error_of_laplace_noise_of_the_largest_change() -> None:
    scores, labels = np.linspace(0, 1, 60), (np.arange(60) % 3 == 0).astype(np.int8)
    clients = Clients.from_arrays(scores, labels)
    won = (scores[labels == 1, None] > scores[labels == 0]).mean()
    scale = max(won, 1 - won) / 20
    noise = np.random.default_rng(0).laplace(scale=scale / 2.0, size=200_000)
    floor = floor_of(ScoreHistogram(epsilon=2.0), clients)
    assert floor == pytest.approx(np.mean(np.abs(noise)), rel=0.01)
    assert sum_floor(Cost(2.0, adjacency=Adjacency.REPLACE), won, 20) == pytest.approx(1 / 40)


def test_errors_tell_why_they_are_large() -> None:
    rng = np.random.default_rng(0)
    noise = rng.laplace(size=400)
    assert Errors(noise).reason(MEAN, 0.5) == "noise beyond that of one sum"
    assert "within what 400 repeats tell" in Errors(noise).reason(MEAN, 0.97)
    assert "a mean error of 2" in Errors(noise / 10 + 2).reason(MEAN, 0.5)
    silent = Errors(np.array([math.nan, 0.1]))
    assert silent.reason(STD, 0.5) == "1 of 2 runs gave no figure"
    row = beside(("t", "r", MEAN), silent, 0.5, None, Errors(noise))
    assert (row.met, row.verdict) == (False, "NO: 1 of 2 runs gave no figure")


def test_the_spread_of_errors_names_both_ends() -> None:
    errors = {
        name: Errors(np.array([size])) for name, size in zip("abc", (2.0, -1.0, 4.0), strict=True)
    }
    assert spread_of(errors) == (4.0, "4.00e+00 at c, 1.00e+00 at b")
    ratio, told = spread_of(errors | {"d": Errors(np.array([math.nan]))})
    assert math.isnan(ratio)
    assert told == "no figure in some runs at d"


def test_samples_keep_few_positives_or_are_balanced() -> None:
    known = real_clients()
    bench = Bench(few(known), 1, 0)
    rare = _drawn(RARE, 3, bench)
    assert int(rare.labels.sum()) == round(FEW * 900)
    assert rare.records - int(rare.labels.sum()) == 2_100
    assert np.isin(rare.scores, known.scores).all()
    balanced = _drawn(next(each for each in SAMPLES if each.records == 2_000), None, bench)
    assert balanced.count == balanced.records
    assert np.bincount(balanced.labels).tolist() == [1_000, 900]


@pytest.mark.parametrize(
    "score_map", [AS_THEY_ARE, DENSE, TWO_DIGITS, *MOVED, *OTHER_SCALES], ids=lambda m: m.name
)
def test_a_map_rises_and_keeps_records_in_their_places(score_map: ScoreMap) -> None:
    clients = real_clients(30, 70)
    mapped = score_map.mapped(clients)
    order = np.argsort(clients.scores, kind="stable")
    assert np.all(np.diff(mapped.scores[order]) >= 0)
    np.testing.assert_array_equal(mapped.labels, clients.labels)
    assert mapped.unit == score_map.unit
