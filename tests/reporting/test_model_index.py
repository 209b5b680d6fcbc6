"""Metadata of model cards: the Hub's fields, as YAML that other programs read."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tacit.reporting.tables import as_yaml, model_index
from tacit.results.saved.reading import Result
from tests.reporting.examples import FEDERATION, content, result


def read(text: str) -> Any:
    return yaml.safe_load(text)


@pytest.mark.parametrize(
    "text", ["\x85b", "\ufeff\u2028", "a: [b]\n---\n'x' \"y\" # \x07 \U0001f600"]
)
def test_yaml_reads_back(text: str) -> None:
    made = {f"a{text}": [text, {"b": None, "c": [1, 0.5, True]}], "d": {text: "=1"}}
    assert read(as_yaml(made)) == made


def test_the_fields_are_the_hub_s() -> None:
    (model,) = read(model_index([result("histogram", federation=FEDERATION)], "risk"))[
        "model-index"
    ]
    assert model["name"] == "risk"
    (entry,) = model["results"]
    assert entry.keys() == {"task", "dataset", "metrics"}
    assert entry["task"]["type"] == "tabular-classification"
    assert entry["dataset"] == {
        "type": "five-hospitals-test-set-3",
        "name": f"{FEDERATION} (simulated)",
    }
    for metric in entry["metrics"]:
        assert {"type", "value", "name"} <= metric.keys() <= {"type", "value", "name", "args"}
    types = ["roc_auc", "average_precision", "precision", "recall", "f1", "accuracy", "brier_score"]
    assert [metric["type"] for metric in entry["metrics"]] == types


def test_the_figures_are_those_of_the_json() -> None:
    made = content("histogram", federation=FEDERATION)
    entry = read(model_index([Result.of(made, "a")]))["model-index"][0]["results"][0]
    auc, precision = entry["metrics"][0], entry["metrics"][2]
    assert auc["value"] == made["auc"]["value"]
    assert auc["args"]["interval_95"] == made["auc"]["interval"]
    assert auc["args"]["spent"] == "epsilon 1, record adjacency"
    assert auc["args"]["simulation"] is True
    assert auc["args"]["result"] == made["fingerprint"]
    assert precision["value"] == made["at_half"]["precision"]["value"]
    assert precision["args"]["threshold"] == 0.5


def test_rates_are_at_the_threshold_of_one_half() -> None:
    """0.5 for probabilities, 0 for log-odds; real numbers state no probability."""
    named = ("exact-histogram", "log-odds", "real")
    models = read(model_index([result(each) for each in named]))["model-index"]
    assert tuple(model["name"] for model in models) == named
    exact, odds, real = (
        [
            (metric["name"], metric.get("args", {}).get("threshold"))
            for metric in model["results"][0]["metrics"]
        ]
        for model in models
    )
    assert ("precision at 0.5", 0.5) in exact
    assert ("precision at 0", 0.0) in odds
    assert not any(" at " in name for name, _ in real)
    (together,) = read(model_index([result("dpauc"), result("fedauc")], "both"))["model-index"]
    assert len(together["results"]) == 2


def test_the_exact_figure_never_enters_a_card() -> None:
    made = content("dpauc", exact=True)
    assert str(made["exact"]) not in model_index([Result.of(made, "a")])


def test_what_has_no_estimate_makes_no_card() -> None:
    with pytest.raises(ValueError, match="silent has no estimate"):
        model_index([result("silent")])
    with pytest.raises(ValueError, match="at least one result"):
        model_index([])
    with pytest.raises(ValueError, match="must not be empty"):
        model_index([result("dpauc")], "")
