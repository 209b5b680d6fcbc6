"""No modules import each other in a circle, late or for types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tacit

PACKAGE = Path(tacit.__file__).parent

DECLARING = ("tacit.protocol.", "tacit.protocols.", "tacit.outcomes.", "tacit.local.")
"""Where types refer to each other, and a protocol's class imports late what it declares, such as
its forecast, which makes protocols of that class. There only imports at a module's head count."""

Graph = dict[str, set[str]]


def imported(nodes: Iterator[ast.AST], known: frozenset[str]) -> Iterator[str]:
    """The known modules that these statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for each in node.names:
                inner = f"{node.module}.{each.name}"
                yield from (name for name in (inner, node.module) if name in known)


def graph(sources: Mapping[str, str], late: tuple[str, ...] = ()) -> Graph:
    """Which modules each module imports; of those under ``late`` the imports at the head count."""
    known = frozenset(sources)
    edges: Graph = {}
    for name, text in sources.items():
        tree = ast.parse(text)
        head = bool(late) and name.startswith(late)
        nodes = iter(tree.body) if head else ast.walk(tree)
        edges[name] = set(imported(nodes, known)) - {name}
    return edges


def circle(edges: Graph) -> list[str]:
    """The modules of a circle, the first again at the end; empty where there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def sources() -> dict[str, str]:
    """The text of every module of the package, by its name."""
    texts = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        texts[name] = path.read_text(encoding="utf-8")
    return texts


@pytest.mark.parametrize(
    "second",
    [
        "import a.first",
        "from a.first import thing",
        "from a import first",
        "def work():\n    from a.first import thing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a.first import Thing",
    ],
)
def test_a_circle_is_noticed(second: str) -> None:
    texts = {"a": "", "a.first": "import a.second", "a.second": second, "a.other": "import a.first"}
    assert "a.second" in circle(graph(texts))


def test_what_is_no_circle_is_none() -> None:
    texts = {"a.first": "import a.second", "a.second": "import numpy", "a.other": "import a.first"}
    assert circle(graph(texts)) == []


def test_late_imports_count_but_in_declarations() -> None:
    texts = {"a.first": "import a.second", "a.second": "def work():\n    import a.first"}
    assert circle(graph(texts))
    assert not circle(graph(texts, late=("a.",)))


def test_no_modules_import_each_other() -> None:
    texts = sources()
    assert len(texts) > 300
    assert circle(graph(texts, DECLARING)) == []
