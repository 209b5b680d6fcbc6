"""``tacit evaluate`` without ``--protocol``, and protocol names in any spelling."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from click.testing import Result

from tests import terminal

FILES = ("north.csv", "south.csv", "east.csv")


def run(line: str, files: Sequence[str] = FILES) -> Result:
    return terminal.run("evaluate", *files, *shlex.split(line))


def content(line: str, files: Sequence[str] = FILES) -> dict[str, Any]:
    return terminal.content_of("evaluate", *files, *shlex.split(line))


@pytest.mark.usefixtures("folder")
def test_the_default_says_what_it_chose_which_can_be_pasted_and_depends_on_no_label() -> None:
    result = terminal.succeeded(run("--epsilon 1 --seed 1 --json=first.json"))
    for part in ("chosen", "3 clients", "at most 5,000 records", "taken to be public"):
        assert part in result.stdout
    first = json.loads(Path("first.json").read_text())
    assert "trust secure-sum" in first["choice"]
    again = content(f"{first['choice'].split(':')[0]} --seed 1")
    assert again["auc"] == first["auc"]
    assert "choice" not in again
    for name in FILES:
        table = pa_csv.read_csv(name)
        moved = pa.array(np.roll(table["label"].to_numpy(), 500))
        pa_csv.write_csv(table.set_column(1, "label", moved), f"moved-{name}")
    other = content("--epsilon 1 --seed 1", [f"moved-{name}" for name in FILES])
    assert first["choice"] == other["choice"]
    assert first["auc"] != other["auc"]


def test_simulated_clients_are_the_ones_that_count(folder: Path) -> None:
    assert "for 20 clients" in content("--epsilon 1 --split 20 --seed 1")["choice"]


def test_a_trust_decides(folder: Path) -> None:
    result = content("--epsilon 1 --trust Each --seed 1")
    assert (result["protocol"]["name"], result["protocol"]["trust"]) == ("score-histogram", "each")
    assert "hides a record" in result["choice"]


@pytest.mark.parametrize("word", ["ScoreHistogram", "score_histogram", "SCORE-HISTOGRAM"])
def test_a_protocol_is_named_in_any_spelling(folder: Path, word: str) -> None:
    result = terminal.succeeded(run(f"--protocol {word} --epsilon 1 --height 4 --seed 1"))
    assert result.stdout.split()[1] == "score-histogram"


def test_a_plan_prints_a_command_that_runs(folder: Path) -> None:
    line = "--records 3000 --positives 600 --clients 3 --epsilon 1 --trust secure-sum"
    printed = terminal.run("plan", *line.split()).stdout
    (command,) = [each for each in printed.splitlines() if each.startswith("Run it: ")]
    _, options = command.split(" FILES ")
    assert run(f"{options} --seed 1").exit_code == 0
