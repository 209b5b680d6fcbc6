"""``--json [FILE]`` in every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tacit.cli import main

RECORDS = "score,label\n" + "\n".join(f"0.{i % 90 + 10},{i % 3 % 2}" for i in range(200))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "north.csv").write_text(RECORDS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(main, [*arguments, "--protocol", "exact"])


def test_alone_it_takes_the_place_of_the_text(folder: Path) -> None:
    printed = run("evaluate", "north.csv", "--json")
    assert json.loads(printed.stdout)["protocol"]["name"] == "exact"


def test_a_file_of_records_after_it_is_never_written_over(folder: Path) -> None:
    printed = run("evaluate", "--json", "north.csv")
    assert json.loads(printed.stdout)["clients"] == 1
    assert (folder / "north.csv").read_text() == RECORDS


@pytest.mark.parametrize("form", [("--json", "out.json"), ("--json=out.json",)])
def test_with_a_file_the_text_is_printed_as_well(folder: Path, form: tuple[str, ...]) -> None:
    printed = run("evaluate", "north.csv", *form)
    assert printed.stdout.startswith("protocol ")
    assert json.loads((folder / "out.json").read_text())["clients"] == 1


def test_a_file_that_cannot_be_written_is_refused_first(folder: Path) -> None:
    (folder / "out.json").mkdir()
    printed = run("evaluate", "absent.csv", "--json", "out.json")
    assert printed.exit_code != 0
    assert "out.json cannot be written" in printed.output
