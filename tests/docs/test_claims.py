"""Each threat model names, claim by claim, the tests and checks that stand behind it."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from tests import laws

ROOT = Path(__file__).parents[2]
THREATS = sorted((ROOT / "docs" / "threat-models").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

CLAIMS = ROOT / "docs" / "threat-models" / "claims.toml"
NAMED = re.compile(r"(?<![\w/])(tests/[\w/]+\.py)::(?:\w+::)?(\w+)(?!\w|::)")
COMMAND = re.compile(r"python -m benchmarks|tacit (?:audit|reproduce) ")


def claims() -> dict[str, dict[str, list[str]]]:
    """For each page, by its name: each claim, and the tests and commands that check it."""
    return tomllib.loads(CLAIMS.read_text(encoding="utf-8"))


def unchecked(stated: dict[str, list[str]]) -> list[str]:
    """The claims that name no test and no command."""
    return [
        claim
        for claim, checks in stated.items()
        if not any(NAMED.fullmatch(check) or COMMAND.match(check) for check in checks)
    ]


def missing_tests(text: str) -> list[str]:
    """The tests that a text names, as ``tests/test_x.py::test_y``, and that do not exist."""
    return [f"{file}::{name}" for file, name in NAMED.findall(text) if not _is_test(file, name)]


def _is_test(file: str, name: str) -> bool:
    path = ROOT / file
    collected = path.name.startswith("test_") or path.name == "laws.py"
    if not (collected and path.is_file() and name.startswith("test_")):
        return False
    if path.name == "laws.py":
        return hasattr(laws, name)
    return name in _functions(path)


@cache
def _functions(path: Path) -> frozenset[str]:
    """The names of all functions in a file, which many pages name."""
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", THREATS, ids=_name)
def test_every_claim_names_a_test_or_a_check(page: Path) -> None:
    stated = claims()[page.stem]
    assert stated
    assert unchecked(stated) == []


@pytest.mark.parametrize("page", [CLAIMS, *PAGES], ids=_name)
def test_named_tests_exist(page: Path) -> None:
    assert missing_tests(page.read_text(encoding="utf-8")) == []


def test_the_claims_of_every_entry_are_linked_from_a_page_of_its_name() -> None:
    linking = {page.stem for page in PAGES if "[claims.toml](" in page.read_text(encoding="utf-8")}
    assert set(claims()) == linking


def test_a_claim_without_a_check_is_found() -> None:
    stated = {
        "it holds": ["tests/test_a.py::test_b"],
        "by a search": ["python -m benchmarks.secure_sum_strategies"],
        "by attacks": ["tacit audit --self-test"],
        "by a file": ["tests/test_a.py"],
        "by nothing": [],
    }
    assert unchecked(stated) == ["by a file", "by nothing"]


def test_a_test_that_does_not_exist_is_found() -> None:
    here = "`tests/docs/test_claims.py::test_named_tests_exist`"
    gone = "`tests/docs/test_claims.py::test_nothing`, `tests/test_nothing.py::test_it`"
    helper = "`tests/docs/test_claims.py::unchecked`, `tests/federations.py::test_it`"
    assert missing_tests(here) == []
    assert missing_tests(f"{gone} {helper}") == [
        "tests/docs/test_claims.py::test_nothing",
        "tests/test_nothing.py::test_it",
        "tests/docs/test_claims.py::unchecked",
        "tests/federations.py::test_it",
    ]
