"""tacit's figures in the metric records of a Flower strategy.

Five lines in a ServerApp that trains with Flower::

    from tacit.flower import Measured

    strategy = FedAvg(min_available_nodes=3)
    measured = Measured(strategy, plan="plan.toml", identity="identity.key")
    result = measured.start(grid, ArrayRecord([weights]), num_rounds=3)
    print(result.evaluate_metrics_serverapp[3]["tacit-auc"])

The ClientApp answers tacit's messages besides its own, from the scores that it wrote in its
evaluation, and lets out no metric that its site's ledger has not debited::

    app = GatedApp(constants={"num-examples": 1}, model="arrays")

Another ClientApp registers the two answers, and its metrics stay as they are, not private::

    app.query("hello")(tacit.running.flower.hello)
    app.query("letter")(tacit.running.flower.answer)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.results.evaluation import Evaluation
from tacit.running.gate import Constants, Gate, HeldError, figures_of, holding, is_finite, refuse
from tacit.running.session.coordinator import RunError, concluded
from tacit.running.session.plan_file import Plan
from tacit.running.session.service import read_identity

try:
    from flwr.app import (
        Array,
        ArrayRecord,
        ConfigRecord,
        Context,
        Error,
        Message,
        MetricRecord,
        RecordDict,
    )
    from flwr.clientapp import ClientApp
    from flwr.common.constant import ErrorCode
    from flwr.serverapp import Grid
    from flwr.serverapp.strategy import Result, Strategy
except ImportError:
    raise ImportError(
        "tacit.flower needs flwr; install it with: pip install 'tacit[federation]'"
    ) from None

from tacit.running import flower

Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


def metrics_of(result: Evaluation) -> MetricRecord:
    """A result's finite figures, as ``tacit.running.gate.figures_of`` names them."""
    return MetricRecord(figures_of(result))


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


ANSWERS = {flower.HELLO: flower.hello, flower.MESSAGE: flower.answer}


class GatedApp(ClientApp):  # type: ignore[misc]  # Flower's types are not checked
    """A ClientApp that lets out only what its site declares and its ledger has debited.

    It answers tacit's messages itself: no other code has a say in what they hold. Of every other
    reply it passes on one record, ``metrics``, as ``Gate.passed`` has it, and after training the
    model, in arrays of the names, shapes and types that the server sent, of finite numbers. The
    model is not private. Everything else is held, also an error's text: the server reads one fixed
    sentence, and the node's log names what was held.

    Parameters
    ----------
    constants : as ``Gate`` takes them: ``{"num-examples": 1}`` weighs all sites the same.
    model : the name of the record of arrays that training sends; empty for none.
    options : those of Flower's ``ClientApp``.
    """

    def __init__(self, constants: Constants = None, model: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._constants, self._model = constants, model

    def __call__(self, message: Message, context: Context) -> Message:
        """The reply to a message, gated."""
        kind = message.metadata.message_type
        if kind in ANSWERS:
            return ANSWERS[kind](message, context)
        try:
            with holding():  # Flower would send an error's text
                gate = Gate(str(context.node_config["party"]), self._constants)
                sent = _shapes(message.content.get(self._model)) if kind[:5] == "train" else None
                content = self._passed(gate, sent, super().__call__(message, context))
                return Message(content, reply_to=message)
        except HeldError as error:
            code = ErrorCode.CLIENT_APP_RAISED_EXCEPTION
            return Message(Error(code, str(error)), reply_to=message)

    def _passed(self, gate: Gate, sent: Any, reply: Message) -> RecordDict:
        """The content of a reply, made new of what may leave; a model is shaped as the sent one."""
        passed, held = RecordDict(), []
        for name, record in reply.content.items():
            if isinstance(record, MetricRecord) and "metrics" not in passed:
                passed["metrics"] = MetricRecord(gate.passed(dict(record)))
            elif sent and name == self._model and _shapes(record) == sent:
                arrays = {key: array.numpy() for key, array in record.items()}
                refuse(key for key, array in arrays.items() if not is_finite(array))
                passed[name] = ArrayRecord({key: Array(each) for key, each in arrays.items()})
            else:
                held.append(name)
        refuse(held)
        return passed


def _shapes(record: Any) -> Any:
    """Names, shapes and types of arrays; None where these are none."""
    if isinstance(record, ArrayRecord):
        return {name: (each.numpy().shape, each.numpy().dtype) for name, each in record.items()}
    return None
