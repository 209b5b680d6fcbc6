"""Results that are saved and read: as they were, or refused."""

from __future__ import annotations

import json
import math
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.results.estimate import is_same
from tacit.results.evaluation import Evaluation
from tacit.results.saved.reading import Result, read_documents
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS
from tests.reporting.examples import changed, content, edited

SCORES, LABELS = tacit.binormal_scores(400, 1600, 0.8, seed=0)
NAMED = tacit.Clients.from_arrays(SCORES, LABELS, np.arange(2000) % 5)
MANY = tacit.Clients.split(SCORES, LABELS, clients=300, seed=0)
MEASURED = binormal_clients(400, 1200, clients=10, seed=5)


SHAPES: list[str] = list(
    {(type(p), p.settings.get("trust")): name for name, p in reversed(PROTOCOLS.items())}.values()
)
"""The first case of each protocol and trust."""


@pytest.mark.parametrize("name", SHAPES)
def test_a_result_read_from_its_json_and_a_pickled_copy_state_the_same(name: str) -> None:
    """To the byte, with sites, classes and groups, and in strict JSON, which has no NaN."""
    protocol: Any = PROTOCOLS[name]
    if hasattr(protocol, "most_records"):
        protocol = replace(protocol, most_records=2000)
    records = protocol.trial_records(MEASURED)
    result = tacit.evaluate(records, protocol, seed=3, exact=True, federation="a trial")
    written = json.dumps(result.to_dict(), allow_nan=False)
    again = Evaluation.from_dict(json.loads(written))
    assert json.dumps(again.to_dict()) == written
    assert is_same(again.estimate, result.estimate)
    assert str(again) == str(result)
    copied = pickle.loads(pickle.dumps(result))  # noqa: S301 -- our own bytes
    assert (copied, hash(copied)) == (result, hash(result))
    assert replace(result, clients=6) != result
    assert result != 1


@pytest.mark.parametrize("counting", [{"exact": True}, {"missing_epsilon": 0.5}, {}])
def test_what_was_left_out_comes_back(tmp_path: Path, counting: dict[str, Any]) -> None:
    lines = [f"{score},{label}" for score, label in zip(SCORES, LABELS, strict=True)]
    lines[::100] = ["NA,1"] * len(lines[::100])
    (tmp_path / "north.csv").write_text("\n".join(["score,label", *lines]))
    clients = tacit.read([tmp_path / "north.csv"], missing="drop")
    result = tacit.evaluate(clients, tacit.ScoreHistogram("secure-sum", 2.0), seed=1, **counting)
    written = json.dumps(result.to_dict())
    assert "missing" in result.to_dict()
    again = Evaluation.from_dict(json.loads(written))
    assert json.dumps(again.to_dict()) == written
    assert str(again) == str(result)


def test_many_clients_keep_their_traffic_as_a_summary() -> None:
    content = tacit.evaluate(MANY, tacit.DPAUC(1.0), seed=1).to_dict()
    again = Evaluation.from_dict(content)
    assert again.traffic.to_dict() == content["traffic"]
    assert again.traffic.bytes_sent.size == 0
    again.to_frame()


def test_saved_files_are_the_commands(tmp_path: Path) -> None:
    result = tacit.evaluate(NAMED, tacit.ScoreHistogram(epsilon=1.0), seed=1)
    result = replace(result, decisions=(0.15,))
    result.save(tmp_path / "result.json")
    again = Evaluation.load(tmp_path / "result.json")
    assert again.decisions == (0.15,)
    assert again.at(0.3) == result.at(0.3)
    report = CliRunner().invoke(main, ["report", str(tmp_path / "result.json"), "--format", "md"])
    assert report.exit_code == 0, report.output


@pytest.mark.parametrize(
    "changed", [{"clients": 9}, {"fingerprint": "sha256:0"}, {"schema": "tacit-result/0"}]
)
def test_changed_content_is_refused(changed: dict[str, Any]) -> None:
    content = tacit.evaluate(NAMED, tacit.FedAUC(1.0), seed=1).to_dict()
    with pytest.raises(ValueError, match="the content"):
        Evaluation.from_dict(content | changed)


def test_a_name_starts_no_line() -> None:
    result = tacit.evaluate(NAMED, tacit.FedAUC(1.0), seed=1)
    assert "\x1b" not in str(replace(result, warnings=("\x1b[31m",)))


