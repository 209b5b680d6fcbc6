"""``tacit report``: pages and metadata from files, and what is refused in one sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import tacit
from tacit.results.saved.integrity import with_fingerprint
from tests.terminal import content_of, refusal_of, run

FEDAUC = ("--protocol", "fedauc", "--epsilon", 1, "--no-exact")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two clients, each with the scores of two models."""
    folder = tmp_path_factory.mktemp("records")
    for index, name in enumerate(("north", "south")):
        scores, labels = tacit.binormal_scores(150, 350, 0.8, seed=index)
        table = {"score": scores, "newer": scores**0.5, "label": labels}
        pa_csv.write_csv(pa.table(table), folder / f"{name}.csv")
    return folder


@pytest.fixture
def folder(records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return records


def evaluated(folder: Path, file: str, *options: object) -> dict[str, Any]:
    sources = [folder / "north.csv", folder / "south.csv"]
    made = content_of("evaluate", *sources, *FEDAUC, *options)
    Path(file).write_text(json.dumps(made))
    return made


def refused(*arguments: object) -> str:
    return refusal_of(run("report", *arguments))


def test_a_page_does_not_replace_its_result(folder: Path) -> None:
    made = evaluated(folder, "first.json")
    assert refused("first.json", "-o", "./first.json").startswith("./first.json is one of the")
    assert json.loads(Path("first.json").read_text()) == made


def test_a_result_becomes_a_page(folder: Path) -> None:
    made = evaluated(folder, "first.json", "--federation", "two clinics")
    assert made["federation"]["name"] == "two clinics"
    assert [one["name"] for one in made["participants"]] == ["north", "south"]
    assert made["simulation"] is False
    assert made["time"].endswith("Z")
    assert made["software"]["tacit"] == tacit.__version__
    result = run("report", "first.json", "-o", "page.html", "--title", "A <b>title</b>")
    assert result.exit_code == 0
    assert result.stdout == "Report: page.html\n"
    page = Path("page.html").read_text()
    assert "<title>A &lt;b&gt;title&lt;/b&gt;</title>" in page
    assert made["fingerprint"] in page
    assert "two clinics" in page


def test_the_page_has_a_name_by_default(folder: Path) -> None:
    evaluated(folder, "first.json")
    assert run("report", "first.json").stdout == "Report: report.html\n"
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")


def test_two_models_on_the_same_records_are_compared(folder: Path) -> None:
    for file, column in (("old.json", "score"), ("new.json", "newer")):
        evaluated(folder, file, "--score", column, "--federation", "two clinics")
    assert run("report", "old.json", "new.json").exit_code == 0
    page = Path("report.html").read_text()
    assert "AUC compared" in page
    assert "new</bdi> less <bdi>old" in page
    assert "Paired" in page


def test_clients_names_are_left_out_on_request(folder: Path) -> None:
    made = evaluated(folder, "first.json", "--no-names")
    assert "north" not in json.dumps(made)
    assert [set(one) for one in made["participants"]] == [{"bytes_sent"}] * 2
    run("report", "first.json")
    assert "client 2" in Path("report.html").read_text()


def test_a_result_with_its_calibrator_is_read(folder: Path) -> None:
    sources = [folder / "north.csv", folder / "south.csv"]
    options = ("--protocol", "score-histogram", "--epsilon", 2, "--calibrate", "platt", "--json")
    result = run("evaluate", *sources, *options)
    assert "calibrator" in json.loads(result.stdout)
    Path("first.json").write_text(result.stdout)
    assert run("report", "first.json").exit_code == 0


def test_metadata_goes_to_standard_output_or_to_a_file(folder: Path) -> None:
    evaluated(folder, "first.json")
    card = ("report", "first.json", "--format", "model-index", "--title", "risk")
    shown = run(*card, "--task", "text-classification")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("model-index:\n- name: risk\n")
    assert "type: text-classification" in shown.stdout
    assert run(*card, "-o", "card.yaml").stdout == "Metadata: card.yaml\n"
    assert "type: tabular-classification" in Path("card.yaml").read_text()


def test_bad_results_are_refused_with_the_reason(folder: Path) -> None:
    made = evaluated(folder, "first.json")
    Path("edited.json").write_text(json.dumps({**made, "clients": 3}))
    Path("older.json").write_text(
        json.dumps(with_fingerprint({**made, "schema": "tacit-result/0"}))
    )
    Path("text.json").write_text("AUC 0.8")
    assert refused("edited.json").startswith("edited.json was changed after it was written")
    assert refused("older.json") == (
        "older.json has the schema 'tacit-result/0', not tacit-result/2"
    )
    assert refused("text.json").startswith("text.json is no JSON that can be read")
    assert refused("missing.json") == "missing.json: No such file or directory"
    assert refused(".") == ".: Is a directory"
    assert not Path("report.html").exists()


def test_other_federations_are_not_compared(folder: Path) -> None:
    for file, name in (("a.json", "clinics"), ("b.json", "phones")):
        evaluated(folder, file, "--federation", name)
    evaluated(folder, "c.json")
    assert refused("a.json", "b.json") == (
        "a and b cannot be compared: they are about different federations, 'clinics' and 'phones'"
    )
    assert "one names 'clinics', the other none" in refused("a.json", "c.json")
    assert "one and the same result" in refused("a.json", "a.json")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--task", "a"), "--task needs --format model-index"),
        (("--format", "md", "--title", "a"), "--title cannot be used with"),
        (("-o", "missing/report.html"), "missing/report.html cannot be written"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    folder: Path, options: tuple[str, ...], reason: str
) -> None:
    evaluated(folder, "first.json")
    assert reason in refused("first.json", *options)


def test_without_pyyaml_a_model_card_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated(folder, "result.json")
    monkeypatch.setitem(sys.modules, "yaml", None)
    sentence = refused("result.json", "--format", "model-index")
    assert sentence.endswith("install it with: pip install 'tacit[model-card]'")
