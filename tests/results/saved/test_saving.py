"""Results come back from their JSON, are equal after pickling, and print as the command does."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.protocol.conversation import Protocol
from tacit.results.estimate import is_same
from tacit.results.evaluation import Evaluation
from tests.federations import binormal_clients
from tests.laws import PROTOCOLS

SCORES, LABELS = tacit.binormal_scores(400, 1600, 0.8, seed=0)
NAMED = tacit.Clients.from_arrays(SCORES, LABELS, np.arange(2000) % 5)
MANY = tacit.Clients.split(SCORES, LABELS, clients=300, seed=0)
MEASURED = binormal_clients(400, 1200, clients=10, seed=5)
SAVED: dict[str, Protocol] = {
    "noisy sum": tacit.ScoreHistogram("secure-sum", 1.0),
    "exact sum": tacit.ScoreHistogram("exact-sum", height=6),
    "local": tacit.ScoreHistogram("local", 5.0, height=4),
    "curve": tacit.DPAUC(1.0),
    "labels": tacit.FedAUC(1.0),
    "certain": tacit.EncryptedAUC(most_records=2000),
    "another figure": tacit.UStatistic("gini", 2.0),
    "baseline": tacit.ExactAUC(),
}


@pytest.fixture(scope="module", params=list(SAVED.values()), ids=list(SAVED))
def result(request: pytest.FixtureRequest) -> Evaluation:
    return tacit.evaluate(NAMED, request.param, seed=1, exact=True, federation="a trial")


def test_a_result_read_from_its_json_states_the_same(result: Evaluation) -> None:
    written = json.dumps(result.to_dict())
    again = Evaluation.from_dict(json.loads(written))
    assert json.dumps(again.to_dict()) == written
    assert is_same(again.estimate, result.estimate)


def test_a_result_read_from_its_json_prints_as_before(result: Evaluation) -> None:
    again = Evaluation.from_dict(result.to_dict())
    assert str(again) == str(result)


SHAPES: list[str] = list(
    {(type(p), p.settings.get("trust")): name for name, p in reversed(PROTOCOLS.items())}.values()
)
"""The first case of each protocol and trust."""


@pytest.mark.parametrize("name", SHAPES)
def test_every_protocols_result_comes_back_to_the_byte(name: str) -> None:
    """With sites, classes and groups."""
    protocol: Any = PROTOCOLS[name]
    if hasattr(protocol, "most_records"):
        protocol = replace(protocol, most_records=2000)
    written = json.dumps(tacit.evaluate(MEASURED, protocol, seed=3).to_dict())
    assert json.dumps(Evaluation.from_dict(json.loads(written)).to_dict()) == written


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


def test_a_pickled_copy_is_equal_and_a_changed_one_is_not(result: Evaluation) -> None:
    copy = pickle.loads(pickle.dumps(result))  # noqa: S301 -- our own bytes
    assert copy == result
    assert hash(copy) == hash(result)
    assert replace(result, clients=6) != result
    assert result != 1


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


def test_an_estimate_formats_as_a_number() -> None:
    auc = tacit.evaluate(NAMED, tacit.FedAUC(1.0), seed=1).auc
    assert f"{auc:.4f}" == f"{auc.value:.4f}"
    assert float(auc) == auc.value
    low, high = auc.interval()
    assert f"{auc}" == str(auc) == f"{auc.value:.3f} ({low:.3f} to {high:.3f})"
    assert 0.5 < auc < 1 and round(auc, 2) == round(auc.value, 2)


def test_a_name_starts_no_line() -> None:
    result = tacit.evaluate(NAMED, tacit.FedAUC(1.0), seed=1)
    assert "\x1b" not in str(replace(result, warnings=("\x1b[31m",)))
