"""``tacit evaluate --unit``: one word about the scale of scores, for every protocol with cells."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.protocol.conversation import Protocol
from tacit.protocol.registry import protocol_kinds
from tacit.protocol.settings import known_settings
from tests.terminal import run

SCALES: dict[str, str] = {
    name: known_settings(kind)["scale"].default
    for name, kind in protocol_kinds().items()
    if "scale" in known_settings(kind)
}
"""The default scale of every protocol that has one."""
FOR_ANY = [name for name, scale in SCALES.items() if scale == "probability"]
"""Those whose cells are those of log-odds by default."""

UNITS = ("probability", "percent", "log-odds", "real")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    common = ("--split", 4, "--seed", 1, "--exact", "--json")
    result = run("evaluate", file, *options(name), *more, *common)
    assert result.exit_code == 0, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    return content


@cache
def as_probabilities(folder: Path, name: str) -> dict[str, Any]:
    """The result without a unit, with which those of all units are compared."""
    return evaluated(folder / "probability.parquet", name)


def estimate(content: dict[str, Any]) -> float:
    """The estimated figure of a result, an AUC or another."""
    value: float = (content.get("auc") or content["estimate"])["value"]
    return value


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("unit", UNITS)
def test_the_unit_is_the_only_word_about_the_scale(folder: Path, name: str, unit: str) -> None:
    content = evaluated(folder / f"{unit}.parquet", name, "--unit", unit)
    taken = "probability" if unit == "percent" else unit
    plain = as_probabilities(folder, name)
    default = SCALES[name]
    expected = default if taken == "probability" else taken
    assert (content["unit"], content["protocol"]["scale"]) == (taken, expected)
    assert (plain["unit"], plain["protocol"]["scale"]) == ("probability", default)
    assert content["exact"] == pytest.approx(plain["exact"], abs=1e-12)
    if expected in ("probability", "log-odds") and name in FOR_ANY:
        # the same noise on the same cells; a conversion may round a score across an edge
        assert estimate(content) == pytest.approx(estimate(plain), abs=2e-3)


@pytest.mark.parametrize("unit", ["log-odds", "real"])
def test_a_kernel_that_takes_any_unit_has_its_scale(folder: Path, unit: str) -> None:
    chosen = ("--protocol", "ustatistic", "--kernel", "auc", "--epsilon", 1, "--unit", unit)
    result = run("evaluate", folder / f"{unit}.parquet", *chosen, "--split", 4, "--json")
    content = json.loads(result.stdout)
    assert content["unit"] == unit
    assert unit in content["protocol"]["kernel"]


@pytest.mark.parametrize("name", SCALES)
def test_cells_that_were_asked_for_stay_and_scores_are_converted(folder: Path, name: str) -> None:
    chosen = ("--unit", "log-odds", "--scale", "probability")
    content = evaluated(folder / "log-odds.parquet", name, *chosen)
    assert (content["unit"], content["protocol"]["scale"]) == ("probability", "probability")


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize(("scale", "unit"), [("even", "real"), ("log-odds", "real")])
def test_cells_of_another_unit_are_refused_before_a_record_is_read(
    folder: Path, name: str, scale: str, unit: str
) -> None:
    """The file is not there, and nobody notices."""
    chosen = ("--unit", unit, "--scale", scale)
    result = run("evaluate", folder / "nowhere.parquet", *options(name), *chosen)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"got the unit {unit!r}, which cannot be converted" in result.stderr


@pytest.mark.parametrize("name", FOR_ANY)
def test_what_is_no_probability_needs_the_name_of_its_unit(folder: Path, name: str) -> None:
    result = run("evaluate", folder / "real.parquet", *options(name), "--split", 4)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--unit log-odds, or --unit real for any other numbers" in result.stderr


@pytest.mark.parametrize("unit", ["log-odds", "real"])
def test_infinite_scores_are_refused_in_a_sentence(folder: Path, unit: str) -> None:
    file = folder / "infinite.parquet"
    result = run("evaluate", file, "--unit", unit, "--protocol", "fedauc", "--epsilon", 1)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "scores must be finite, got inf in " in result.stderr
    says = "the log-odds of the probabilities 0 and 1 are written -750 and 750" in result.stderr
    assert says == (unit == "log-odds")
    assert len(result.stderr.splitlines()) == 1
