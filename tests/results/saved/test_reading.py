"""Files that are no results, or no longer what was written, are refused with the reason."""

from __future__ import annotations

import copy
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tacit.results.saved.reading import Result, read_documents
from tests.reporting.examples import changed, content, evaluation


def written(folder: Path, name: str, made: Any) -> str:
    path = folder / name
    path.write_text(made if isinstance(made, str) else json.dumps(made, indent=2))
    return str(path)


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = content("histogram")
    (result,) = read_documents([written(tmp_path, "first.json", made)], Result.of)
    assert result.content == made
    assert result.label == "first"
    estimate = evaluation("histogram").auc
    assert result.estimate.value == estimate.value
    assert result.estimate.interval() == pytest.approx(tuple(estimate.interval()), abs=1e-15)
    wider = tuple(estimate.interval(about="population"))
    assert result.estimate.interval(about="population") == pytest.approx(wider, abs=1e-15)


def test_files_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    paths = [written(tmp_path / f, "same.json", content("fedauc")) for f in ("a", "b")]
    assert [result.label for result in read_documents(paths, Result.of)] == paths


EDITED = copy.deepcopy(content("fedauc"))
EDITED["auc"]["value"] += 1e-9
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({}, "is no result of tacit: it has no schema"),
        ([], "is no result of tacit: it has no schema"),
        ("no json", "is no JSON that can be read"),
        (DEEP, "is no JSON that can be read"),
        ('{"schema": "tacit-result/2", "clients": NaN}', "NaN is no number in JSON"),
        ('{"schema": "tacit-result/2", "clients": 1e999}', "is no result of tacit"),
        ('{"schema": "tacit-result/2", "clients": ' + "9" * 400 + "}", "400 digits"),
        ('{"schema": "a", "schema": "tacit-result/2"}', "an entry appears twice"),
        ({"schema": "tacit-comparison/1"}, "a comparison of two models: only a page or a table"),
        ({"schema": "tacit-groups/1"}, "has several groups: only a page or a table takes it"),
        ({"schema": "tacit-result/3"}, "has the schema 'tacit-result/3', not tacit-result/2"),
        ({"schema": "tacit.evaluation/1"}, "has the schema 'tacit.evaluation/1'"),
        (EDITED, "was changed after it was written"),
        ({**content("fedauc"), "fingerprint": None}, "was changed after it was written"),
        (changed(content("fedauc"), clients="five"), "does not follow the schema"),
        (changed(content("fedauc"), participants=[]), "one entry a client, got 0"),
    ],
    ids=str,
)
def test_what_is_no_result_is_refused(tmp_path: Path, made: Any, reason: str) -> None:
    path = written(tmp_path, "bad.json", made)
    with pytest.raises(ValueError, match=reason) as caught:
        read_documents([path], Result.of)
    assert path in str(caught.value)


def test_curves_of_uneven_columns_are_refused() -> None:
    made = copy.deepcopy(content("dpauc"))
    made["roc"]["thresholds"].pop()
    with pytest.raises(ValueError, match="the columns of roc must have one length"):
        Result.of(changed(made), "uneven")


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.results.saved.reading.MAX_FILE", 2**20)
    with pytest.raises(ValueError, match="is larger than 1 MiB"):
        read_documents([written(tmp_path, "huge.json", " " * (2**20 + 1))], Result.of)


def test_what_is_null_is_not_a_number() -> None:
    estimate = Result.of(content("noisy-scores"), "noisy").estimate
    assert estimate.given
    assert not estimate.has_interval
    assert math.isnan(estimate.interval().low)


CONTRADICTIONS: list[tuple[tuple[str, ...], Any, str]] = [
    (("auc", "limits"), [5.0, 6.0], "auc: the value must lie within its limits"),
    (("auc", "limits"), [1.0, 0.0], "auc: the value must lie within its limits"),
    (("auc", "interval"), [0.99, 1.0], "auc: interval must follow from the errors"),
    (("auc", "population_interval"), [0.1, 0.2], "population_interval must follow"),
    (("auc", "cell_error"), 0.1, "an entry is of a figure or of a measure, got both"),
    (("measures", "brier", "interval"), [0.9, 0.1], "measures.brier: interval must ascend"),
    (("measures", "brier", "limits"), [0.5, 1.0], "measures.brier: the value must lie within"),
    (("at_half", "precision", "draws"), [{"weights": [1.0]}], "at_half.precision"),
    (("decision_curve", "treat_all_low"), None, "decision_curve"),
    (("score_distribution", "low"), [], "score_distribution.low"),
    (("missing",), {"private": True, "counted": False, "records": 5}, "missing"),
]
"""Entries of a result, what stands there instead (None for nothing), and the refusal."""


@pytest.mark.parametrize(("way", "value", "said"), CONTRADICTIONS)
def test_entries_that_contradict_each_other_are_refused(
    way: tuple[str, ...], value: Any, said: str
) -> None:
    made = content("histogram")
    entry = made
    for name in way[:-1]:
        entry = entry[name]
    if value is None:
        del entry[way[-1]]
    else:
        entry[way[-1]] = value
    with pytest.raises(ValueError, match=re.escape(said)):
        Result.of(changed(made), "made up")
