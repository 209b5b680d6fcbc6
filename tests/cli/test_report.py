"""``tacit report``: pages and metadata from files, and what is refused in one sentence."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tacit
from tests.terminal import content_of, refusal_of, run, succeeded

FEDAUC = ("--protocol", "fedauc", "--epsilon", 1, "--no-exact")
FILES = ("north.csv", "south.csv")


def evaluated(file: str, *options: object, files: Sequence[str] = FILES) -> dict[str, Any]:
    made = content_of("evaluate", *files, *FEDAUC, *options)
    Path(file).write_text(json.dumps(made))
    return made


def refused(*arguments: object) -> str:
    return refusal_of(run("report", *arguments))


def test_a_result_becomes_a_page(folder: Path) -> None:
    made = evaluated("first.json", "--federation", "two clinics")
    assert made["federation"]["name"] == "two clinics"
    assert [one["name"] for one in made["participants"]] == ["north", "south"]
    assert made["simulation"] is False
    assert made["time"].endswith("Z")
    assert made["software"]["tacit"] == tacit.__version__
    result = succeeded(run("report", "first.json", "-o", "page.html", "--title", "A <b>title</b>"))
    assert result.stdout == "Report: page.html\n"
    page = Path("page.html").read_text()
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page
    assert made["fingerprint"] in page
    assert "two clinics" in page


def test_drift_is_printed_with_its_intervals(folder: Path) -> None:
    for column in ("old", "new"):
        evaluated(f"{column}er.json", "--score", column, files=["models.parquet"])
    rows = run("drift", "older.json", "newer.json").stdout.splitlines()
    assert re.match(
        r"drift of AUC +[+-]0\.\d+, 95 % interval \(these records\) \S+ to \S+, ", rows[0]
    )
    assert rows[1].endswith("none: fedauc gives no score histogram")
    moved = content_of("drift", "older.json", "newer.json")["drift"]["AUC"]
    assert moved["interval"][0] <= moved["value"] <= moved["interval"][1]


def test_clients_names_are_left_out_on_request(folder: Path) -> None:
    made = evaluated("first.json", "--no-names")
    assert "north" not in json.dumps(made)
    assert [set(one) for one in made["participants"]] == [{"bytes_sent"}] * 2
    run("report", "first.json")
    assert "client 2" in Path("report.html").read_text()


def test_metadata_goes_to_standard_output_or_to_a_file(folder: Path) -> None:
    evaluated("first.json")
    card = ("report", "first.json", "--format", "model-index", "--title", "risk")
    shown = succeeded(run(*card, "--task", "text-classification"))
    assert shown.stdout.startswith("model-index:\n- name: risk\n")
    assert "type: text-classification" in shown.stdout
    assert run(*card, "-o", "card.yaml").stdout == "Metadata: card.yaml\n"
    assert "type: tabular-classification" in Path("card.yaml").read_text()


def test_bad_results_are_refused_with_the_reason(folder: Path) -> None:
    made = evaluated("a.json")
    Path("edited.json").write_text(json.dumps({**made, "clients": 3}))
    Path("text.json").write_text("AUC 0.8")
    assert refused("edited.json").startswith("edited.json was changed after it was written")
    assert refused("text.json").startswith("text.json is no JSON that can be read")
    assert "are one and the same result" in refused("a.json", "a.json")
    assert refused("missing.json") == "missing.json: No such file or directory"
    assert refused(".") == ".: Is a directory"
    assert not Path("report.html").exists()


def test_a_model_card_needs_pyyaml(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated("result.json")
    monkeypatch.setitem(sys.modules, "yaml", None)
    sentence = refused("result.json", "--format", "model-index")
    assert sentence.endswith("install it with: pip install 'tacit[model-card]'")
