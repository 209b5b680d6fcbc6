"""``--missing`` and ``--count-missing``: what is printed, written, and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tacit
from tests.terminal import content_of, page_of, run


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


DROPPED = ("--missing", "drop")
BY_ROOM = ("--client", "room", *DROPPED)
LEFT_OUT = "50 records were left out: 30 without a score, 20 without a label"
ON_PAGE = "30 records without a score and 20 without a label were left out"
OUTSIDE = "exactly how many records were left out, which is outside every guarantee"


def test_exact_counts_are_on_the_screen_and_in_no_result(ward: str, tmp_path: Path) -> None:
    """What may be passed on says that records were left out, and not how many."""
    assert "has no value in" in run("evaluate", ward, *HISTOGRAM).stderr
    done = run("evaluate", ward, *BY_ROOM, *HISTOGRAM)
    assert f"{LEFT_OUT} (0 10, 1 30, 2 10)" in done.stderr
    assert "records left out" in done.stdout
    assert "how many is not said" in done.stdout
    content = content_of("evaluate", ward, *BY_ROOM, *HISTOGRAM)
    assert content["missing"] == {"private": True, "counted": False}
    page = page_of(content, tmp_path)
    assert "How many they are is not in this result" in page
    assert "outside every guarantee" not in page


def test_exact_counts_stand_beside_exact_figures(ward: str, tmp_path: Path) -> None:
    options = ("evaluate", ward, *BY_ROOM, "--exact", *HISTOGRAM)
    printed = run(*options).stdout
    assert "50: 30 without a score, 20 without a label (counted here, not private)" in printed
    content = content_of(*options)
    assert (content["missing"]["private"], content["missing"]["records"]) == (False, 50)
    assert [each["scores"] for each in content["missing"]["by_client"]] == [10, 10, 10]
    page = page_of(content, tmp_path)
    assert ON_PAGE in page
    assert OUTSIDE in page


@pytest.mark.parametrize("exact", [True, False])
def test_groups_say_how_many_records_were_left_out(ward: str, tmp_path: Path, exact: bool) -> None:
    names = [part for room in "012" for part in ("--group-name", room)]
    groups = ("--groups", "room", *names)
    options = ("evaluate", ward, *groups, *DROPPED, *["--exact"] * exact, *HISTOGRAM)
    shown = run(*options)
    assert ("50: 30 without a score, 20 without a label" in shown.stdout) is exact
    assert (LEFT_OUT in shown.stderr) is not exact
    content = content_of(*options)
    counts = {"private": False, "records": 50, "scores": 30, "labels": 20}
    assert content["missing"] == (counts if exact else {"private": True, "counted": False})
    (tmp_path / "g.json").write_text(json.dumps(content))
    assert run("report", tmp_path / "g.json", "-o", tmp_path / "g.html").exit_code == 0
    page = (tmp_path / "g.html").read_text()
    assert (ON_PAGE in page, OUTSIDE in page) == (exact, exact)


def test_names_that_are_not_written_are_not_written_with_counts(ward: str) -> None:
    options = ("evaluate", ward, *BY_ROOM, "--no-names", *HISTOGRAM)
    assert "by_client" not in content_of(*options, "--exact")["missing"]
    assert "were left out" not in run(*options, "--exact").stderr
    assert "20 without a label. The exact" in run(*options).stderr


def test_a_noisy_count_costs_a_part_of_epsilon(ward: str, tmp_path: Path) -> None:
    done = run("evaluate", ward, *BY_ROOM, "--count-missing", 1, "--json", *HISTOGRAM)
    content = json.loads(done.stdout)
    assert "were left out" not in done.stderr
    assert content["spent"]["epsilon"] == 8.0
    assert content["protocol"]["epsilon"] == 7.0
    missing = content["missing"]
    assert missing["private"]
    assert missing["spent"]["epsilon"] == 1.0
    assert missing["interval"][0] <= 50 <= missing["interval"][1]
    assert not {"scores", "labels", "by_client"} & missing.keys()
    page = page_of(content, tmp_path)
    assert "counted with noise for epsilon 1, record adjacency, a part of what was spent" in page
    assert "outside every guarantee" not in page


def test_split_clients_have_shares_of_what_was_left_out(ward: str) -> None:
    content = content_of("evaluate", ward, "--split", 4, *DROPPED, *HISTOGRAM)
    assert content["missing"]["records"] == 50
