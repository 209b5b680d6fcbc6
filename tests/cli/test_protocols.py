"""The command with the protocols that have more to say than an AUC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import tacit
from tacit.results.saved.reading import check_result
from tests.terminal import content_of

HISTOGRAM = ("--protocol", "score-histogram", "--epsilon", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of scores, and one of pairs of ratings."""
    made = tmp_path_factory.mktemp("records")
    scores, labels = tacit.binormal_scores(2000, 3000, 0.8, seed=0)
    rng = np.random.default_rng(0)
    first = rng.integers(1, 7, 3000)
    second = np.clip(first + rng.integers(-2, 3, 3000), 1, 6)
    pa_csv.write_csv(pa.table({"score": scores, "label": labels}), made / "scores.csv")
    pa_csv.write_csv(pa.table({"score": first, "other": second}), made / "ratings.csv")
    return made


def evaluated(*arguments: object) -> dict[str, Any]:
    return content_of("evaluate", *arguments, "--seed", 1, "--exact")


def is_near(result: dict[str, Any], figure: str = "auc") -> bool:
    """Whether an estimate is within five of its errors of the exact figure."""
    distance = abs(result[figure]["value"] - result["exact"])
    return bool(distance < 5 * result[figure]["standard_error"] + 1e-5)


@pytest.mark.parametrize("method", ["binning", "bbq", "isotonic", "platt"])
def test_a_calibrator_is_printed_and_saved(folder: Path, tmp_path: Path, method: str) -> None:
    file = tmp_path / "map.json"
    options = (*HISTOGRAM, "--calibrate", method, "--save-calibrator", file)
    result = evaluated(folder / "scores.csv", "--split", 10, *options)
    check_result(result)
    assert {"auc", "roc", "precision_recall", "reliability", "calibration"} <= result.keys()
    assert {"average_precision", "certain_range", "buckets", "supported_buckets"} <= result.keys()
    assert result["spent"] == {"epsilon": 2.0, "delta": 0.0, "adjacency": "record"}
    assert result["calibrator"] == json.loads(file.read_text())
    loaded = tacit.Calibrator.load(file)
    mapped = loaded.transform(np.linspace(0, 1, 11))
    assert mapped.min() >= 0
    assert mapped.max() <= 1
    assert loaded.method == method


def test_kendalls_tau_of_ratings_needs_no_labels(folder: Path) -> None:
    kernel = "kendall(domain=listed(values=1 2 3 4 5 6))"
    protocol = ("--protocol", "ustatistic", "--kernel", kernel, "--epsilon", 4)
    result = evaluated(folder / "ratings.csv", "--second", "other", *protocol)
    assert result["protocol"]["kernel"] == kernel
    assert result["figure"] == "Kendall's tau"
    assert is_near(result, "estimate")


def test_pairs_of_real_clients_do_not_pretend(folder: Path) -> None:
    protocol = ("--protocol", "paired-ustatistic", "--kernel", "kendall", "--epsilon", 4)
    file = folder / "ratings.csv"
    content = content_of("evaluate", file, "--second", "other", *protocol, "--matchings", 2)
    assert content["noise"] == "system"
    assert content["protocol"]["matchings"] == 2
    assert "computed by a trusted party" in content["warnings"][0]
