"""The server's side: Flower's FedAvg, with tacit in the place of a central evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from hospital_training.model import fresh_weights
from tacit.running import flower
from tacit.running.session.coordinator import RunError, concluded
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity

TRAIN_TIME = 300.0
"""Seconds that hospitals have for a round of training."""

app = ServerApp()


class Evaluator:
    """What ``Strategy.start`` calls after every round: one run of a tacit plan.

    Parameters
    ----------
    grid : Flower's connection to all nodes.
    plan : what is measured, and with whom.
    identity : the coordinator's key file.
    """

    def __init__(self, grid: Grid, plan: Path, identity: Path) -> None:
        self._grid = grid
        self._plan, self._identity = Plan.read(plan), read_identity(identity)
        self.rounds: list[dict[str, Any]] = []

    def __call__(self, server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
        """The private AUC of a round's model; None before the first, and without a result."""
        if server_round == 0:
            return None
        weights = [float(weight) for weight in arrays.to_numpy_ndarrays()[0]]
        entry: dict[str, Any] = {"round": server_round, "weights": weights}
        self.rounds.append(entry)
        try:
            coordinator, received = flower.conduct(self._grid, self._plan, self._identity, tell)
        except RunError as error:
            tell(f"round {server_round} is not measured: {error}")
            return None
        result = concluded(self._plan, coordinator, received)
        entry["result"] = result.to_dict()
        auc = result.auc
        low, high = auc.interval(0.95)
        message = f"{auc.value:.4f}, 95 % interval (these records) {low:.4f} to {high:.4f}"
        tell(f"round {server_round}: AUC {message}")
        return MetricRecord({"auc": auc.value, "standard-error": auc.standard_error})


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Train for some rounds, measure after each, and write down what was found."""
    config = context.run_config
    evaluator = Evaluator(grid, Path(str(config["plan"])), Path(str(config["identity"])))
    strategy = FedAvg(min_train_nodes=3, min_evaluate_nodes=3, min_available_nodes=3)
    strategy.start(
        grid,
        ArrayRecord([fresh_weights()]),
        num_rounds=int(config["rounds"]),
        timeout=TRAIN_TIME,
        evaluate_fn=evaluator,
    )
    Path(str(config["result"])).write_text(json.dumps(evaluator.rounds, indent=2) + "\n")


def tell(line: str) -> None:
    """Print a line that ``run.py`` shows."""
    print(f"tacit: {line}", flush=True)
