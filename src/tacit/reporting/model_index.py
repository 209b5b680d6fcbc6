"""Results as ``model-index`` metadata for a model card on the Hugging Face Hub.

The fields are those of https://github.com/huggingface/hub-docs/blob/main/modelcard.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.privacy.cost import cost_line
from tacit.reporting.words import WITHOUT_LIMIT
from tacit.results.reading import Estimated, Result, number

TASK = "tabular-classification"
"""The task of a card, unless it is given: one of the Hub's identifiers."""
METRICS = {
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "accuracy": "accuracy",
}
"""The Hub's identifiers of the rates at one half."""
WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
"""Characters that YAML does not accept in text."""
UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


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

    Examples
    --------
    >>> as_yaml({"model-index": [{"name": "a", "results": []}]})
    'model-index:\\n- name: "a"\\n  results: []\\n'
    """
    if not results:
        raise ValueError("a model card needs at least one result, got none")
    if model == "" or not task:
        raise ValueError("the names of the model and of its task must not be empty")
    entries = [_entry(result, task) for result in results]
    if model is not None:
        return as_yaml({"model-index": [{"name": model, "results": entries}]})
    models = [
        {"name": result.label, "results": [entry]}
        for result, entry in zip(results, entries, strict=True)
    ]
    return as_yaml({"model-index": models})


def _entry(result: Result, task: str) -> dict[str, Any]:
    """One evaluation: its task, its records, its figures."""
    if not result.estimate.has_signal:
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
    kind = "roc_auc" if result.figure == "AUC" else re.sub(r"\W+", "_", result.figure.lower())
    made = [_metric(kind, result.figure, result.estimate, _provenance(content))]
    if "average_precision" in content:
        estimate = Estimated.of(content["average_precision"])
        made.append(_metric("average_precision", "Average precision", estimate, {}))
    half = content.get("at_half", {})
    made += [
        _metric(kind, f"{name} at 0.5", Estimated.of(half[name]), {"threshold": 0.5})
        for name, kind in METRICS.items()
        if name in half
    ]
    brier = number(content.get("calibration", {}).get("brier"))
    if math.isfinite(brier):
        made.append({"type": "brier_score", "value": brier, "name": "Brier score"})
    return [metric for metric in made if math.isfinite(metric["value"])]


def _metric(
    kind: str, name: str, estimate: Estimated, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    entries = dict(arguments)
    if estimate.has_interval:
        entries = {"interval_95": list(estimate.interval), **entries}
    made: dict[str, Any] = {"type": kind, "value": estimate.value, "name": name}
    return made | ({"args": entries} if entries else {})


def _provenance(content: Mapping[str, Any]) -> dict[str, Any]:
    """How the figure was obtained."""
    return {
        "protocol": content["protocol"]["name"],
        "spent": cost_line(content["spent"], unlimited=WITHOUT_LIMIT),
        "simulation": content["simulation"],
        "tacit": content["software"]["tacit"],
        "result": content["fingerprint"],
    }


def as_yaml(value: Mapping[str, Any]) -> str:
    """Nested mappings and lists of plain values as YAML; strings are quoted as in JSON."""
    return "".join(f"{line}\n" for line in _mapping_lines(value))


def _mapping_lines(value: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, entry in value.items():
        if isinstance(entry, Mapping) and entry:
            lines += [f"{_key(key)}:", *(f"  {line}" for line in _mapping_lines(entry))]
        elif isinstance(entry, list) and entry:
            lines += [f"{_key(key)}:", *_list_lines(entry)]
        else:
            lines.append(f"{_key(key)}: {_scalar(entry)}")
    return lines


def _list_lines(value: list[Any]) -> list[str]:
    lines = []
    for entry in value:
        nested = isinstance(entry, Mapping) and entry
        inner = _mapping_lines(entry) if nested else [_scalar(entry)]
        lines += [f"{'  ' if index else '- '}{line}" for index, line in enumerate(inner)]
    return lines


def _key(name: str) -> str:
    plain = re.fullmatch(r"[a-z][a-z0-9_-]*", name) and name not in WORDS
    return name if plain else _scalar(name)


def _scalar(value: Any) -> str:
    """A plain value as in JSON, which YAML reads but for two things.

    Some characters must be escaped, and a number without a point is text to readers of YAML 1.1.
    """
    if isinstance(value, float) and "e" in repr(value) and "." not in repr(value):
        return repr(value).replace("e", ".0e")
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
