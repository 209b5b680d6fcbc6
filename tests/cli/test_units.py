"""``--unit``: files of other units, by name; and a stop where nobody named them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.metrics.ranking import auc
from tacit.running.session.party_file import PartyFile
from tests.terminal import run

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
    together = ["score,old,label,site"]
    for seed, file in enumerate(FILES):
        better, worse, labels = records(seed)
        factor = 100.0 if file == "north.csv" else 1.0
        rows = [
            f"{factor * s!r},{factor * o!r},{y}"
            for s, o, y in zip(better.tolist(), worse.tolist(), labels, strict=True)
        ]
        Path(file).write_text("\n".join(["score,old,label", *rows]) + "\n")
        together += [f"{row},{file[:-4]}" for row in rows]
    Path("together.csv").write_text("\n".join(together) + "\n")
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
    result = run(*COMMANDS[name])
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(
        r"tacit: scores seem to be of different scales: those of north\.csv are from \S+ to "
        r"9\d\.\S+, those of south\.csv, east\.csv from 0\.\S+ to 0\.9\S+; name every file's unit: "
        r"--unit FILE=UNIT, in Python unit=\{FILE: UNIT\}; probability, percent, log-odds, real\n",
        result.stderr,
    )


@pytest.mark.parametrize("protocol", [FEDAUC, HISTOGRAM], ids=["fedauc", "histogram"])
@pytest.mark.usefixtures("folder")
def test_named_units_give_the_right_figure(protocol: tuple[str, ...]) -> None:
    result = run("evaluate", *FILES, *NAMED, *protocol, "--json", "--exact")
    assert (result.exit_code, result.stderr) == (0, "")
    content = json.loads(result.stdout)
    assert content["unit"] == "probability"
    assert content["exact"] == pytest.approx(true_auc(), abs=1e-12)
    assert abs(content["auc"]["value"] - true_auc()) < 0.01


@pytest.mark.usefixtures("folder")
def test_a_comparison_converts_both_columns() -> None:
    result = run(*COMMANDS["compare"], *NAMED, "--json", "--exact")
    assert (result.exit_code, result.stderr) == (0, "")
    content = json.loads(result.stdout)
    assert content["first"]["exact"] == pytest.approx(true_auc(), abs=1e-12)
    assert content["second"]["exact"] == pytest.approx(true_auc(1), abs=1e-12)


@pytest.mark.usefixtures("folder")
def test_clients_of_one_file_are_named_by_the_server_that_sees_their_scores() -> None:
    result = run("evaluate", "together.csv", "--client", "site", *FEDAUC)
    assert result.exit_code == 0
    (reported,) = (line for line in result.stdout.splitlines() if "scales" in line)
    assert reported.startswith("warning: scores seem to be of different scales: those of north are")
    compared = run(
        *("compare", "together.csv", "--client", "site", "--score", "score"),
        *("--versus", "old", "--epsilon", "1"),
    )
    assert "those of north are" in compared.stdout


@pytest.mark.usefixtures("folder")
def test_one_unit_for_all_files_is_named_in_the_result() -> None:
    result = run("evaluate", "north.csv", "--unit", "percent", "--protocol", "exact")
    assert result.exit_code == 0
    assert re.search(r"^unit of scores +percent$", result.stdout, re.MULTILINE)


@pytest.mark.usefixtures("folder")
def test_doubts_stay_on_the_screen_and_out_of_the_result() -> None:
    result = run("evaluate", "south.csv", "--unit", "percent", *FEDAUC, "--json")
    assert result.exit_code == 0
    assert result.stderr == (
        "tacit: warning: south.csv is read as percent, and all of its scores are from 0 to 1\n"
    )
    assert "read as" not in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--unit", "permille"), "a unit is one of probability, percent, log-odds, real, got 'per"),
        (("--unit", "percent", "--unit", "real"), "--unit is given twice, as percent and real"),
        ((*NAMED, *NAMED), "--unit is given twice, as percent and percent"),
        (("--unit", "west.csv=percent"), "--unit west.csv=percent: FILE= names one of north.csv"),
        ((*NAMED, "--rescale", "0", "1"), "--rescale maps scores of --unit real"),
        (("--unit", "probability"), "scores in probability must be from 0 to 1, got"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_units_are_one_sentence(options: tuple[str, ...], said: str) -> None:
    result = run("evaluate", *FILES, *options, *FEDAUC)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.usefixtures("folder")
def test_real_numbers_need_bounds_where_clients_compare_them_together() -> None:
    hidden = (*FEDAUC, "--trust", "mpc")
    refused = run("evaluate", *FILES, "--unit", "real", *hidden)
    assert refused.exit_code == 2
    assert "takes scores from 0 to 1, got the unit 'real'" in refused.stderr
    assert "--rescale LOW HIGH" in refused.stderr
    mapped = run("evaluate", *FILES, "--unit", "real", "--rescale", "0", "100", *hidden)
    assert mapped.exit_code == 0, mapped.stderr


@pytest.mark.parametrize("unit", ["", "probability", "percent", "log-odds", "real"])
def test_files_to_begin_with_name_a_unit(folder: Path, unit: str) -> None:
    chosen = ("--unit", unit) if unit else ()
    run("init", "--party", "a", *chosen, str(folder / "a"))
    assert PartyFile.read(folder / "a" / "party.toml").unit == (unit or "probability")
    run("init", "--coordinator", *chosen, str(folder / "centre"))
    text = (folder / "centre" / "plan.toml").read_text()
    line = next(line for line in text.splitlines() if "in what the protocol takes" in line)
    assert line.startswith(f'unit = "{unit}"' if unit else '# unit = "probability"')
    assert line.index("# in what") == 28


def test_a_word_that_is_no_unit_writes_no_file(folder: Path) -> None:
    result = run("init", "--party", "a", "--unit", "permille", str(folder / "a"))
    assert (result.exit_code, (folder / "a").exists()) == (2, False)
