"""``--unit``: files of other units, by name; and a stop where nobody named them.

``tacit evaluate --unit``: one word about the scale of scores, for every protocol with cells.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import tacit
from tacit.data.units import UNITS
from tacit.metrics.ranking import auc
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_kinds
from tacit.protocol.settings import known_settings
from tacit.running.session.party_file import PartyFile
from tests.terminal import content_of, refusal_of, run, succeeded

FEDAUC = ("--protocol", "fedauc", "--epsilon", "8", "--seed", "1")
HISTOGRAM = ("--protocol", "score-histogram", "--epsilon", "8", "--seed", "1")
NAMED = ("--unit", "north.csv=percent")
FILES = ("north.csv", "south.csv", "east.csv")


def records(seed: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 800)
    hidden = rng.normal(1.5 * labels - 1, 1.0)
    better = 1 / (1 + np.exp(-hidden))
    worse = 1 / (1 + np.exp(-hidden - rng.normal(0, 1, 800)))
    return better, worse, labels


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """North in percent, south and east from 0 to 1; and all in one file, by site."""
    monkeypatch.chdir(tmp_path)
    frames = []
    for seed, file in enumerate(FILES):
        better, worse, labels = records(seed)
        factor = 100.0 if file == "north.csv" else 1.0
        columns = {"score": factor * better, "old": factor * worse, "label": labels}
        frames.append(pd.DataFrame(columns | {"site": file[:-4]}))
        frames[-1].to_csv(file, index=False)
    pd.concat(frames).to_csv("together.csv", index=False)
    return tmp_path


def true_auc(column: int = 0) -> float:
    parts = [records(seed) for seed in range(3)]
    scores = np.concatenate([part[column] for part in parts])
    return float(auc(scores, np.concatenate([part[2] for part in parts])))


COMMANDS = {
    "evaluate": ("evaluate", *FILES, *FEDAUC),
    "histogram": ("evaluate", *FILES, *HISTOGRAM),
    "split": ("evaluate", *FILES, "--split", "5", *FEDAUC),
    "rescaled": ("evaluate", *FILES, "--rescale", "0", "100", *HISTOGRAM),
    "groups": ("evaluate", *FILES, "--groups", "label", *FEDAUC),
    "compare": ("compare", *FILES, "--score", "score", "--versus", "old", "--epsilon", "1"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_different_scales_stop_with_files_ranges_and_remedy(name: str) -> None:
    assert re.fullmatch(
        r"scores seem to be of different scales: those of north\.csv are from \S+ to 9\d\.\S+, "
        r"those of south\.csv, east\.csv from 0\.\S+ to 0\.9\S+; name every file's unit: "
        r"--unit FILE=UNIT, in Python unit=\{FILE: UNIT\}; probability, percent, log-odds, real",
        refusal_of(run(*COMMANDS[name])),
    )


@pytest.mark.usefixtures("folder")
def test_a_comparison_converts_both_columns() -> None:
    content = content_of(*COMMANDS["compare"], *NAMED, "--exact")
    assert content["first"]["exact"] == pytest.approx(true_auc(), abs=1e-12)
    assert content["second"]["exact"] == pytest.approx(true_auc(1), abs=1e-12)


@pytest.mark.usefixtures("folder")
def test_clients_of_one_file_are_named_by_the_server_that_sees_their_scores() -> None:
    compared = ("--score", "score", "--versus", "old", "--epsilon", "1")
    for command, options in (("evaluate", FEDAUC), ("compare", compared)):
        result = run(command, "together.csv", "--client", "site", *options)
        assert "warning: scores seem to be of different scales: those of north" in result.stdout


@pytest.mark.usefixtures("folder")
def test_doubts_stay_on_the_screen_and_out_of_the_result() -> None:
    result = succeeded(run("evaluate", "south.csv", "--unit", "percent", *FEDAUC, "--json"))
    assert result.stderr == (
        "tacit: warning: south.csv is read as percent, and all of its scores are from 0 to 1\n"
    )
    assert "read as" not in result.stdout


@pytest.mark.usefixtures("folder")
def test_real_numbers_need_bounds_where_clients_compare_them_together() -> None:
    hidden = (*FEDAUC, "--trust", "mpc")
    refused = refusal_of(run("evaluate", *FILES, "--unit", "real", *hidden))
    assert "takes scores from 0 to 1, got the unit 'real'" in refused
    assert "--rescale LOW HIGH" in refused
    succeeded(run("evaluate", *FILES, "--unit", "real", "--rescale", "0", "100", *hidden))


@pytest.mark.parametrize("unit", ["", *UNITS])
def test_files_to_begin_with_name_a_unit(folder: Path, unit: str) -> None:
    chosen = ("--unit", unit) if unit else ()
    run("init", "--party", "a", *chosen, str(folder / "a"))
    assert PartyFile.read(folder / "a" / "party.toml").unit == (unit or "probability")
    run("init", "--coordinator", *chosen, str(folder / "centre"))
    text = (folder / "centre" / "plan.toml").read_text()
    line = next(line for line in text.splitlines() if "in what the protocol takes" in line)
    assert line.startswith(f'unit = "{unit}"' if unit else '# unit = "probability"')
    assert line.index("# in what") == 28


SCALES: dict[str, str] = {
    name: known_settings(kind)["scale"].default
    for name, kind in protocol_kinds().items()
    if "scale" in known_settings(kind)
}
"""The default scale of every protocol that has one."""
FOR_ANY = [name for name, scale in SCALES.items() if scale == "probability"]
"""Those whose cells are those of log-odds by default."""


@pytest.fixture(scope="module")
def units_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same records four times, as Parquet, by the name of their unit.

    Each has a score, a label, a private group, and the score of the other class.
    """
    made = tmp_path_factory.mktemp("units")
    scores, labels = tacit.binormal_scores(2000, 4000, 0.8, seed=0)
    odds = np.log(scores / (1 - scores))
    columns = {
        "probability": (scores, 1 - scores),
        "percent": (100 * scores, 100 * (1 - scores)),
        "log-odds": (odds, -odds),
        "real": (1000 * odds - 400, -1000 * odds - 400),
    }
    wards = np.resize(["east", "west"], labels.size)
    for unit, (column, other) in columns.items():
        table = pa.table({"score": column, "label": labels, "ward": wards, "other": other})
        pq.write_table(table, made / f"{unit}.parquet")
    infinite = np.where(np.arange(odds.size) == 6, np.inf, odds)
    pq.write_table(pa.table({"score": infinite, "label": labels}), made / "infinite.parquet")
    return made


