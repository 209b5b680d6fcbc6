"""Results in a real MLflow, with a store of files."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
import tacit.mlflow
from tacit.results.run import LeftOut
from tacit.results.saved.reading import Result, read_documents

pytestmark = [
    pytest.mark.filterwarnings("ignore:::mlflow"),
    pytest.mark.skipif(find_spec("mlflow") is None, reason="needs mlflow"),
]


def mlflow() -> Any:
    """The package, which takes seconds to import: only for the worker that runs these tests."""
    return import_module("mlflow")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow().get_tracking_uri()
    mlflow().set_tracking_uri((tmp_path / "store").as_uri())
    yield tmp_path
    mlflow().set_tracking_uri(before)


@pytest.fixture(scope="module")
def result() -> tacit.Evaluation:
    scores, labels = tacit.binormal_scores(200, 800, 0.8, seed=1)
    clients = tacit.Clients.from_arrays(scores, labels, [i % 4 for i in range(1000)])
    return tacit.evaluate(clients, tacit.ScoreHistogram("secure-sum", epsilon=1.0), exact=True)


def test_a_run_has_figures_and_files(store: Path, result: tacit.Evaluation, tmp_path: Path) -> None:
    with mlflow().start_run() as run:
        tacit.mlflow.log(result)
    data = mlflow().get_run(run.info.run_id).data
    low, high = result.auc.interval(0.95)
    assert data.metrics["tacit.auc"] == result.auc.value
    assert (data.metrics["tacit.auc_low"], data.metrics["tacit.auc_high"]) == (low, high)
    assert (data.metrics["tacit.epsilon"], data.metrics["tacit.clients"]) == (1.0, 4.0)
    assert data.tags["tacit.protocol"] == "score-histogram"
    assert data.tags["tacit.adjacency"] == "record"
    kept = {"run_id": run.info.run_id, "artifact_path": "tacit"}
    folder = Path(mlflow().artifacts.download_artifacts(**kept))
    (read,) = read_documents([str(folder / "result.json")], Result.of)
    assert read.estimate.value == result.auc.value
    assert (folder / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_what_is_not_private_is_not_logged(store: Path, result: tacit.Evaluation) -> None:
    assert result.exact is not None
    left_out = LeftOut(np.array([[9_876_543_210, 0, 0, 0], [0, 0, 0, 0]]))
    with mlflow().start_run():
        tacit.mlflow.log(replace(result, left_out=left_out))
    (file,) = store.rglob("result.json")
    assert json.loads(file.read_text())["missing"] == {"private": True, "counted": False}
    written = [path.read_text(errors="ignore") for path in store.rglob("*") if path.is_file()]
    for digits in (f"{result.exact:.9f}"[:9], "9876543210", "9,876,543,210"):
        assert not [text for text in written if digits in text]


def test_epochs_are_steps(store: Path, result: tacit.Evaluation) -> None:
    with mlflow().start_run() as run:
        for epoch in (1, 2):
            tacit.mlflow.log(result, step=epoch)
    history = mlflow().MlflowClient().get_metric_history(run.info.run_id, "tacit.auc")
    assert [metric.step for metric in history] == [1, 2]
    names = {path.name for path in store.rglob("result-*.json")}
    assert names == {"result-1.json", "result-2.json"}


def test_without_noise_there_is_no_epsilon(store: Path) -> None:
    clients = tacit.Clients.from_arrays([0.1, 0.9, 0.4, 0.6], [0, 1, 0, 1], ["a", "a", "b", "b"])
    exact = tacit.evaluate(clients, tacit.ExactAUC())
    metrics = tacit.mlflow.metrics_of(exact)
    assert "tacit.epsilon" not in metrics
    json.dumps(metrics, allow_nan=False)
    with mlflow().start_run():
        tacit.mlflow.log(exact, artifacts=False)
    assert not list(store.rglob("report.html"))


def test_what_is_no_result_is_refused(result: tacit.Evaluation) -> None:
    with pytest.raises(TypeError, match="what evaluate returns, got dict"):
        tacit.mlflow.log(result.to_dict())  # type: ignore[arg-type]


def test_without_mlflow_it_says(monkeypatch: pytest.MonkeyPatch, result: tacit.Evaluation) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'tacit\[mlflow\]'"):
        tacit.mlflow.log(result)
