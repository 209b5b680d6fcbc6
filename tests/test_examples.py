"""The examples in docstrings and documents run."""

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

ROOT = Path(__file__).parents[1]
MODULES = [
    name
    for package in (tacit, tacit_studies)
    for name in [
        package.__name__,
        *(m.name for m in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    ]
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


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


def test_the_readme_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102
    assert "Interval" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target