@cache
def options(name: str) -> tuple[object, ...]:
    """The protocol's first configuration of the laws that takes any unit, as options."""
    kind = protocol_kinds()[name]
    case = next(each for each in kind.law_cases().values() if each.for_unit("real").unit == "real")
    scores, labels = tacit.binormal_scores(2000, 4000, 0.8, seed=0)
    protocol = case.sized_for(tacit.Clients.split(scores, labels, clients=4, seed=0))
    chosen: list[object] = ["--protocol", name, *columns_of(kind)]
    for key, setting in known_settings(kind).items():
        value, flag = getattr(protocol, key), key.replace("_", "-")
        if key == "scale" or value is None or not setting.differs(protocol):
            continue
        if isinstance(value, bool):
            chosen.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            chosen += [f"--{flag}", value]
    return tuple(chosen)


def columns_of(kind: type[Protocol]) -> tuple[str, ...]:
    """Options that name the columns of classes or private groups, where a protocol needs them."""
    if kind.scores_by_class:
        return ("--scores", "other,score")
    if not kind.categories_setting:
        return ()
    flag = "--" + kind.categories_setting.replace("_", "-")
    return ("--private-group", "ward", flag, "east,west")


def evaluated(file: Path, name: str, *more: object) -> dict[str, Any]:
    common = ("--split", 4, "--seed", 1, "--exact")
    return content_of("evaluate", file, *options(name), *more, *common)


@cache
def as_probabilities(units_folder: Path, name: str) -> dict[str, Any]:
    """The result without a unit, with which those of all units are compared."""
    return evaluated(units_folder / "probability.parquet", name)


def estimate(content: dict[str, Any]) -> float:
    """The estimated figure of a result, an AUC or another."""
    return (content.get("auc") or content["estimate"])["value"]


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_alone_decides_the_scale(units_folder: Path, name: str, unit: str) -> None:
    content = evaluated(units_folder / f"{unit}.parquet", name, "--unit", unit)
    taken = "probability" if unit == "percent" else unit
    plain = as_probabilities(units_folder, name)
    default = SCALES[name]
    expected = default if taken == "probability" else taken
    assert (content["unit"], content["protocol"]["scale"]) == (taken, expected)
    assert (plain["unit"], plain["protocol"]["scale"]) == ("probability", default)
    assert content["exact"] == pytest.approx(plain["exact"], abs=1e-12)
    if expected in ("probability", "log-odds") and name in FOR_ANY:
        # the same noise on the same cells; a conversion may round a score across an edge
        assert estimate(content) == pytest.approx(estimate(plain), abs=2e-3)


def test_cells_that_were_asked_for_stay_and_scores_are_converted(units_folder: Path) -> None:
    """As where the library is told which settings were given, which other tests are about."""
    chosen = ("--unit", "log-odds", "--scale", "probability")
    content = evaluated(units_folder / "log-odds.parquet", "score-histogram", *chosen)
    assert (content["unit"], content["protocol"]["scale"]) == ("probability", "probability")


@pytest.mark.parametrize("unit", ["log-odds", "real"])
def test_infinite_scores_are_refused_in_a_sentence(units_folder: Path, unit: str) -> None:
    file = units_folder / "infinite.parquet"
    chosen = ("--unit", unit, "--protocol", "fedauc", "--epsilon", 1)
    said = refusal_of(run("evaluate", file, *chosen))
    assert "scores must be finite, got inf in " in said
    says = "the log-odds of the probabilities 0 and 1 are written -750 and 750" in said
    assert says == (unit == "log-odds")
