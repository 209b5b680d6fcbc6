from pathlib import Path

import numpy as np
import pytest

from tacit.metrics.ranking import auc
from tacit_studies.sources import LARGE, SMALL, Scores, _area
from tests.studies.sources import FEW, SOME, real_clients


def test_the_sets_have_the_papers_sizes() -> None:
    assert (SMALL.records, LARGE.records) == (458_407, 4_584_062)


@pytest.mark.parametrize("epoch", [0, 1, 2])
@pytest.mark.parametrize("real", [False, True])
def test_the_exact_auc_is_the_papers(epoch: int, real: bool) -> None:
    source = Scores(real_clients() if real else None)
    scores, labels = source.draw(SOME, epoch, seed=3)
    assert auc(scores, labels) == pytest.approx(SOME.auc[epoch], abs=1e-6)
    assert (int(labels.sum()), labels.size) == (SOME.positives, SOME.records)
    assert scores.min() > 0
    assert scores.max() < 1


def test_epochs_differ_by_the_positives_shift_alone() -> None:
    source = Scores(real_clients())
    first, labels = source.draw(FEW, epoch=0, seed=9)
    second, again = source.draw(FEW, epoch=2, seed=9)
    assert (labels == again).all()
    assert (first[labels == 0] == second[labels == 0]).all()
    odds = np.log(first / (1 - first)) - np.log(second / (1 - second))
    assert np.ptp(odds[labels == 1]) < 1e-9


def test_the_area_counts_ties_one_half() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, 60).astype(float)
    labels = rng.integers(0, 2, 60).astype(np.int8)
    ours, theirs = np.sort(scores[labels == 1]), np.sort(scores[labels == 0])
    assert _area(ours, theirs) == pytest.approx(auc(scores, labels), abs=1e-15)


def test_a_file_is_a_source(tmp_path: Path) -> None:
    clients = real_clients(30, 70)
    lines = [f"{s},{y}" for s, y in zip(clients.scores, clients.labels, strict=True)]
    path = tmp_path / "scores.csv"
    path.write_text("p,y\n" + "\n".join(lines))
    source = Scores.from_file(path, score="p", label="y")
    scores, _ = source.draw(FEW, epoch=0, seed=0)
    assert source.real is not None
    assert source.real.records == 100
    assert scores.size == FEW.records
