"""Results in MLflow: ``tacit.mlflow.log(result)`` writes figures, JSON and report into a run.

It needs the extra ``mlflow``: ``pip install 'tacit[mlflow]'``.
"""

from __future__ import annotations

import json
from dataclasses import replace

from tacit.extras import extra
from tacit.results.evaluation import Evaluation

FOLDER = "tacit"
"""The folder of artifacts, and the beginning of the names of metrics and tags."""


def metrics_of(result: Evaluation) -> dict[str, float]:
    """A result's ``Evaluation.metrics`` by the names under which MLflow keeps them.

    Examples
    --------
    >>> import tacit
    >>> clients = tacit.Clients.from_arrays([0.1, 0.9], [0, 1], ["north", "south"])
    >>> metrics_of(tacit.evaluate(clients, tacit.ExactAUC()))["tacit.auc"]
    1.0
    """
    return {f"{FOLDER}.{name}": value for name, value in result.metrics.items()}


def log(result: Evaluation, step: int | None = None, artifacts: bool = True) -> None:
    """Write a result into MLflow's active run; begin one where there is none.

    What others see: anyone who reads the tracking server sees what was released, which its epsilon
    covers. An exact figure and an exact number of incomplete records, which are not private, are
    left out everywhere.

    Parameters
    ----------
    result : what ``evaluate`` returned.
    step : the epoch, for results of one run after each other; their epsilons add up, and MLflow
        shows each separately.
    artifacts : whether to add the result as JSON and its report, as ``tacit/result.json`` and
        ``tacit/report.html``; with a step, its number is in the names.

    Raises
    ------
    ImportError : when MLflow is not installed, with the install command.
    TypeError : for what is no result of ``evaluate``.
    """
    if not isinstance(result, Evaluation):
        raise TypeError(f"log takes what evaluate returns, got {type(result).__name__}")
    tracking = extra("mlflow", "tacit.mlflow needs MLflow", "'tacit[mlflow]'")
    released = _released(result)
    tracking.log_metrics(metrics_of(released), step=step)
    tracking.set_tags(_tags(released))
    if artifacts:
        suffix = "" if step is None else f"-{step}"
        content = json.dumps(released.to_dict(), indent=2, allow_nan=False)
        tracking.log_text(f"{content}\n", f"{FOLDER}/result{suffix}.json")
        tracking.log_text(released.to_html(), f"{FOLDER}/report{suffix}.html")


def _released(result: Evaluation) -> Evaluation:
    """The result without what no epsilon covers."""
    left_out = None if result.left_out is None else replace(result.left_out, counts=None)
    return replace(result, exact=None, left_out=left_out)


def _tags(result: Evaluation) -> dict[str, str]:
    adjacency = result.spent.adjacency
    settings = {name: value for name, value in result.protocol.items() if name != "name"}
    return {
        f"{FOLDER}.protocol": str(result.protocol["name"]),
        f"{FOLDER}.settings": json.dumps(settings, default=str),
        f"{FOLDER}.figure": result.figure,
        f"{FOLDER}.adjacency": "none" if adjacency is None else adjacency.value,
        f"{FOLDER}.noise": result.noise,
        f"{FOLDER}.warnings": " | ".join(result.warnings),
    }
