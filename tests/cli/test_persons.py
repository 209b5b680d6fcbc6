"""``--person`` and ``--per-person``, and weights."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.terminal import refusal_of, run

PRIVATE = ("dpauc", "fedauc", "score-histogram", "two-round-auc", "hierarchical-auc")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    home = tmp_path_factory.mktemp("visits")
    paths = []
    for number, name in enumerate(("north", "south")):
        rng = np.random.default_rng(number)
        labels = rng.integers(0, 2, 2000)
        scores = np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1)
        patients = rng.integers(0, 400, 2000) + 399 * number
        rows = zip(scores, labels, patients, strict=True)
        path = home / f"{name}.csv"
        path.write_text(
            "score,label,patient\n" + "".join(f"{s},{label},{who}\n" for s, label, who in rows)
        )
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("protocol", PRIVATE)
def test_every_private_protocol_runs_about_persons(files: list[str], protocol: str) -> None:
    options = ["--protocol", protocol, "--epsilon", 4, "--person", "patient", "--per-person", 2]
    done = run("evaluate", files[0], "--split", 5, "--seed", 1, "--json", *options)
    assert done.exit_code in (0, 3), done.output
    content = json.loads(done.stdout)
    assert content["spent"]["epsilon"] == pytest.approx(4.0)
    assert content["spent"]["adjacency"].startswith("person")
    assert content["person"]["epsilon_of_a_record"] == pytest.approx(2.0)
    assert content["protocol"]["epsilon"] == 4.0


def test_persons_at_two_clients_are_on_the_screen_and_not_in_the_result(files: list[str]) -> None:
    options = ["--protocol", "dpauc", "--epsilon", 1, "--person", "patient", "--json"]
    done = run("evaluate", *files, *options)
    assert done.exit_code == 0
    assert "1 person with records at two clients or more" in done.stderr
    assert "two clients or more" not in done.stdout


def test_a_split_counts_no_more_records_than_one_client_would(files: list[str]) -> None:
    options = ["--protocol", "dpauc", "--epsilon", 60, "--person", "patient", "--json"]
    content = json.loads(run("evaluate", files[0], "--split", 20, "--seed", 1, *options).stdout)
    assert content["positives"] + content["negatives"] == pytest.approx(400, rel=0.05)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--per-person", 2], "--per-person needs --person"),
        (["--person", "patient", "--per-person", "all"], "declared in advance"),
        (["--person", "patient", "--per-person", 0], "0 is not in the range"),
        (["--person", "nobody"], "has no column 'nobody'"),
        (["--person", "patient", "--per-person", 5000], "epsilon must be at least 5"),
        (["--weights", "score"], "weights on records are not supported"),
        (["--protocol=exact", "--person", "patient"], "protects no person"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    files: list[str], options: list[Any], sentence: str
) -> None:
    usual = [] if "--protocol=exact" in options else ["--protocol", "dpauc", "--epsilon", 1]
    done = run("evaluate", files[0], *usual, *options)
    assert sentence in refusal_of(done)


def test_two_models_and_a_plan(files: list[str]) -> None:
    options = ["--score", "score", "--versus", "label", "--epsilon", 1]
    done = run("compare", files[0], *options, "--split", 4, "--person", "patient", "--seed", 1)
    assert done.exit_code == 0, done.output
    assert "a person, of whom at most 1 record counts" in done.stdout
    scenario = ["--records", 4000, "--positives", 400, "--clients", 10, "--epsilon", 1]
    planned = run("plan", *scenario, "--trust", "each", "--per-person", 2)
    assert "at most 2 records count at a client (epsilon 0.5 a record)" in planned.stdout
