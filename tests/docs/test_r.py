"""The page on R: its arguments of ``tacit`` work, its names are in a result, and its blocks run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import tacit
from tests.terminal import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "r.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```r\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

CALL = re.compile(r"system2\(\"tacit\", c\((.*?)\)\)", re.DOTALL)
TEXT = re.compile(r'"([^"]*)"')
COLUMN = re.compile(r"^  (\w+) = ", re.MULTILINE)
ENTRY = re.compile(r"\bresult((?:\$\w+)+)")
PART = re.compile(r"\bresult\$(\w+)\[c\((.*?)\)\]")
SAVED = re.compile(r"\bevaluation\$to_dict\(\)((?:\$\w+)+)")
ATTRIBUTE = re.compile(r"\bevaluation((?:\$\w+)+)")
PASSED = re.compile(r"tacit\$evaluate\(\s*records,(.*?)\n\)", re.DOTALL)
ARGUMENT = re.compile(r"(\w+) = ([^,\s]+)")


def names_of(path: str) -> list[str]:
    """The names of ``$a$b``."""
    return path.removeprefix("$").split("$")


def table() -> dict[str, list[Any]]:
    """Records with the columns of the page's data frame."""
    scores, labels = tacit.binormal_scores(1200, 2800, 0.8, seed=0)
    sites = ["north", "south"] * (len(scores) // 2)
    return {"hospital": sites, "risk": scores.tolist(), "outcome": labels.tolist()}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The JSON that the page's command writes, of a file as ``write.csv`` writes it."""
    folder = tmp_path_factory.mktemp("r")
    records = table()
    rows = zip(*records.values(), strict=True)
    lines = [",".join(f'"{name}"' for name in records)]
    lines += [f'"{site}",{score},{label}' for site, score, label in rows]
    (folder / "records.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    (call,) = CALL.findall("".join(BLOCKS))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = run(*TEXT.findall(call))
    assert done.exit_code == 0, done.output
    return json.loads((folder / "result.json").read_text(encoding="utf-8"))


def test_the_data_frame_has_the_columns_of_the_test() -> None:
    assert COLUMN.findall(BLOCKS[0]) == list(table())


def test_every_entry_that_the_page_reads_is_in_a_result(result: dict[str, Any]) -> None:
    paths = [path for block in BLOCKS for path in ENTRY.findall(block)]
    assert len(paths) >= 7
    for path in paths:
        assert reduce(lambda entry, name: entry[name], names_of(path), result) is not None
    ((entry, parts),) = PART.findall("".join(BLOCKS))
    columns = [result[entry][name] for name in TEXT.findall(parts)]
    assert len(columns) == 3
    assert {len(column) for column in columns} == {len(columns[0])}
    assert all("value" in measure for measure in result["measures"].values())


def test_the_arguments_and_attributes_of_the_package_exist() -> None:
    pandas = pytest.importorskip("pandas")
    (passed,) = PASSED.findall(BLOCKS[-1])
    settings = {name: json.loads(value) for name, value in ARGUMENT.findall(passed)}
    evaluation = tacit.evaluate(pandas.DataFrame(table()), **settings)
    for path in ATTRIBUTE.findall(BLOCKS[-1]):
        assert reduce(getattr, names_of(path), evaluation) is not None
    for path in SAVED.findall(BLOCKS[-1]):
        assert reduce(lambda entry, name: entry[name], names_of(path), evaluation.to_dict())


def in_r(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in R, which finds this environment's ``tacit`` and Python."""
    (folder / "program.R").write_text(program, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["Rscript", "program.R"],
        cwd=folder,
        env={**os.environ, "PATH": path, "RETICULATE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("package", ["jsonlite", "reticulate"])
def test_the_blocks_run_in_r(package: str, tmp_path: Path) -> None:
    """The command and its JSON; the package, from the records of the first block."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    if in_r(f"library({package})", tmp_path).returncode != 0:
        pytest.skip(f"R's package {package} is not installed")
    chosen = [BLOCKS[0], BLOCKS[-1]] if package == "reticulate" else BLOCKS[:-1]
    done = in_r("".join(chosen), tmp_path)
    assert done.returncode == 0, done.stderr
    saved = "evaluation.json" if package == "reticulate" else "result.json"
    value = json.loads((tmp_path / saved).read_text(encoding="utf-8"))["auc"]["value"]
    assert 0.7 < value < 0.95
