"""A Flower project that trains, and measures by tacit, with both in one pair of apps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs flwr: pip install 'tacit[federation]'")

from flwr.app import Context, RecordDict

from tacit.ledger.ledger import Ledger
from tacit.metrics.ranking import auc
from tacit.running.deployment.local import local_parties, prepared
from tests.examples.conftest import Borrow
from tests.running.test_flower import Grid, task

__all__ = ["task"]  # a fixture of every test here

FOLDER = "flower-training"
SIGMAS = 5
"""A normal error beyond it has probability 5.7e-7: the false alarm of each comparison."""


class Nodes(Grid):
    """Nodes that run a ClientApp in this process, and answer at once."""

    def __init__(self, app: Any, home: Path) -> None:
        super().__init__(home)
        self.app, self.kinds = app, set[str]()

    def send_and_receive(self, messages: Iterable[Any], timeout: float) -> list[Any]:
        return [self.answered(message) for message in messages]

    def push_messages(self, messages: Iterable[Any]) -> list[str]:
        replies = self.send_and_receive(messages, 0.0)
        self.replies = {reply.metadata.reply_to_message_id: reply for reply in replies}
        return list(self.replies)

    def pull_messages(self, numbers: Iterable[str]) -> list[Any]:
        return [self.replies.pop(number) for number in list(numbers)]

    def answered(self, message: Any) -> Any:
        node = message.metadata.dst_node_id
        self.sent += 1
        message.metadata.__dict__["_message_id"] = str(self.sent)
        self.kinds.add(message.metadata.message_type)
        reply = self.app(message, self.contexts[node])
        reply.metadata._src_node_id = node
        return reply


def run(borrow: Borrow, folder: Path, rounds: int, limit: float) -> tuple[Any, Nodes]:
    hospitals = borrow(FOLDER, "hospitals")
    plan = hospitals.write_hospitals(folder, limit, seed=0)
    coordinator = prepared(plan, local_parties(plan, 3), folder / ".tacit")
    app = borrow(FOLDER, "hospital_training.client_app").app
    grid = Nodes(app, coordinator.folder / "parties")
    config = {
        "plan": str(coordinator.folder / "plan.toml"),
        "identity": str(coordinator.identity),
        "result": str(folder / "rounds.json"),
        "rounds": rounds,
    }
    server = borrow(FOLDER, "hospital_training.server_app")
    server.main(grid, Context(1, 1, {}, RecordDict({}), config))
    return json.loads((folder / "rounds.json").read_text()), grid


def exact_auc(borrow: Borrow, folder: Path, weights: list[float]) -> float:
    features, labels = borrow(FOLDER, "hospitals").pooled_test_records(folder)
    scores = borrow(FOLDER, "hospital_training.model").scores_of(np.array(weights), features)
    return float(auc(scores, labels))


def mean_weights(borrow: Borrow, folder: Path) -> Any:
    """The mean over hospitals of the weights that each trains first: FedAvg's step, plainly."""
    model = borrow(FOLDER, "hospital_training.model")
    weights = []
    for name in "abc":
        stored = np.load(folder / name / "train.npz")
        weights.append(model.trained(model.fresh_weights(), stored["features"], stored["labels"]))
    return np.mean(weights, axis=0)


def test_every_round_is_measured_privately(borrow: Borrow, tmp_path: Path) -> None:
    rounds, grid = run(borrow, tmp_path, rounds=2, limit=2.0)
    assert grid.kinds == {"train", "evaluate", "query.hello", "query.letter"}
    exact = [exact_auc(borrow, tmp_path, entry["weights"]) for entry in rounds]
    for entry, truth in zip(rounds, exact, strict=True):
        result = entry["result"]["auc"]
        assert abs(result["value"] - truth) < SIGMAS * result["standard_error"]
        assert result["standard_error"] < 0.01
        assert entry["result"]["spent"]["epsilon"] == pytest.approx(1.0, abs=1e-12)
    assert exact[-1] > 0.7
    for name in "abc":
        with Ledger(tmp_path / name / "ledger.db") as ledger:
            (spending,) = ledger.spending("test records")
            assert spending.epsilon == pytest.approx(2.0)


def test_training_takes_the_mean_and_goes_on_when_the_books_allow_no_more(
    borrow: Borrow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds, _ = run(borrow, tmp_path, rounds=2, limit=1.0)
    assert ["result" in entry for entry in rounds] == [True, False]
    np.testing.assert_allclose(rounds[0]["weights"], mean_weights(borrow, tmp_path), rtol=1e-6)
    assert rounds[0]["weights"] != rounds[1]["weights"]
    assert "round 2 is not measured" in capsys.readouterr().out
    lines = borrow(FOLDER, "run").table(rounds, tmp_path).splitlines()
    assert "not measured" in lines[3]
    assert lines[3].endswith("  1")


@pytest.mark.slow
@pytest.mark.thorough
def test_real_programs_train_and_measure(
    borrow: Borrow, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    borrow(FOLDER, "run").main(["--rounds", "1", "--folder", str(tmp_path)])
    (entry,) = json.loads((tmp_path / "rounds.json").read_text())
    result = entry["result"]["auc"]
    truth = exact_auc(borrow, tmp_path, entry["weights"])
    assert abs(result["value"] - truth) < SIGMAS * result["standard_error"]
    assert f"{result['value']:.4f}" in capsys.readouterr().out.splitlines()[-1]
