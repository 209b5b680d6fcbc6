import math

import numpy as np
import pytest

from tacit import FedAUC, Protocol, PublishedFedAUC, PublishedHistogram, ScoreHistogram
from tacit_studies.measuring import Bench, Job, Split, Table, quotient
from tacit_studies.registry import TABLES
from tacit_studies.rows import Row
from tacit_studies.spelling import table_settings
from tests.studies.sources import FEW, few


def numbered(count: int) -> Table:
    """A table whose rows say which job they come from."""

    def job(number: int) -> Job:
        return Job(lambda bench: [Row("t", str(number), "c", None, bench.repeats)], number)

    return Table("t", "", lambda: [job(number) for number in range(count)], repeats=7)


def test_rows_keep_the_order_of_the_jobs_and_progress_reaches_one() -> None:
    heard: list[float] = []
    rows = numbered(20).measure(few(), progress=heard.append)
    assert [row.row for row in rows] == [str(number) for number in range(20)]
    assert heard == sorted(heard)
    assert (len(heard), heard[-1]) == (20, 1.0)


def test_jobs_that_need_more_records_are_left_out() -> None:
    assert len(numbered(FEW.records + 9).measure(few())) == FEW.records + 1


def test_a_table_has_its_own_number_of_repeats() -> None:
    assert {row.ours for row in numbered(2).measure(few())} == {7}
    assert {row.ours for row in numbered(2).measure(few(), repeats=3)} == {3}
    with pytest.raises(ValueError, match="repeats must be at least 1, got 0"):
        numbered(1).measure(few(), repeats=0)


def test_an_error_in_a_job_reaches_the_caller() -> None:
    def broken(bench: Bench) -> list[Row]:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        Table("t", "", lambda: [Job(broken)] * 3).measure(few())


def test_a_seed_repeats_every_row_and_another_does_not() -> None:
    table = TABLES["fedauc-table-1"]
    first, again, other = (table.measure(few(), 2, seed) for seed in (4, 4, 5))
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_a_bench_makes_scores_and_splits_once() -> None:
    bench = Bench(few(), 2, 0)
    assert bench.clients(Split(10)) is bench.clients(Split(10))
    assert bench.scored(1)[0] is bench.scored(1)[0]
    assert bench.clients(Split(10, "score")) is not bench.clients(Split(10))
    assert bench.clients(Split(large=True)).records == 2_000


def test_equal_draws_are_equal_noise() -> None:
    bench = Bench(few(), 5, 0)
    narrow, wide = (
        PublishedFedAUC(epsilon, allocation="fixed(sensitivity=global)")
        for epsilon in (400.0, 200.0)
    )
    exact = bench.exact(Split(10))
    same = [bench.estimates(p, Split(10), draws="one") - exact for p in (narrow, wide)]
    assert np.allclose(same[1], 2 * same[0], rtol=0.05)
    own = [bench.estimates(p, Split(10)) - exact for p in (narrow, wide)]
    assert not np.allclose(own[1], 2 * own[0], rtol=0.05)


def test_nothing_to_divide_by_gives_no_number() -> None:
    assert quotient(1.0, 2.0) == 0.5
    assert math.isnan(quotient(0.0, 0.0))


SEEDS = [
    (PublishedHistogram("secure-sum", 1.0, aim="curves"), 16244281362233009043),
    (ScoreHistogram("exact-sum", height=3, aim="auc", scale="even"), 6094658179223879928),
    (PublishedHistogram("local", 2.0, aim="all"), 5072967195606724882),
    (FedAUC(1.0), 3840340499046965773),
]
"""Protocols with the seeds that the committed tables were measured with."""


@pytest.mark.parametrize(("protocol", "seed"), SEEDS)
def test_seeds_are_those_of_the_committed_tables(protocol: Protocol, seed: int) -> None:
    """The words for trust and aim have changed since, there are scales, the tables are the same."""
    assert Bench(few(), 1, 0).seed("auc", protocol, None) == seed


def test_rows_are_called_as_in_the_committed_tables() -> None:
    settings = table_settings(PublishedHistogram("secure-sum", 1.0, aim="curves"))
    assert (settings["trust"], settings["aim"]) == ("distributed-dp", "cdf")
    assert table_settings(FedAUC(1.0)) == {"epsilon": 1.0, "mechanism": "staircase"}
