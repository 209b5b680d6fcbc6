"""A Flower strategy with tacit's figures in its metric records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import ArrayRecord, MetricRecord
from flwr.serverapp.strategy import FedAvg

from tacit.flower import Measured
from tests.running.desks import federation
from tests.running.test_flower import Grid, task

__all__ = ["task"]  # a fixture of every test here


PROTOCOL = 'name = "dpauc"\nepsilon = 20.0'
"""So large that noise leaves a signal in 180 records without fail."""


class Training(Grid):
    """Nodes that answer tacit's messages; training itself sends nothing here."""

    def send_and_receive(self, messages: Iterable[Any], **_: Any) -> list[Any]:
        assert not list(messages)
        return []


class Still(FedAvg):  # type: ignore[misc]  # Flower's types are not checked
    """A strategy that trains nothing."""

    def configure_train(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def configure_evaluate(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def aggregate_train(self, *_: Any, **__: Any) -> tuple[None, MetricRecord]:
        return None, MetricRecord({"loss": 0.5})

    def aggregate_evaluate(self, *_: Any, **__: Any) -> None:
        return None


def started(home: Path, rounds: int, limit: str, **options: Any) -> tuple[Any, Measured, list[str]]:
    federation(home, PROTOCOL, limit=limit)
    lines: list[str] = []
    files = (home / "plan.toml", home / "centre" / "identity.key")
    measured = Measured(Still(), *files, lines.append)
    arrays = ArrayRecord([np.zeros(2)])
    grid: Any = Training(home)
    return measured.start(grid, arrays, num_rounds=rounds, **options), measured, lines


def test_every_round_has_figures_beside_the_strategys_own(tmp_path: Path) -> None:
    result, measured, _ = started(
        tmp_path, 2, "epsilon = 60.0", evaluate_fn=lambda number, _: MetricRecord({"own": number})
    )
    assert dict(result.evaluate_metrics_serverapp[0]) == {"own": 0}
    for number in (1, 2):
        record = result.evaluate_metrics_serverapp[number]
        evaluation = measured.results[number]
        assert record["own"] == number
        assert record["tacit-auc"] == evaluation.auc.value
        assert record["tacit-auc-low"] <= record["tacit-auc"] <= record["tacit-auc-high"]
        assert record["tacit-epsilon"] == 20.0
        assert result.train_metrics_clientapp[number]["loss"] == 0.5
    assert "<html" in measured.results[1].to_html()


def test_a_round_that_a_ledger_declines_has_none_and_training_goes_on(tmp_path: Path) -> None:
    result, measured, lines = started(tmp_path, 2, "epsilon = 30.0")
    assert sorted(measured.results) == [1]
    assert list(result.evaluate_metrics_serverapp) == [1]
    assert list(result.train_metrics_clientapp) == [1, 2]
    declined = [line for line in lines if line.startswith("round 2 is not measured")]
    assert "all 3 parties declined: the privacy budget does not allow it" in declined[0]
