"""Protocols in a separate package, installed as their pages say, with nothing of them in tacit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_commands import TYPED, blocks, check, commands, run
from tests.docs.test_references import excerpts

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own-protocol"
MODULES = [EXAMPLE / f"tacit_{name}.py" for name in ("brier", "lift", "accuracy")]
PAGES = [
    path.read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "write-a-protocol.md", EXAMPLE / "README.md")
]
BLOCKS = [block for page in PAGES for block in blocks(page)]
"""The blocks of the page, then those of the package's README, which uses the page's files."""

OF_A_RUN = shutil.ignore_patterns(
    "*.db*", "*.key*", "*.pub", "ca.crt", ".tacit", "nodes", "server", "ledger-state", "*cache*"
)

LINES = [line for block in BLOCKS if block.kind == "console" for line, _ in commands(block.text)]
"""All commands that the pages show."""

INSTALL = ["install", "./examples/own-protocol"]
FEDERATION = "$ tacit run --local"
OFFLINE = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the example, whose package is installed for programs that start there.

    It is installed into a folder on the path, as the tests' own environment stays what it is. The
    package's tests read its sources from nowhere else: the module is not beside them.
    """
    work, site = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, work / "examples" / "own-protocol", ignore=OF_A_RUN)
    pip = [sys.executable, "-m", "pip", INSTALL[0], "--quiet", *OFFLINE, "--target", str(site)]
    subprocess.run([*pip, INSTALL[1]], cwd=work, check=True)
    for module in MODULES:
        (work / "examples" / "own-protocol" / module.name).unlink()
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield work


@pytest.mark.thorough
def test_the_pages_can_be_typed(folder: Path) -> None:
    """Evaluate, report, plan, audit, a federation of three, and the package's own tests."""
    assert len(BLOCKS) >= 5
    assert sum(block.note.startswith(TYPED) for block in BLOCKS) == 1
    assert sum(FEDERATION in block.text for block in BLOCKS) == 1
    for block in BLOCKS:
        check(block, folder, own_process=True)
    check_figure(folder)


def check_figure(folder: Path) -> None:
    """The page's files of a result have the figure, near the exact one."""
    result = json.loads((folder / "north.json").read_text(encoding="utf-8"))
    assert (result["figure"], result["protocol"]["name"]) == ("Brier score", "brier")
    assert abs(result["estimate"]["value"] - result["exact"]) < 0.02
    assert "<title>Brier score of " in (folder / "north.html").read_text(encoding="utf-8")


def test_a_figure_of_the_package_is_evaluated_and_reported(folder: Path) -> None:
    """The lines of the page, in one shell."""
    typed = [line for line in LINES if "> north.json" in line or "report north.json" in line]
    assert len(typed) == 2
    (records,) = (block for block in BLOCKS if 'open(f"{name}.csv"' in block.text)
    check(records, folder)
    run(" && ".join(typed), folder, own_process=True)
    check_figure(folder)


def test_the_tests_of_the_package_pass(folder: Path) -> None:
    """Those of one module; all of them where the page is typed."""
    (command,) = (line for line in LINES if "pytest" in line)
    run(f"{command}/tests/test_accuracy.py", folder, own_process=True)


def test_the_commands_name_it(folder: Path) -> None:
    named = run("tacit evaluate --help-all", folder, own_process=True)
    choices = [line for line in named if "--protocol" in line]
    assert all(any(name in line for line in choices) for name in ("brier", "lift", "accuracy"))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.stem))
def test_a_page_has_the_whole_module(module: Path) -> None:
    """The excerpts, one after another, are the module but for empty lines."""
    path = module.relative_to(ROOT).as_posix()
    shown = [line for page in PAGES for text in excerpts(page, path) for line in text]
    assert shown == [line for line in module.read_text(encoding="utf-8").splitlines() if line]
