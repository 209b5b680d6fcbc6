"""tacit's figures in the metric records of a Flower strategy.

Five lines in a ServerApp that trains with Flower::

    from tacit.flower import Measured

    strategy = FedAvg(min_available_nodes=3)
    measured = Measured(strategy, plan="plan.toml", identity="identity.key")
    result = measured.start(grid, ArrayRecord([weights]), num_rounds=3)
    print(result.evaluate_metrics_serverapp[3]["tacit-auc"])

The ClientApp answers tacit's messages besides its own, from the scores that it wrote in its
evaluation::

    app.query("hello")(tacit.running.flower.hello)
    app.query("letter")(tacit.running.flower.answer)

Training and Flower's own metrics stay as they are: they are not private.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.results.evaluation import Evaluation
from tacit.results.figure import Figure
from tacit.running.session.coordinator import RunError, concluded
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity

try:
    from flwr.app import ArrayRecord, ConfigRecord, MetricRecord
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Result, Strategy
except ImportError:
    raise ImportError(
        "tacit.flower needs flwr; install it with: pip install 'tacit[federation]'"
    ) from None

from tacit.running import flower

Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


def metrics_of(result: Evaluation) -> MetricRecord:
    """A result's finite figures by the names under which metric records have them.

    ``tacit-auc`` (``tacit-estimate`` for another figure), ``-low`` and ``-high`` of its 95 %
    interval about these records, ``-standard-error``, and ``tacit-epsilon``: what this run cost.
    """
    figure = f"tacit-{Figure.of(result.figure).key}"
    low, high = result.estimate.interval()
    known = {
        figure: result.estimate.value,
        f"{figure}-low": low,
        f"{figure}-high": high,
        f"{figure}-standard-error": result.estimate.standard_error,
        "tacit-epsilon": result.spent.epsilon,
    }
    return MetricRecord(
        {name: float(value) for name, value in known.items() if math.isfinite(value)}
    )


def _passed_on(name: str) -> Any:
    """A method that does as the other strategy does."""

    def method(self: Measured, *args: Any, **options: Any) -> Any:
        return getattr(self._strategy, name)(*args, **options)

    return method


class Measured(Strategy):  # type: ignore[misc]  # Flower's types are not checked
    """A strategy that runs a plan of tacit after every round of another strategy.

    A round whose run gives no result, because too few sites came or a ledger declines, has no
    figures of tacit, and training goes on. The costs of the rounds add up.

    Parameters
    ----------
    strategy : what trains.
    plan : the plan's file; its sites are nodes of the same grid.
    identity : the coordinator's key file.
    tell : takes a line about each step of a run.

    Raises
    ------
    PlanError : for a plan or a key that cannot be used.
    """

    def __init__(
        self,
        strategy: Strategy,
        plan: str | Path,
        identity: str | Path,
        tell: Callable[[str], None] = print,
    ) -> None:
        self._strategy, self._tell = strategy, tell
        self._plan, self._identity = Plan.read(plan), read_identity(Path(identity))
        self._plan.agreement()
        self.results: dict[int, Evaluation] = {}
        """What each round's run gave, by round: for reports, and for ``tacit.mlflow``."""

    def measured(self, grid: Grid, server_round: int) -> MetricRecord | None:
        """The figures of one run of the plan; None where it gives no result."""
        try:
            coordinator, received = flower.conduct(grid, self._plan, self._identity, self._tell)
            result = concluded(self._plan, coordinator, received)
        except RunError as error:
            self._tell(f"round {server_round} is not measured: {error}")
            return None
        self.results[server_round] = result
        return metrics_of(result)

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Train as the other strategy does; ``evaluate_fn`` has tacit's figures with its own.

        The first model, before any round, is not measured: no site has scored with it.
        """

        def evaluated(server_round: int, arrays: ArrayRecord) -> MetricRecord | None:
            metrics = evaluate_fn(server_round, arrays) if evaluate_fn else None
            added = self.measured(grid, server_round) if server_round else None
            return metrics if added is None else MetricRecord({**(metrics or {}), **added})

        return super().start(
            grid, initial_arrays, num_rounds, timeout, train_config, evaluate_config, evaluated
        )

    configure_train = _passed_on("configure_train")
    aggregate_train = _passed_on("aggregate_train")
    configure_evaluate = _passed_on("configure_evaluate")
    aggregate_evaluate = _passed_on("aggregate_evaluate")
    summary = _passed_on("summary")
