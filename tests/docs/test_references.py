"""Modules, classes and functions that a docstring names by their path are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import tacit

PACKAGE = Path(tacit.__file__).parent
PACKAGES = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
NAMED = re.compile(r"``((?:tacit\.)?[a-z_]+(?:\.\w+)+)(?:\(\))?``")


def is_there(path: str) -> bool:
    """Whether a path below the package is a module, or what a module holds."""
    parts = path.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["tacit", *parts[:size]]))
        except ModuleNotFoundError:
            continue
        for name in parts[size:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def wrong_references(text: str) -> list[str]:
    """The paths below one of the package's packages that lead nowhere."""
    named = [path.removeprefix("tacit.") for path in NAMED.findall(text)]
    return [path for path in named if path.split(".")[0] in PACKAGES and not is_there(path)]


def test_what_docstrings_name_is_there() -> None:
    wrong = {
        path.relative_to(PACKAGE).as_posix(): paths
        for path in sorted(PACKAGE.rglob("*.py"))
        if (paths := wrong_references(path.read_text(encoding="utf-8")))
    }
    assert wrong == {}


def test_a_path_that_leads_nowhere_is_found() -> None:
    text = "``metrics.trees.TreeNoise`` is there, ``metrics.forest`` and ``metrics.trees.Oak`` not"
    assert wrong_references(text) == ["metrics.forest", "metrics.trees.Oak"]
