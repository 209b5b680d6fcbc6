"""``tacit evaluate`` without ``--protocol``, and protocol names in any spelling."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from click.testing import Result

import tacit
from tests import terminal

HOSPITALS, RECORDS = 3, 1_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hospitals, and the same records with the labels of half of them changed."""
    made = tmp_path_factory.mktemp("hospitals")
    for hospital in range(HOSPITALS):
        scores, labels = tacit.binormal_scores(RECORDS // 5, 4 * RECORDS // 5, 0.8, seed=hospital)
        for name, truth in (("north", labels), ("moved", np.roll(labels, RECORDS // 2))):
            table = pa.table({"score": scores, "label": truth})
            pa_csv.write_csv(table, made / f"{name}-{hospital}.csv")
    return made


def run(folder: Path, line: str, name: str = "north") -> Result:
    files = [str(folder / f"{name}-{hospital}.csv") for hospital in range(HOSPITALS)]
    return terminal.run("evaluate", *files, *shlex.split(line))


def test_the_default_says_what_it_chose_which_can_be_pasted_and_depends_on_no_label(
    folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "first.json"
    result = run(folder, f"--epsilon 1 --seed 1 --json={file}")
    assert result.exit_code == 0, result.stderr
    for part in ("chosen", "3 clients", "at most 5,000 records", "taken to be public"):
        assert part in result.stdout
    first = json.loads(file.read_text())
    assert "trust secure-sum" in first["choice"]
    again = json.loads(run(folder, f"{first['choice'].split(':')[0]} --seed 1 --json").stdout)
    assert again["auc"] == first["auc"]
    assert "choice" not in again
    other = json.loads(run(folder, "--epsilon 1 --seed 1 --json", "moved").stdout)
    assert first["choice"] == other["choice"]
    assert first["auc"] != other["auc"]


def test_simulated_clients_are_the_ones_that_count(folder: Path) -> None:
    choice = json.loads(run(folder, "--epsilon 1 --split 20 --seed 1 --json").stdout)["choice"]
    assert "for 20 clients" in choice


def test_a_trust_decides(folder: Path) -> None:
    result = json.loads(run(folder, "--epsilon 1 --trust Each --seed 1 --json").stdout)
    assert (result["protocol"]["name"], result["protocol"]["trust"]) == ("score-histogram", "each")
    assert "hides a record" in result["choice"]


@pytest.mark.parametrize("word", ["ScoreHistogram", "score_histogram", "SCORE-HISTOGRAM"])
def test_a_protocol_is_named_in_any_spelling(folder: Path, word: str) -> None:
    result = run(folder, f"--protocol {word} --epsilon 1 --height 4 --seed 1")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split()[1] == "score-histogram"


def test_a_plan_prints_a_command_that_runs(folder: Path) -> None:
    line = "--records 3000 --positives 600 --clients 3 --epsilon 1 --trust secure-sum"
    printed = terminal.run("plan", *line.split()).stdout
    (command,) = [each for each in printed.splitlines() if each.startswith("Run it: ")]
    _, options = command.split(" FILES ")
    assert run(folder, f"{options} --seed 1").exit_code == 0
