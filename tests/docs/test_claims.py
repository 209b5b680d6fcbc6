"""Each threat model names, claim by claim, the tests and checks that stand behind it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests import laws

ROOT = Path(__file__).parents[2]
THREATS = sorted((ROOT / "docs" / "threat-models").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

HEAD = ["Claim", "Test or check"]
SECTION = re.compile(r"^## Where it is tested\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
COMMAND = re.compile(r"`(?:python -m benchmarks|tacit (?:audit|reproduce) )[^`]*`")


def claims(text: str) -> list[tuple[str, str]]:
    """The rows of a page's table of claims: claim, and tests or checks.

    Raises
    ------
    ValueError : for a page without that section, or with another head of its table.
    """
    section = SECTION.search(text)
    if section is None:
        raise ValueError("the page does not say where it is tested")
    lines = [line for line in section[1].splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if len(rows) < 3 or rows[0] != HEAD:
        raise ValueError(f"the table begins with {HEAD}, got {rows[:1]}")
    wrong = [row for row in rows if len(row) != len(HEAD)]
    if wrong:
        raise ValueError(f"a row has a claim and its checks, got {wrong[0]}")
    return [(claim, checks) for claim, checks in rows[2:]]


def unchecked(text: str) -> list[str]:
    """The claims of a page that name no test and no command."""
    return [
        claim
        for claim, checks in claims(text)
        if not claim or not (NAMED.search(checks) or COMMAND.search(checks))
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
    assert unchecked(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_named_tests_exist(page: Path) -> None:
    assert missing_tests(page.read_text(encoding="utf-8")) == []


TABLE = "## Where it is tested\n\n| Claim | Test or check |\n| --- | --- |\n"


@pytest.mark.parametrize(
    ("rows", "without"),
    [
        ("| it holds | `tests/test_a.py::test_b` |\n", []),
        ("| it holds | `python -m benchmarks.secure_sum_strategies` |\n", []),
        ("| it holds | `tacit audit --self-test` |\n\n## Sources\n\n| no | claim |\n", []),
        ("| it holds | `tests/test_a.py` |\n| so | |\n", ["it holds", "so"]),
        ("| | `tests/test_a.py::test_b` |\n", [""]),
    ],
)
def test_a_claim_without_a_check_is_found(rows: str, without: list[str]) -> None:
    assert unchecked(TABLE + rows) == without


@pytest.mark.parametrize(
    "text",
    ["# No such section\n", "## Where it is tested\n\nEverywhere.\n", TABLE, f"{TABLE}| one |\n"],
)
def test_a_page_without_its_table_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"page|table|row"):
        claims(text)


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
