"""The site lists every package of the layers, with the first line of its docstring."""

from __future__ import annotations

from tests.docs.test_site import ROOT, generator

SOURCES = ROOT / "src" / "tacit"


def rows() -> list[list[str]]:
    """The cells of the table of packages, without its head."""
    lines = generator("hooks").packages_table().splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_every_package_has_its_line() -> None:
    packages = {
        path.parent.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("__init__.py")
    }
    listed = {name for _, name, _ in rows()}
    assert packages - {"."} <= listed
    assert all(content.endswith(".") for _, _, content in rows())


def test_packages_come_from_the_highest_layer_down() -> None:
    numbers = [int(number) for number, _, _ in rows()]
    assert numbers == sorted(numbers, reverse=True)
    assert (rows()[0][1], rows()[-1][1]) == ("cli", "wire")


def test_the_page_has_the_place_of_the_table() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert generator("hooks").PACKAGES in page
