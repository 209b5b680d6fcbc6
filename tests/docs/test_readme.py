"""The README can be typed, once there are the files of ten hospitals that it speaks of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import tacit
from tests.docs.test_commands import ROOT, blocks, check

README = ROOT / "README.md"
FIRST_SCREEN = 25
"""Lines that a terminal or a page shows first."""
MOST_LINES = 170
"""What can be read in a minute or two, with the tables and the lists of pages."""


def hospitals(folder: Path) -> None:
    random = np.random.default_rng(1)
    for hospital in range(10):
        scores, labels = tacit.binormal_scores(200, 1800, 0.8, seed=hospital)
        order = random.permutation(labels.size)
        table = pa.table({"score": scores[order], "label": labels[order]})
        pa_csv.write_csv(table, folder / f"hospital-{hospital}.csv")


def test_every_command_of_the_readme_can_be_typed(tmp_path: Path) -> None:
    hospitals(tmp_path)
    shown = blocks(README.read_text(encoding="utf-8"))
    assert len(shown) >= 3
    for block in shown:
        if block.kind == "console":
            check(block, tmp_path)


def test_the_readme_is_short_and_shows_the_report() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert (ROOT / picture).stat().st_size < 120_000


def test_the_first_screen_has_the_commands_of_a_fresh_machine() -> None:
    text = README.read_text(encoding="utf-8")
    screen = "\n".join(text.splitlines()[:FIRST_SCREEN])
    commands = "".join(re.findall(r"```sh\n(.*?)```", screen, re.DOTALL))
    named = re.findall(r"^make (\w+)", commands, re.MULTILINE)
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert named == ["demo", "test"]
    assert all(re.search(rf"^{name}: (?:setup|\$\(DEMO\))$", rules, re.MULTILINE) for name in named)
    assert re.search(r"`tacit run`\s+needs `pip install '\.\[federation\]'`", screen)


def test_the_extra_of_a_federation_stands_beside_its_command() -> None:
    text = README.read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert any(each.startswith("flwr") for each in project["optional-dependencies"]["federation"])
    assert not any(each.startswith("flwr") for each in project["dependencies"])
    before = text[: text.index("\ntacit run ")].splitlines()[-4:]
    assert any("`federation`" in line for line in before)


def test_adjacency_is_explained_before_the_first_table_that_names_one() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("*adjacency*") < text.index("record adjacency")
