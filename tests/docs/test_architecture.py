"""The page on the architecture lists the packages and floors that there are."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "tacit"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+)`")


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table that begins with a head, without the head."""
    _, _, rest = page.partition(f"{head}\n")
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def packages(folder: Path) -> set[str]:
    """The packages below a folder, as paths from it."""
    results = {path.parent.relative_to(folder).as_posix() for path in folder.rglob("__init__.py")}
    return results - {"."}


def test_every_package_has_its_line() -> None:
    listed = [row[0].strip("`") for row in rows(PAGE, "| Package | In one line |")]
    assert sorted(listed) == sorted(packages(SOURCES))


def test_the_floors_are_those_that_imports_are_checked_by() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [
        {name.strip().removeprefix("tacit.") for name in layer.split("|")}
        for layer in contract["layers"]
    ]
    floors = rows(PAGE, "| Floor | Package | What it holds |")
    assert [set(NAMED.findall(row[1])) for row in floors] == layers
    assert [int(row[0]) for row in floors] == list(range(len(layers), 0, -1))


def test_a_package_is_found_by_its_init(tmp_path: Path) -> None:
    (tmp_path / "one" / "below").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "one", tmp_path / "one" / "below"):
        (folder / "__init__.py").touch()
    (tmp_path / "no_package").mkdir()
    assert packages(tmp_path) == {"one", "one/below"}
