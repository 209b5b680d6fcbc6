"""Hospitals that measure scikit-learn's models with tacit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.examples.conftest import Borrow

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'tacit[demo]'")

SIGMAS = 5
"""A normal error beyond it has probability 5.7e-7: the false alarm of each comparison."""


@pytest.fixture(scope="module")
def example(borrow: Borrow) -> Any:
    return borrow("scikit-learn", "four_hospitals")


@pytest.fixture(scope="module")
def sites(example: Any) -> Any:
    return example.hospitals(6000, seed=4)


def test_private_figures_are_near_and_recalibrated_scores_better(example: Any, sites: Any) -> None:
    from sklearn.metrics import recall_score, roc_auc_score

    tested = example.held_out(sites, seed=4)
    auc, recall = tested.result.auc, tested.result.at(0.3)["recall"]
    exact_area = roc_auc_score(tested.labels, tested.scores)
    assert abs(auc.value - exact_area) < SIGMAS * auc.standard_error
    exact = recall_score(tested.labels, tested.scores >= 0.3)
    assert abs(recall.value - exact) < SIGMAS * recall.standard_error
    assert recall.standard_error < 0.1
    assert tested.result.spent.epsilon == 1.0
    assert tested.result.clients == 4
    mapped = tested.result.calibrator("isotonic").transform(tested.scores)
    before, after = (np.mean((part - tested.labels) ** 2) for part in (tested.scores, mapped))
    assert after < 0.9 * before


def test_cross_validation_scores_every_training_record_once(example: Any, sites: Any) -> None:
    from sklearn.metrics import roc_auc_score

    crossed = example.cross_validated(sites, seed=4)
    assert crossed.scores.size == sum(site.train[1].size for site in sites)
    auc = crossed.result.auc
    exact = roc_auc_score(crossed.labels, crossed.scores)
    assert abs(auc.value - exact) < SIGMAS * auc.standard_error
    assert crossed.result.spent.epsilon == 1.0


def test_the_script_prints_its_table(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example.main(["--records", "4000"])
    said = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in said[2:5]] == [
        "AUC",
        "recall at 0.3",
        "AUC, cross-validated",
    ]
