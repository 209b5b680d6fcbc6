"""A protocol is named in its own package only: nothing else has to change for a new one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

import tacit

PACKAGE = Path(tacit.__file__).parent

FREE = ("protocols/published/",)
"""What shows or measures the protocols that there are; and papers' forms, which take of our own."""

ENTRIES = (*entry_points(group="tacit.protocols"), *entry_points(group="tacit.comparisons"))
OURS = [each for each in ENTRIES if each.module.startswith("tacit.")]


WORDS = {"exact"}
"""Names that are words of results, too; there the class is looked for only."""


def home(entry: EntryPoint) -> str:
    """The folder of a protocol's package, or its file where it has none, below ours."""
    parts = entry.module.split(".")[1:]
    return "/".join(parts[:2]) + "/" if len(parts) > 2 else "/".join(parts) + ".py"


HOMES = {home(each) for each in OURS}


def spoken(entries: list[EntryPoint]) -> set[str]:
    """What protocols are called: their names and their classes."""
    return {each.attr for each in entries} | {each.name for each in entries} - WORDS


def mentions(tree: ast.AST, called: set[str]) -> Iterator[str]:
    """Classes and whole strings of a module that are protocols, with their lines."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.alias):
            name = node.name
        elif isinstance(node, ast.Constant):
            name = str(node.value)
        if name in called:
            yield f"line {getattr(node, 'lineno', 0)}: {name}"


def crossings(tree: ast.AST, path: str) -> Iterator[str]:
    """The modules of protocols' packages that a module imports from outside of them."""
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [f"{node.module}.{each.name}" for each in node.names]
        for name in names:
            module_path = name.removeprefix("tacit.").replace(".", "/")
            owner = next(
                (each for each in HOMES if module_path.startswith(each.removesuffix(".py"))), ""
            )
            if owner and not path.startswith(owner):
                yield f"line {getattr(node, 'lineno', 0)}: {name}"


SIGN = re.compile("|".join(("protocols", "local", *map(re.escape, spoken(OURS)))))
"""What stands in every module with a mention or a crossing: others need not be parsed."""


def named_in(path: str) -> list[str]:
    """What a module names that is not its own."""
    text = (PACKAGE / path).read_text(encoding="utf-8")
    if not SIGN.search(text):
        return []
    tree = ast.parse(text)
    foreign = [each for each in OURS if not path.startswith(home(each))]
    mine = spoken([each for each in OURS if path.startswith(home(each))])
    return [*mentions(tree, spoken(foreign) - mine), *crossings(tree, path)]


PATHS = sorted(each.relative_to(PACKAGE).as_posix() for each in PACKAGE.rglob("*.py"))


def test_every_protocol_has_a_home() -> None:
    assert len(OURS) > 9
    assert all((PACKAGE / each).exists() for each in HOMES)


@pytest.mark.parametrize(
    "line",
    [
        "kind = tacit.FedAUC",
        "isinstance(protocol, FedAUC)",
        "from tacit import FedAUC as Ranked",
        "protocol.name == 'fedauc'",
        "KNOWN = {'score-histogram': 1}",
        "import tacit.protocols.dpauc",
        "from tacit.protocols.dpauc import forecast",
        "from tacit.protocols.baselines import MAX_SCORE_BUDGET",
    ],
)
def test_a_mention_and_an_import_are_noticed(line: str) -> None:
    tree, other = ast.parse(line), "protocols/fedauc/steps.py"
    assert [*mentions(tree, spoken(OURS)), *crossings(tree, other)]


def test_what_a_protocol_names_of_itself_is_no_mention() -> None:
    assert "FedAUC" in spoken(OURS)
    assert named_in("protocols/fedauc/protocol.py") == []


def test_no_module_names_a_protocol_of_another_package() -> None:
    closed = [path for path in PATHS if not path.startswith(FREE)]
    assert len(closed) > 100
    named = {path: names for path in closed if (names := named_in(path))}
    assert named == {}
