"""A protocol is named in its own package only: nothing else has to change for a new one."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

import tacit

PACKAGE = Path(tacit.__file__).parent

FREE = ("demonstration.py", "protocols/published/")
"""What shows or measures the protocols that there are; and papers' forms, which take of our own."""

ENTRIES = (*entry_points(group="tacit.protocols"), *entry_points(group="tacit.comparisons"))
OURS = [each for each in ENTRIES if each.module.startswith("tacit.")]

CLASS_TESTS = ("isinstance", "issubclass")

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


def distinctions(tree: ast.AST, classes: set[str], names: set[str]) -> Iterator[str]:
    """Where a module treats one protocol in another way than the others: by class or by name."""
    for node in ast.walk(tree):
        tested: list[ast.AST] = []
        keys: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in CLASS_TESTS:
            tested = [inner for argument in node.args[1:] for inner in ast.walk(argument)]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        elif isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            keys += [inner for key in keys if isinstance(key, ast.Tuple) for inner in key.elts]
        called = {getattr(each, "id", getattr(each, "attr", "")) for each in (*tested, *keys)}
        texts = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
        for name in sorted((called & classes) | (texts & names)):
            yield f"line {getattr(node, 'lineno', 0)}: {name}"


@cache
def parsed(path: str) -> ast.Module:
    """The syntax tree of a module of ours."""
    return ast.parse((PACKAGE / path).read_text(encoding="utf-8"))


def named_in(path: str) -> list[str]:
    """What a module names that is not its own."""
    tree = parsed(path)
    foreign = [each for each in OURS if not path.startswith(home(each))]
    mine = spoken([each for each in OURS if path.startswith(home(each))])
    return [*mentions(tree, spoken(foreign) - mine), *crossings(tree, path)]


CLASSES = {each.attr for each in OURS}
NAMES = {each.name for each in OURS} - WORDS
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
    ],
)
def test_a_mention_is_noticed(line: str) -> None:
    assert list(mentions(ast.parse(line), spoken(OURS)))


@pytest.mark.parametrize(
    "line",
    [
        "import tacit.protocols.dpauc.protocol",
        "from tacit.protocols.dpauc import forecast",
        "from tacit.protocols.baselines import MAX_SCORE_BUDGET",
    ],
)
def test_an_import_is_noticed(line: str) -> None:
    assert list(crossings(ast.parse(line), "protocols/fedauc/protocol.py"))


def test_what_a_protocol_names_of_itself_is_no_mention() -> None:
    assert "FedAUC" in spoken(OURS)
    assert named_in("protocols/fedauc/protocol.py") == []


def test_no_module_names_a_protocol_of_another_package() -> None:
    closed = [path for path in PATHS if not path.startswith(FREE)]
    assert len(closed) > 100
    named = {path: names for path in closed if (names := named_in(path))}
    assert named == {}


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(protocol, FedAUC)",
        "isinstance(protocol, (str, tacit.DPAUC))",
        "issubclass(kind, FedAUC | ScoreHistogram)",
        "WAYS = {'fedauc': 1}",
        "WAYS = {('dpauc', 'laplace'): 1}",
        "WAYS = {FedAUC: 1}",
        "match protocol:\n    case FedAUC():\n        pass",
    ],
)
def test_a_distinction_is_noticed(line: str) -> None:
    assert list(distinctions(ast.parse(line), CLASSES, NAMES))


@pytest.mark.parametrize(
    "line", ["isinstance(protocol, Protocol)", "WAYS = {'exact': 1}", "protocol == FedAUC(1.0)"]
)
def test_what_holds_of_all_protocols_is_no_distinction(line: str) -> None:
    assert not list(distinctions(ast.parse(line), CLASSES, NAMES))


def test_no_module_outside_the_protocols_treats_one_of_them_specially() -> None:
    """Also what shows the protocols that there are must treat them alike."""
    treated = {
        path: list(distinctions(ast.parse((PACKAGE / path).read_text("utf-8")), CLASSES, NAMES))
        for path in PATHS
        if not path.startswith(("protocols/", "local/"))
    }
    assert {path: lines for path, lines in treated.items() if lines} == {}
