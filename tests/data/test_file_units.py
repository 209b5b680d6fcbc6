"""Files of one owner: units by file, and a stop where scales evidently differ."""

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import DataError, evaluate, read, read_with_groups
from tacit.data.clients import Clients
from tacit.data.scales import ScaleWarning
from tacit.protocols.baselines import ExactAUC
from tacit.protocols.dpauc.protocol import DPAUC
from tacit.protocols.fedauc.protocol import FedAUC
from tacit.running.evaluating import exact_auc

NAMES = ("north", "south", "east")


def probabilities(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 400)
    return 1 / (1 + np.exp(-rng.normal(1.5 * labels - 1, 1.0))), labels


def write(name: str, scores: Any, labels: Any) -> Any:
    rows = "".join(f"{s!r},{y},w\n" for s, y in zip(scores.tolist(), labels, strict=True))
    Path(f"{name}.csv").write_text("score,label,ward\n" + rows, encoding="ascii")
    return f"{name}.csv"


@pytest.fixture
def percent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """North in percent, the others from 0 to 1."""
    monkeypatch.chdir(tmp_path)
    made = [probabilities(seed) for seed in range(3)]
    return [
        write(name, scores * (100 if name == "north" else 1), labels)
        for name, (scores, labels) in zip(NAMES, made, strict=True)
    ]


def true_auc() -> Any:
    scores, labels = (
        np.concatenate(part) for part in zip(*map(probabilities, range(3)), strict=True)
    )
    return exact_auc(Clients.from_arrays(scores, labels))


@pytest.mark.parametrize("reading", [read, lambda files: read_with_groups(files, "ward")])
def test_evidently_different_scales_stop_the_reading(percent: Any, reading: Any) -> None:
    with pytest.raises(DataError) as caught:
        reading(percent)
    said = str(caught.value)
    assert re.match(
        r"scores seem to be of different scales: those of north\.csv are from \S+ to 9\d\.\d+, "
        r"those of south\.csv, east\.csv from 0\.\d+ to 0\.9\d+; name every file's unit: --unit ",
        said,
    )


def test_named_units_give_the_right_figure(percent: Any) -> None:
    clients = read(percent, unit={"north.csv": "percent"})
    assert clients.unit == "probability"
    assert exact_auc(clients) == pytest.approx(true_auc(), abs=1e-12)


def test_one_unit_for_all_files_stays(percent: Any) -> None:
    north = read(percent[0], unit="percent")
    assert north.unit == "percent"
    assert north.scores.max() > 90
    result = evaluate(north, DPAUC(1.0), seed=0)
    assert result.unit == "probability"
    assert abs(result.auc.value - exact_auc(north)) < 0.1
    assert evaluate(north, ExactAUC()).unit == "percent"


def test_real_numbers_are_ranked_and_not_cut(percent: Any) -> None:
    clients = read(percent, unit="real")
    assert evaluate(clients, FedAUC(1.0), seed=0).to_dict()["unit"] == "real"
    with pytest.raises(
        DataError, match=r"takes scores from 0 to 1, got the unit 'real'.*--rescale"
    ):
        evaluate(clients, FedAUC(1.0, trust="mpc"), seed=0)


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("permille", "unit must be one of probability, percent, log-odds, real, got 'permille'"),
        ({"west.csv": "percent"}, "a unit was named for west.csv, which is none of the files"),
        ({"north.csv": "real"}, "scores in real cannot be converted to probability"),
        ("probability", "scores in probability must be from 0 to 1, got"),
        ({}, "scores in probability must be from 0 to 1, got"),
    ],
)
def test_wrong_units_are_refused(percent: Any, unit: str, said: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(said)}"):
        read(percent, unit=unit)


def test_what_is_named_percent_and_lies_within_one_is_a_doubt(percent: Any) -> None:
    with pytest.warns(ScaleWarning, match=r"^south\.csv is read as percent, and all of its scores"):
        read(percent[:2], unit="percent")


def test_a_single_wrong_record_is_a_doubt(percent: Any) -> None:
    scores, labels = probabilities(0)
    scores[3] = 1.7
    write("north", scores, labels)
    with pytest.warns(ScaleWarning, match=r"those of north\.csv are from .* to 1\.7, those of"):
        assert read(percent).records == 1200


def test_files_of_one_scale_are_read_in_silence(percent: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(percent[1:])
        read(percent[0])
        read(percent, label=None)


def test_a_server_that_sees_scores_names_the_client_of_another_scale(percent: Any) -> None:
    """Here clients stand in one table, which is read without a stop."""
    both = [read(file) for file in percent]
    clients = Clients.concatenate(both)
    for protocol in (FedAUC(1.0), FedAUC(1.0, trust="local"), ExactAUC()):
        result = evaluate(clients, protocol, seed=0)
        (reported,) = (text for text in result.warnings if "scales" in text)
        assert "those of north are from" in reported
        assert reported.endswith("then the figure is wrong: name each client's unit")
    fine = evaluate(read(percent[1:]), FedAUC(1.0), seed=0)
    assert not [text for text in fine.warnings if "scales" in text]
