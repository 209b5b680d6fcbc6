"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import tacit
import tacit_studies

MODULES = [
    name
    for package in (tacit, tacit_studies)
    for name in [
        package.__name__,
        *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    ]
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    """All that a module's source has: it is searched only where there is one."""
    module = importlib.import_module(name)
    if examples(module):
        result = doctest.testmod(module)
        assert result.failed == 0
        assert result.attempted > 0


def examples(module: ModuleType) -> int:
    """How many lines of the source begin an example."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    return len(re.findall(r"^ *>>> ", source, re.MULTILINE))


def test_there_are_docstring_examples() -> None:
    assert sum(examples(importlib.import_module(name)) for name in MODULES) > 800
