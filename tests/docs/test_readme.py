"""The README can be typed, once there are the files of ten hospitals that it speaks of."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import tacit
from tests.docs.test_commands import ROOT, blocks, check

README = ROOT / "README.md"
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


def test_adjacency_is_explained_before_the_first_table_that_names_one() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.index("*adjacency*") < text.index("record adjacency")
