"""Metadata of model cards: the Hub's fields, as YAML that other programs read."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.reporting.model_index import as_yaml, model_index
from tacit.results.saved.reading import Result
from tests.reporting.examples import FEDERATION, changed, content, result

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
)
MAPPINGS = st.recursive(
    st.dictionaries(TEXTS, SCALARS, max_size=3),
    lambda inner: st.dictionaries(TEXTS, inner | st.lists(inner | SCALARS, max_size=3), max_size=3),
    max_leaves=8,
)


def read(text: str) -> Any:
    return yaml.safe_load(text)


@settings(deadline=None, max_examples=60)
@given(MAPPINGS.filter(bool))
@example({"a\x85": "\x85b", "c": "\ufeff\u2028"})
def test_yaml_reads_back(made: dict[str, Any]) -> None:
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
    types = [metric["type"] for metric in entry["metrics"]]
    assert types == [
        "roc_auc",
        "average_precision",
        "precision",
        "recall",
        "f1",
        "accuracy",
        "brier_score",
    ]


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
    names = {
        each: [
            (metric["name"], metric.get("args", {}).get("threshold"))
            for metric in read(model_index([result(each)]))["model-index"][0]["results"][0][
                "metrics"
            ]
        ]
        for each in ("exact-histogram", "log-odds", "real")
    }
    assert ("precision at 0.5", 0.5) in names["exact-histogram"]
    assert ("precision at 0", 0.0) in names["log-odds"]
    assert not any(" at " in name for name, _ in names["real"])


def test_the_exact_figure_never_enters_a_card() -> None:
    made = content("dpauc", exact=True)
    assert str(made["exact"]) not in model_index([Result.of(made, "a")])


def test_results_are_models_of_their_own_or_of_one_name() -> None:
    results = [result("dpauc", "first"), result("fedauc", "second")]
    apart = read(model_index(results))["model-index"]
    assert [model["name"] for model in apart] == ["first", "second"]
    (together,) = read(model_index(results, "both"))["model-index"]
    assert len(together["results"]) == 2


def test_names_stay_names() -> None:
    made = copy.deepcopy(content("dpauc"))
    nasty = "a: [b]\n---\nmodel-index: 'x' \"y\" # \u2028 \x85 \x07 \U0001f600"
    made["federation"]["name"] = nasty
    (model,) = read(model_index([Result.of(changed(made), "a")], nasty))["model-index"]
    assert model["name"] == nasty
    assert model["results"][0]["dataset"]["name"] == f"{nasty} (simulated)"


def test_what_has_no_estimate_makes_no_card() -> None:
    nothing = {"value": None, "interval": [None, None], "population_interval": [None, None]}
    silent = content("fedauc")["auc"] | nothing
    made = Result.of(changed(content("fedauc"), auc=silent), "silent")
    with pytest.raises(ValueError, match="silent has no estimate"):
        model_index([made])
    with pytest.raises(ValueError, match="at least one result"):
        model_index([])
    with pytest.raises(ValueError, match="must not be empty"):
        model_index([result("dpauc")], "")
