"""``--missing`` and ``--count-missing``: what is printed, written, and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.results.saved.reading import check_result
from tests.terminal import run


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of 600 records, of which 30 have no score and 20 no label."""
    scores, labels = tacit.binormal_scores(200, 400, 0.8, seed=0)
    rows = [
        f"{'' if i % 20 == 0 else s},{'NA' if i % 30 == 1 else y},{i % 3}"
        for i, (s, y) in enumerate(zip(scores, labels, strict=True))
    ]
    path = tmp_path_factory.mktemp("ward") / "ward.csv"
    path.write_text("score,label,room\n" + "\n".join(rows) + "\n")
    return str(path)


HISTOGRAM = ("--protocol", "score-histogram", "--epsilon", 8, "--seed", 1)


def test_by_default_an_incomplete_record_is_an_error(ward: str) -> None:
    done = run("evaluate", ward, *HISTOGRAM)
    assert done.exit_code == 2
    assert "has no value in" in done.stderr


def test_exact_counts_are_on_the_screen_and_in_no_result(ward: str, tmp_path: Path) -> None:
    """What may be passed on says that records were left out, and not how many."""
    done = run("evaluate", ward, "--client", "room", "--missing", "drop", "--json", *HISTOGRAM)
    assert done.exit_code == 0
    assert "50 records were left out: 30 without a score, 20 without a label" in done.stderr
    assert "20 without a label (0 10, 1 30, 2 10)" in done.stderr
    content = json.loads(done.stdout)
    check_result(content)
    assert content["missing"] == {"private": True, "counted": False}
    shown = run("evaluate", ward, "--client", "room", "--missing", "drop", *HISTOGRAM)
    assert "records left out" in shown.stdout
    assert "how many is not said" in shown.stdout
    (tmp_path / "r.json").write_text(done.stdout)
    report = run("report", tmp_path / "r.json", "-o", tmp_path / "r.html")
    assert report.exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "How many they are is not in this result" in page
    assert "outside every guarantee" not in page


def test_exact_counts_stand_beside_exact_figures(ward: str, tmp_path: Path) -> None:
    options = ("--client", "room", "--missing", "drop", "--exact")
    done = run("evaluate", ward, *options, *HISTOGRAM)
    assert "50: 30 without a score, 20 without a label (counted here, not private)" in done.stdout
    written = run("evaluate", ward, *options, "--json", *HISTOGRAM)
    content = json.loads(written.stdout)
    check_result(content)
    assert content["missing"]["records"] == 50
    assert [each["scores"] for each in content["missing"]["by_client"]] == [10, 10, 10]
    (tmp_path / "r.json").write_text(written.stdout)
    assert run("report", tmp_path / "r.json", "-o", tmp_path / "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "30 records without a score and 20 without a label were left out" in page
    assert "exactly how many records were left out, which is outside every guarantee" in page


@pytest.mark.parametrize("exact", [True, False])
def test_groups_say_how_many_records_of_all_were_left_out_beside_exact_figures(
    ward: str, tmp_path: Path, exact: bool
) -> None:
    options = ("--groups", "room", "--missing", "drop", *["--exact"] * exact, *HISTOGRAM)
    shown = run("evaluate", ward, *options).stdout
    assert ("50: 30 without a score, 20 without a label" in shown) is exact
    written = run("evaluate", ward, *options, "--json").stdout
    counts = {"private": False, "records": 50, "scores": 30, "labels": 20}
    assert json.loads(written)["missing"] == (
        counts if exact else {"private": True, "counted": False}
    )
    (tmp_path / "g.json").write_text(written)
    assert run("report", tmp_path / "g.json", "-o", tmp_path / "g.html").exit_code == 0
    page = (tmp_path / "g.html").read_text()
    assert ("30 records without a score and 20 without a label were left out" in page) is exact
    assert ("exactly how many records were left out, which is outside" in page) is exact


def test_names_that_are_not_written_are_not_written_with_counts(ward: str) -> None:
    options = ("--client", "room", "--missing", "drop", "--no-names", "--json")
    exact = run("evaluate", ward, *options, "--exact", *HISTOGRAM)
    assert "by_client" not in json.loads(exact.stdout)["missing"]
    assert "were left out" not in exact.stderr
    assert "20 without a label. The exact" in run("evaluate", ward, *options, *HISTOGRAM).stderr


def test_a_noisy_count_costs_a_part_of_epsilon(ward: str, tmp_path: Path) -> None:
    options = ("--missing", "drop", "--count-missing", 1, "--json", *HISTOGRAM)
    done = run("evaluate", ward, "--client", "room", *options)
    content = json.loads(done.stdout)
    check_result(content)
    assert "were left out" not in done.stderr
    assert content["spent"]["epsilon"] == 8.0
    assert content["protocol"]["epsilon"] == 7.0
    missing = content["missing"]
    assert missing["private"]
    assert missing["spent"]["epsilon"] == 1.0
    assert missing["interval"][0] <= 50 <= missing["interval"][1]
    assert not {"scores", "labels", "by_client"} & missing.keys()
    (tmp_path / "r.json").write_text(done.stdout)
    run("report", tmp_path / "r.json", "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "counted with noise for epsilon 1, record adjacency, a part of what was spent" in page
    assert "outside every guarantee" not in page


def test_split_clients_have_shares_of_what_was_left_out(ward: str) -> None:
    options = ("--split", 4, "--missing", "drop", "--json", *HISTOGRAM)
    assert json.loads(run("evaluate", ward, *options).stdout)["missing"]["records"] == 50


def test_groups_say_on_the_screen_what_was_left_out(ward: str) -> None:
    options = ("--groups", "room", "--group-name", "0", "--group-name", "1", "--group-name", "2")
    done = run("evaluate", ward, *options, "--missing", "drop", *HISTOGRAM)
    assert "50 records were left out: 30 without a score, 20 without a label" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--count-missing", 0.1], "--count-missing needs --missing drop"),
        (["--missing", "drop", "--count-missing", 8], "must be below epsilon, 8, got 8.0"),
        (["--missing", "drop", "--count-missing", -1], "epsilon must be positive"),
        (["--missing", "drop", "--person", "room", "--count-missing", 1], "cannot be used where a"),
        (
            ["--missing", "drop", "--groups", "room", "--count-missing", 1],
            "cannot be used with --g",
        ),
    ],
)
def test_what_cannot_be_is_refused(ward: str, options: list[Any], said: str) -> None:
    done = run("evaluate", ward, *HISTOGRAM, *options)
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_database_and_a_protocol_without_epsilon_are_refused(ward: str) -> None:
    table = ("duckdb://x.db", "--table", "t", "--missing", "drop")
    assert "leave records out in --query" in run("evaluate", *table, *HISTOGRAM).stderr
    exact = ("--protocol", "exact", "--missing", "drop", "--count-missing", 1)
    assert "has no epsilon of which" in run("evaluate", ward, *exact).stderr
