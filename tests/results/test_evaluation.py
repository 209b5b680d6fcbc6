"""Results: their JSON, frames, tables and pictures."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

import tacit
from tests.federations import binormal_clients


def result_of(protocol: tacit.Protocol, **options: Any) -> tacit.Evaluation:
    return tacit.evaluate(binormal_clients(400, 600, 5), protocol, seed=0, **options)


def test_an_unprotected_result_says_so() -> None:
    result = result_of(tacit.ExactAUC())
    made = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert made["schema"] == "tacit-result/2"
    assert made["noise"] == "none"
    unprotected = {"epsilon": None, "delta": 0.0, "adjacency": "none"}
    assert made["spent"] == unprotected | {"mu": None, "advantage": 1.0}
    assert ("privacy spent", "unlimited: no differential privacy") in result.to_rows()


def test_the_html_is_escaped_and_complete() -> None:
    markup = result_of(tacit.NoisyScores(1.0))._repr_html_()
    assert "noisy-scores" in markup
    assert "biases the AUC" in markup
    assert "<script" not in markup


@pytest.mark.parametrize(
    ("module", "method"), [("pandas", "to_frame"), ("matplotlib.figure", "plot")]
)
def test_a_missing_extra_is_a_sentence(
    module: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = result_of(tacit.DPAUC(1.0))
    frame = result.to_frame()
    assert frame.shape[0] == 1
    assert {"auc", "standard_error", "low", "high", "epsilon", "adjacency"} <= set(frame.columns)
    assert "adjacency" in dict(result.to_rows())["privacy spent"]
    monkeypatch.setitem(sys.modules, module, None)
    package = module.split(".", maxsplit=1)[0]
    with pytest.raises(ImportError, match=f"needs? {package}; install it with: pip install"):
        getattr(result, method)()
