"""Advertisers' labels and a platform's scores, aligned and measured as the page says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.metrics.ranking import auc
from tacit.privacy.cost import Adjacency, Cost
from tests.examples.conftest import EXAMPLES
from tests.terminal import in_shell, typed

NAMES = ("north", "south", "west")
SIGMAS = 5
"""A normal error beyond it has probability 5.7e-7: the false alarm of the comparison."""


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_the_page_can_be_typed(tmp_path: Path, whole: bool) -> None:
    if whole:
        pytest.importorskip("flwr")
    home = tmp_path / "examples" / "vertical"
    made = shutil.ignore_patterns(".tacit", "platform", "*.csv", "*.key*", "ledger*", "__pycache__")
    shutil.copytree(EXAMPLES / "vertical", home, ignore=made)
    lines = [line for line in (home / "README.md").read_text().splitlines() if line[:4] == "    "]
    for line in lines[: None if whole else -1]:
        typed(line.strip(), tmp_path)
    own, aligned = (
        pd.concat([pd.read_csv(home / name / file) for name in NAMES])
        for file in ("clicks.csv", "records.csv")
    )
    clear = own.merge(pd.read_csv(home / "platform" / "clicks.csv"), on="click")
    exact = auc(clear["score"].to_numpy(), clear["label"].to_numpy(np.int8))
    by_rank = auc(aligned["rank"].to_numpy(float), aligned["label"].to_numpy(np.int8))
    assert len(aligned) == len(clear)
    assert by_rank == pytest.approx(exact, abs=1e-12)
    if whole:
        result = json.loads((tmp_path / "out" / "vertical.json").read_text())
        error = result["auc"]["standard_error"]
        assert abs(result["auc"]["value"] - exact) < SIGMAS * error < 0.05
        assert result["spent"] == Cost(1.0, adjacency=Adjacency.LABEL).to_dict()
    shutil.copy(home / "south" / "ranks.csv", home / "north")
    assert typed(lines[2].strip(), tmp_path).startswith("0 of"), "tags of another advertiser"
    for text, why in (("a,1\na,0\n", "names one click twice"), ("a,1\n", "one label only")):
        (home / "north" / "clicks.csv").write_text(f"click,label\n{text}")
        assert why in in_shell(lines[2], tmp_path).stderr
