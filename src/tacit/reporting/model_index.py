"""Results as ``model-index`` metadata for a model card on the Hugging Face Hub.

The fields are those of https://github.com/huggingface/hub-docs/blob/main/modelcard.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tacit.extras import extra
from tacit.reporting.words import cost_text
from tacit.results.estimate import Estimate
from tacit.results.saved.reading import Result, estimate_of, half_of, number

TASK = "tabular-classification"
"""The task of a card, unless it is given: one of the Hub's identifiers."""
METRICS = ("precision", "recall", "f1", "accuracy")
"""The rates where scores state the probability 1/2; the Hub's identifiers are the same."""
NEXT_LINE = "\x85"
"""A character that PyYAML writes as it is and reads as a space, unless all but ASCII is escaped."""


def model_index(results: Sequence[Result], model: str | None = None, task: str = TASK) -> str:
    """The metadata as YAML, to stand between the two ``---`` at the top of a model card.

    Parameters
    ----------
    results : each becomes one entry, or where ``model`` is None one model.
    model : the model's name; None for what each result is called.
    task : the Hub's identifier of the task.

    Raises
    ------
    ValueError : for no result, one without an estimate, and for an empty name.
    ImportError : when PyYAML is not installed.

    Examples
    --------
    >>> as_yaml({"model-index": [{"name": "a", "results": []}]})
    'model-index:\\n- name: a\\n  results: []\\n'
    """
    if not results:
        raise ValueError("a model card needs at least one result, got none")
    if model == "" or not task:
        raise ValueError("the names of the model and of its task must not be empty")
    entries = [_entry(result, task) for result in results]
    models = [(model, entries)]
    if model is None:
        models = [(each.label, [entry]) for each, entry in zip(results, entries, strict=True)]
    return as_yaml({"model-index": [{"name": name, "results": made} for name, made in models]})


def _entry(result: Result, task: str) -> dict[str, Any]:
    """One evaluation: its task, its records, its figures."""
    if not result.estimate.given:
        raise ValueError(f"{result.label} has no estimate to put on a model card")
    return {
        "task": {"type": task, "name": "Binary classification"},
        "dataset": _dataset(result),
        "metrics": _metrics(result),
    }


def _dataset(result: Result) -> dict[str, Any]:
    """The records, which are on no hub: their identifier is made of the federation's name."""
    name = result.content["federation"]["name"]
    count = result.content["clients"]
    called = name or f"private records of {count} client{'s' if count > 1 else ''}"
    mark = re.sub(r"[^a-z0-9]+", "-", called.lower()).strip("-")
    return {
        "type": mark or "private-records",
        "name": f"{called} (simulated)" if result.content["simulation"] else called,
    }


def _metrics(result: Result) -> list[dict[str, Any]]:
    content = result.content
    kind = "roc_auc" if result.figure.is_auc else re.sub(r"\W+", "_", result.figure.lower())
    made = [_metric(kind, str(result.figure), result.estimate, _provenance(content))]
    if "average_precision" in content:
        estimate = estimate_of(content["average_precision"])
        made.append(_metric("average_precision", "Average precision", estimate, {}))
    half, middle = content.get("at_half", {}), half_of(content)
    made += [
        _metric(name, f"{name} at {middle:g}", estimate_of(half[name]), {"threshold": middle})
        for name in METRICS
        if name in half and middle is not None
    ]
    brier = Estimate(number(content.get("calibration", {}).get("brier")), math.nan, math.nan)
    made.append(_metric("brier_score", "Brier score", brier, {}))
    return [metric for metric in made if math.isfinite(metric["value"])]


def _metric(
    kind: str, name: str, estimate: Estimate, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    interval = {"interval_95": list(estimate.interval())} if estimate.has_interval else {}
    made: dict[str, Any] = {"type": kind, "value": estimate.value, "name": name}
    return made | ({"args": {**interval, **arguments}} if interval or arguments else {})


def _provenance(content: Mapping[str, Any]) -> dict[str, Any]:
    """How the figure was obtained."""
    return {
        "protocol": content["protocol"]["name"],
        "spent": cost_text(content["spent"]),
        "simulation": content["simulation"],
        "tacit": content["software"]["tacit"],
        "result": content["fingerprint"],
    }


def as_yaml(value: Mapping[str, Any]) -> str:
    """Nested mappings and lists of plain values as YAML.

    Raises
    ------
    ImportError : with the install command, when PyYAML is not installed.
    """
    yaml = extra("yaml", "metadata of model cards needs PyYAML", "'tacit[model-card]'")
    dump = partial(yaml.safe_dump, value, sort_keys=False, width=math.inf)
    text = str(dump(allow_unicode=True))
    return str(dump()) if NEXT_LINE in text else text
