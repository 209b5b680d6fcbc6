"""Comparisons of models and groups of records in a report: what is shown, and what is refused."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import main
from tacit.reporting.page import report
from tacit.results.saved.integrity import with_fingerprint
from tacit.results.saved.reading import ComparedModels, GroupedResult, document_of, read_documents
from tests.reporting.hostile import document
from tests.terminal import succeeded


@pytest.fixture(scope="module")
def clients() -> tacit.Clients:
    scores, labels = tacit.binormal_scores(600, 1800, 0.8, seed=0)
    return tacit.Clients.split(scores, labels, clients=4, seed=0)


@pytest.fixture(scope="module")
def comparison(clients: tacit.Clients) -> dict[str, Any]:
    other = 0.5 * clients.scores + 0.5 * np.random.default_rng(0).random(clients.records)
    found = tacit.compare(clients, other, tacit.FedAUC(8.0), seed=1, names=("n<b>ew", "old"))
    return found.to_dict()


@pytest.fixture(scope="module")
def groups(clients: tacit.Clients) -> dict[str, Any]:
    wards = np.array(["east", "we<st"])[np.arange(clients.records) % 2]
    wards[0] = "tiny"
    made = tacit.Groups.from_arrays(wards)
    return tacit.evaluate_groups(clients, made, tacit.FedAUC(8.0), seed=1).to_dict()


def test_a_comparison_shows_both_models_and_their_difference(comparison: dict[str, Any]) -> None:
    made = document_of(comparison, "models")
    assert isinstance(made, ComparedModels)
    assert [model.label for model in made.models] == ["n<b>ew", "old"]
    assert made.difference.estimate.value == comparison["difference"]["value"]
    page = report([made])
    assert "Two models on the same records" in page
    assert "n&lt;b&gt;ew</bdi> less <bdi>old" in page
    assert "n&lt;b&gt;ew has the higher AUC, on these records and in the population." in page
    assert "n<b>ew" not in page
    assert "both models' scores of every record" in page.replace("&#39;", "'")
    assert "exact AUCs" not in page


def test_exact_figures_of_models_come_with_a_caution() -> None:
    page = report([document("models")])
    assert "This report holds the exact AUCs" in page
    assert "neither model is shown to be better" in page


def test_groups_are_a_table_a_plot_and_folded_reports(groups: dict[str, Any]) -> None:
    made = document_of(groups, "wards")
    assert isinstance(made, GroupedResult)
    page = report([made])
    assert page.count("<summary>Group ") == 2
    assert "an evaluation needs at least two records, got 1" in page
    assert "we&lt;st" in page
    assert "we<st" not in page
    assert re.search(r"The highest and the lowest figure of these records are [0-9.]+ to", page)
    assert "<td>1,200</td>" in page


def test_of_many_groups_the_page_has_the_table_only(clients: tacit.Clients) -> None:
    made = tacit.Groups.from_arrays(np.arange(clients.records) % 14)
    found = tacit.evaluate_groups(clients, made, tacit.FedAUC(8.0), seed=1)
    page = report([document_of(found.to_dict(), "wards")])
    assert "<summary>Group" not in page
    assert "shows these groups in this table only" in page


def test_results_comparisons_and_groups_share_a_page(
    clients: tacit.Clients, comparison: dict[str, Any], groups: dict[str, Any], tmp_path: Path
) -> None:
    single = [tacit.evaluate(clients, tacit.DPAUC(8.0), seed=seed).to_dict() for seed in (1, 2)]
    paths = []
    for name, content in zip("abcd", (*single, comparison, groups), strict=True):
        paths.append(str(tmp_path / f"{name}.json"))
        Path(paths[-1]).write_text(json.dumps(content))
    page = report(read_documents(paths, document_of))
    assert "AUC compared" in page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for index, name in enumerate("abcd"):
        assert f'<a href="#r{index}"><bdi>{name}</bdi></a>' in page
        assert f'<article id="r{index}"' in page
    succeeded(CliRunner().invoke(main, ["report", *paths, "-o", str(tmp_path / "x.html")]))
    card = CliRunner().invoke(main, ["report", paths[2], "--format", "model-index"])
    assert card.exit_code == 2
    assert "only a page or a table takes it" in card.stderr
    made = succeeded(CliRunner().invoke(main, ["report", *paths, "--format", "md"]))
    for text in (
        r"c | AUC, n\<b>ew less old |",
        r"d | AUC, group we\<st |",
        "d | AUC, group tiny |",
    ):
        assert text in made.output


def test_what_does_not_fit_is_refused(comparison: dict[str, Any], groups: dict[str, Any]) -> None:
    edited = copy.deepcopy(comparison)
    edited["first"]["value"] = 0.99
    with pytest.raises(ValueError, match="was changed after it was written"):
        document_of(edited, "models")
    for name, wrong in (("first", None), ("second", {"name": 3}), ("difference", [])):
        content = with_fingerprint({**comparison, name: wrong})
        with pytest.raises(ValueError, match="models does not follow the schema"):
            document_of(content, "models")
    for entry, value in {"groups": [], "spread": 3, "warnings": [1], "spent": {}}.items():
        content = with_fingerprint({**groups, entry: value})
        with pytest.raises(ValueError, match="wards does not follow the schema tacit-groups/1"):
            document_of(content, "wards")
    inner = copy.deepcopy(groups)
    inner["groups"][0]["result"]["clients"] = 5
    with pytest.raises(ValueError, match="wards, group east was changed"):
        document_of(with_fingerprint(inner), "wards")
