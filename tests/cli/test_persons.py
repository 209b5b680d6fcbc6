"""``--person`` and ``--per-person``, and weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal import content_of, run, succeeded


def test_persons_at_two_clients_are_on_the_screen_and_not_in_the_result(folder: Path) -> None:
    options = ["--protocol", "dpauc", "--epsilon", 1, "--person", "patient", "--json"]
    Path("more.csv").write_text("score,label,patient\n0.2,0,0\n0.9,1,9999\n")
    done = succeeded(run("evaluate", "visits.csv", "more.csv", *options))
    assert "1 person with records at two clients or more" in done.stderr
    assert "two clients or more" not in done.stdout


def test_a_split_counts_no_more_records_than_one_client_would(folder: Path) -> None:
    options = ["--protocol", "dpauc", "--epsilon", 60, "--person", "patient"]
    content = content_of("evaluate", "visits.csv", "--split", 20, "--seed", 1, *options)
    assert content["positives"] + content["negatives"] == pytest.approx(1667, rel=0.05)


def test_a_plan_is_about_persons() -> None:
    scenario = ["--records", 4000, "--positives", 400, "--clients", 10, "--epsilon", 1]
    planned = run("plan", *scenario, "--trust", "each", "--per-person", 2)
    assert "at most 2 records count at a client (epsilon 0.5 a record)" in planned.stdout
