"""Advertisers' labels and a platform's scores, aligned and measured as the page says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.metrics.ranking import auc
from tests.examples.conftest import EXAMPLES
from tests.terminal import in_shell, typed

NAMES = ("north", "south", "west")
SIGMAS = 5


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_the_page_can_be_typed(tmp_path: Path, whole: bool) -> None:
    home, source = tmp_path / "examples" / "vertical", EXAMPLES / "vertical"
    for name in ("README.md", "plan.toml", *(f"{name}/party.toml" for name in NAMES)):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, home / name)
    for script in source.glob("*.py"):
        shutil.copy(script, home)
    page = (home / "README.md").read_text()
    *lines, last = [line.strip() for line in page.splitlines() if line.startswith("    ")]
    for line in lines:
        typed(line, tmp_path)
    platform = pd.read_csv(home / "platform" / "clicks.csv")
    own = [pd.read_csv(home / name / "clicks.csv") for name in NAMES]
    clear = pd.concat(own).merge(platform, on="click")
    records = pd.concat([pd.read_csv(home / name / "records.csv") for name in NAMES])
    exact = auc(clear["score"].to_numpy(), clear["label"].to_numpy(np.int8))
    aligned = auc(records["rank"].to_numpy(float), records["label"].to_numpy(np.int8))
    assert len(records) == len(clear)
    assert aligned == pytest.approx(exact, abs=1e-12)
    offered = (home / "south" / "ranks.csv").read_text()
    assert not any(click in offered for click in platform["click"])
    if whole:
        pytest.importorskip("flwr")
        typed(last, tmp_path)
        result = json.loads((tmp_path / "out" / "vertical.json").read_text())
        error = result["auc"]["standard_error"]
        assert abs(result["auc"]["value"] - exact) < SIGMAS * error < 0.05
        assert result["spent"] == {"epsilon": 1.0, "delta": 0.0, "adjacency": "label"}
    shutil.copy(home / "south" / "ranks.csv", home / "north")
    assert "0 of" in typed(lines[2], tmp_path), "another advertiser's tags say nothing"
    for text, why in (("a,1\na,0\n", "names one click twice"), ("a,1\n", "one label only")):
        (home / "north" / "clicks.csv").write_text(f"click,label\n{text}")
        refused = in_shell(lines[2], tmp_path)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert why in refused.stderr
