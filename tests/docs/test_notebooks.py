"""The notebooks of the three stories run, and what is committed of them is fit to be read.

Each runs in a process of its own, as Jupyter warns of its own parts in ways that tests would take
for errors.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
STORIES = ("vertical", "horizontal", "cross-device")

EXECUTE = ("--execute", "--inplace", "--coalesce-streams", "--ExecutePreprocessor.timeout=900")

KEPT = {"kernelspec", "language_info"}
"""A notebook's own metadata; everything else is of the machine that ran it."""

ABSOLUTE = re.compile(r"(?<![\w.:/<])/(?:home|root|tmp|work|usr|opt|var|Users)/|[A-Z]:\\\\")
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
LARGEST = 250_000
"""Bytes of a notebook with its pictures."""


def outputs(book: Any) -> list[Any]:
    """All outputs of all cells."""
    return [output for cell in book.cells for output in cell.get("outputs", [])]


def printed(book: Any) -> str:
    """All sources and all text that the outputs hold, as one text."""
    sources = [cell.source for cell in book.cells]
    texts = [output.get("text", "") for output in outputs(book)]
    shown = [
        str(value)
        for output in outputs(book)
        for kind, value in output.get("data", {}).items()
        if kind.startswith("text/")
    ]
    return "\n".join([*sources, *texts, *shown])


def shape(book: Any) -> list[list[str]]:
    """What kinds of output every cell has."""
    return [
        [f"{output.output_type} {output.get('name', '')}" for output in cell.get("outputs", [])]
        for cell in book.cells
    ]


def read(story: str) -> tuple[Path, Any]:
    """The committed notebook of a story, and where it is."""
    path = FOLDER / f"{story}.ipynb"
    return path, nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def test_there_are_no_other_notebooks() -> None:
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(STORIES)


@pytest.mark.parametrize(
    "story",
    [
        "vertical",
        pytest.param("horizontal", marks=pytest.mark.thorough),
        pytest.param("cross-device", marks=pytest.mark.thorough),
    ],
)
def test_a_notebook_runs_and_gives_its_committed_outputs(story: str, tmp_path: Path) -> None:
    path, book = read(story)
    settings = os.environ | {
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "jupyter"),
        "JUPYTER_PLATFORM_DIRS": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", *EXECUTE, shutil.copy(path, tmp_path)],
        capture_output=True,
        text=True,
        env=settings,
        timeout=1000,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    again = nbformat.read(tmp_path / path.name, as_version=4)  # type: ignore[no-untyped-call]
    assert not [output for output in outputs(again) if output.output_type == "error"]
    assert shape(again) == shape(book)


@pytest.mark.parametrize("story", STORIES)
def test_what_is_committed_is_fit_to_be_read(story: str) -> None:
    """Outputs of all cells, as text and small pictures; nothing of the machine; no file is read."""
    path, book = read(story)
    nbformat.validate(book)
    cells, found = [cell for cell in book.cells if cell.cell_type == "code"], outputs(book)
    assert 8 <= len(book.cells) <= 16
    assert all(cell.outputs for cell in cells)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not [output for output in found if output.output_type == "error"]
    assert not [output for output in found if output.get("name") == "stderr"]
    data = [output.get("data", {}) for output in found]
    pictures = [base64.b64decode(part["image/png"]) for part in data if "image/png" in part]
    assert 1 <= len(pictures) <= 3
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert path.stat().st_size < LARGEST
    assert set(book.metadata) <= KEPT
    assert not any(each.get("metadata") for each in [*book.cells, *found])
    assert not ABSOLUTE.findall(printed(book)) + ADDRESS.findall(printed(book))
    code = "\n".join(cell.source for cell in cells)
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", code, re.MULTILINE))
    assert imported == {"matplotlib", "numpy", "tacit"}
    assert not re.search(r"\bopen\(|https?:|^[!%]|read_csv|tacit\.read\b", code, re.MULTILINE)