def written(folder: Path, name: str, made: Any) -> str:
    path = folder / name
    path.write_text(made if isinstance(made, str) else json.dumps(made, indent=2))
    return str(path)


def test_files_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    paths = [written(tmp_path / f, "same.json", content("fedauc")) for f in ("a", "b")]
    (alone,) = read_documents(paths[:1], Result.of)
    assert (alone.label, alone.content) == ("same", content("fedauc"))
    assert [result.label for result in read_documents(paths, Result.of)] == paths


EDITED = edited(content("fedauc"), ("auc", "value"), content("fedauc")["auc"]["value"] + 1e-9)
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({}, "is no result of tacit: it has no schema"),
        ([], "is no result of tacit: it has no schema"),
        ("no json", "is no JSON that can be read"),
        (DEEP, "is no JSON that can be read"),
        ('{"schema": "tacit-result/2", "clients": NaN}', "NaN is no number in JSON"),
        ('{"schema": "tacit-result/2", "clients": 1e999}', "is no result of tacit"),
        ('{"schema": "tacit-result/2", "clients": ' + "9" * 400 + "}", "400 digits"),
        ('{"schema": "a", "schema": "tacit-result/2"}', "an entry appears twice"),
        ({"schema": "tacit-comparison/1"}, "a comparison of two models: only a page or a table"),
        ({"schema": "tacit-groups/1"}, "has several groups: only a page or a table takes it"),
        ({"schema": "tacit-result/3"}, "has the schema 'tacit-result/3', not tacit-result/2"),
        ({"schema": "tacit.evaluation/1"}, "has the schema 'tacit.evaluation/1'"),
        (EDITED, "was changed after it was written"),
        ({**content("fedauc"), "fingerprint": None}, "was changed after it was written"),
        (changed(content("fedauc"), clients="five"), "does not follow the schema"),
        (changed(content("fedauc"), participants=[]), "one entry a client, got 0"),
    ],
    ids=str,
)
def test_what_is_no_result_is_refused(tmp_path: Path, made: Any, reason: str) -> None:
    path = written(tmp_path, "bad.json", made)
    with pytest.raises(ValueError, match=reason) as caught:
        read_documents([path], Result.of)
    assert path in str(caught.value)


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.results.saved.reading.MAX_FILE", 2**20)
    with pytest.raises(ValueError, match="is larger than 1 MiB"):
        read_documents([written(tmp_path, "huge.json", " " * (2**20 + 1))], Result.of)


def test_what_is_null_is_not_a_number() -> None:
    estimate = Result.of(content("noisy-scores"), "noisy").estimate
    assert estimate.given
    assert not estimate.has_interval
    assert math.isnan(estimate.interval().low)


CONTRADICTIONS: list[tuple[tuple[str, ...], Any, str]] = [
    (("auc", "limits"), [5.0, 6.0], "auc: the value must lie within its limits"),
    (("auc", "limits"), [1.0, 0.0], "auc: the value must lie within its limits"),
    (("auc", "interval"), [0.99, 1.0], "auc: interval must follow from the errors"),
    (("auc", "population_interval"), [0.1, 0.2], "population_interval must follow"),
    (("auc", "cell_error"), 0.1, "an entry is of a figure or of a measure, got both"),
    (("measures", "brier", "interval"), [0.9, 0.1], "measures.brier: interval must ascend"),
    (("measures", "brier", "limits"), [0.5, 1.0], "measures.brier: the value must lie within"),
    (("at_half", "precision", "draws"), [{"weights": [1.0]}], "at_half.precision"),
    (("decision_curve", "treat_all_low"), ..., "decision_curve"),
    (("score_distribution", "low"), [], "score_distribution.low"),
    (("missing",), {"private": True, "counted": False, "records": 5}, "missing"),
    (("roc", "thresholds"), [0.5], "the columns of roc must have one length"),
]
"""Entries of a result, what stands there instead (... for nothing), and the refusal."""


@pytest.mark.parametrize(("way", "value", "said"), CONTRADICTIONS)
def test_entries_that_contradict_are_refused(way: tuple[str, ...], value: Any, said: str) -> None:
    made = edited(content("histogram"), way, value)
    with pytest.raises(ValueError, match=re.escape(said)):
        Result.of(changed(made), "made up")
