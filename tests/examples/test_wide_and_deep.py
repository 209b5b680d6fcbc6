"""Split learning of a wide-and-deep model, its records, and what its evaluation costs."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import Clients, binormal_scores
from tests.examples.conftest import EXAMPLES, Borrow
from tests.terminal import in_python

FOLDER = "wide-and-deep"
TRAIN = EXAMPLES / FOLDER / "train.py"
SIGMAS = 5
"""A normal error beyond it has probability 5.7e-7: the false alarm of each comparison."""


@pytest.fixture(scope="module")
def criteo(borrow: Borrow) -> Any:
    return borrow(FOLDER, "criteo")


@pytest.fixture(scope="module")
def impressions(borrow: Borrow) -> Any:
    return borrow(FOLDER, "synthetic").synthetic_impressions(4000, seed=3)


def same(one: Any, other: Any) -> None:
    for name in ("labels", "integers", "categories"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert getattr(one, name).dtype == getattr(other, name).dtype


def test_a_line_of_the_challenge_is_read_as_documented(criteo: Any, tmp_path: Path) -> None:
    integers = ["1", "", "-2", "70000", *[""] * 9]
    categories = ["68fd1e64", "", "ffffffff", *["0000000a"] * 23]
    (tmp_path / "train.txt").write_text("\t".join(["1", *integers, *categories]) + "\n")
    read = criteo.read_criteo(tmp_path / "train.txt")
    assert read.labels.tolist() == [1]
    np.testing.assert_array_equal(read.integers[0], [1, np.nan, -2, 70000, *[np.nan] * 9])
    assert read.categories[0].tolist() == [0x68FD1E64, criteo.MISSING, 2**32 - 1, *[10] * 23]


def test_written_records_are_read_back(criteo: Any, impressions: Any, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    criteo.write_criteo(path, impressions)
    same(criteo.read_criteo(path), impressions)
    packed = tmp_path / "train.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    first = criteo.read_criteo(packed, 123)
    assert first.records == 123
    np.testing.assert_array_equal(first.categories, impressions.categories[:123])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\t2\n", "not in Criteo's format"),
        ("\t".join(["2", *[""] * 39]) + "\n", "labels must be 0 or 1, got 2"),
        ("\t".join(["1", "x", *[""] * 38]) + "\n", "not in Criteo's format"),
        ("\t".join(["1", *[""] * 13, "1ffffffff", *[""] * 25]) + "\n", "8 hexadecimal digits"),
        ("\t".join(["1", *[""] * 39]) + "\n", "holds 1 records, 2 were asked for"),
    ],
)
def test_another_file_is_refused_by_name(criteo: Any, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "other.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as refused:
        criteo.read_criteo(path, 2)
    assert str(path) in str(refused.value)


def parties(seed: int, auc_value: float, size: int = 3000) -> tuple[Any, Any]:
    """Scores and labels of six label parties."""
    scores, labels = binormal_scores(size // 4, size - size // 4, auc_value, seed=seed)
    clients = Clients.split(scores, labels, clients=6, seed=1)
    cuts = clients.offsets[1:-1]
    return np.split(clients.scores, cuts), np.split(clients.labels, cuts)


def test_labels_flipped_once_cost_epsilon_over_all_epochs(borrow: Borrow) -> None:
    scores, labels = parties(0, 0.7)
    meter = borrow(FOLDER, "measuring").Meter(labels, 0.8, seed=0)
    random = np.random.default_rng(5)
    for _ in range(4):
        meter.measure([part + random.normal(0, 0.3, part.size) for part in scores])
    assert [result.once.spent for result in meter.results] == [0.8, 0.0, 0.0, 0.0]
    assert [result.once.total for result in meter.results] == [0.8] * 4
    np.testing.assert_allclose(
        [result.fresh.total for result in meter.results], [0.8, 1.6, 2.4, 3.2]
    )
    assert len({result.once.auc.value for result in meter.results}) == 4


def test_without_torch_one_sentence_says_what_to_install() -> None:
    code = (
        f"import sys, runpy; sys.modules['torch'] = None; sys.path.insert(0, {str(TRAIN.parent)!r})"
        f"; runpy.run_path({str(TRAIN)!r}, run_name='__main__')"
    )
    done = in_python(code)
    assert done.returncode == 1
    assert done.stderr == (
        "train.py: training needs torch, which is not installed: pip install 'tacit[training]'\n"
    )


SMALL = ("--records", "4000", "--epochs", "2", "--parties", "4", "--seed", "3")


def trained(borrow: Borrow, out: Path, *more: str) -> tuple[Any, str]:
    """The results of a small run, and what it printed."""
    pytest.importorskip("torch", reason="needs torch: pip install 'tacit[training]'")
    train, said = borrow(FOLDER, "train"), io.StringIO()
    with contextlib.redirect_stdout(said):
        train.main([*SMALL, "--json", str(out), *more])
    return json.loads(out.read_text()), said.getvalue()


@pytest.fixture(scope="module")
def run(borrow: Borrow, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    return trained(borrow, tmp_path_factory.mktemp("out") / "new" / "run.json")


def test_training_measures_every_epoch_privately(run: tuple[Any, str]) -> None:
    content, said = run
    for epoch in content["epochs"]:
        for name in ("once", "fresh"):
            error = epoch[name]["value"] - epoch["exact"]
            assert abs(error) < SIGMAS * epoch[name]["standard_error"]
    assert [epoch["once"]["total"] for epoch in content["epochs"]] == [1.0, 1.0]
    assert [epoch["fresh"]["total"] for epoch in content["epochs"]] == [1.0, 2.0]
    assert content["epochs"][1]["exact"] > 0.55
    assert content["test_records"] == 1200
    assert f"{content['epochs'][1]['once']['value']:.4f}" in said
    assert "is not private" in said
    # the README says that the server reads training labels from gradients
    assert content["traffic"]["read"] == content["traffic"]["labels"] == 2 * 2800


def test_a_file_of_the_same_records_gives_the_same_results(
    borrow: Borrow, criteo: Any, impressions: Any, run: tuple[Any, str], tmp_path: Path
) -> None:
    criteo.write_criteo(tmp_path / "train.txt", impressions)
    read, _ = trained(borrow, tmp_path / "read.json", "--criteo", str(tmp_path / "train.txt"))
    assert read["data"] == "train.txt"
    assert read["epochs"] == run[0]["epochs"]


def test_split_gradients_equal_whole_ones(borrow: Borrow, criteo: Any, impressions: Any) -> None:
    """The step of a server that sees gradients only, against differentiating in one piece."""
    torch = pytest.importorskip("torch", reason="needs torch: pip install 'tacit[training]'")
    split = borrow(FOLDER, "split_training")
    split.start_from(0)
    layers = split.Layers(buckets=50)
    owned = (np.arange(100, 200), np.arange(100))
    server = split.FeatureParty(criteo.Features.of(impressions, 50), owned, layers)
    party = split.LabelParty(impressions.labels[owned[1]], layers)
    records = np.array([5, 17, 80, 2])
    labels = torch.from_numpy(impressions.labels[owned[1]][records].astype(np.float32))
    whole = torch.nn.functional.binary_cross_entropy_with_logits(
        party._logits(server._cut(1, records)), labels
    )
    weights = [server._embedding.weight, server._wide.weight, server._deep[0].weight]
    expected = torch.autograd.grad(whole, weights)
    server.backward(party.learn(server.forward(1, records)))
    for weight, gradient in zip(weights, expected, strict=True):
        torch.testing.assert_close(weight.grad, gradient)
