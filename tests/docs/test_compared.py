"""The comparison with other projects names its sources and their dates."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "compared-with.md"
TEXT = PAGE.read_text(encoding="utf-8")

DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
LINK = re.compile(r"\]\((https://[^)\s]+)\)")
COMMIT = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:blob|tree)/([\w.-]+)")
HASH = re.compile(r"[0-9a-f]{40}")


def rows(text: str) -> dict[str, list[str]]:
    """The table's rows as cells, by the project that they are about."""
    table = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    return {row[0].strip(): row for row in cells if set(row[0]) != {"-"}}


def test_the_page_says_as_of_when_and_no_date_is_later() -> None:
    day = re.search(r"^As of (20\d\d-\d\d-\d\d)\.", TEXT, re.MULTILINE)
    assert day
    assert all(date <= day[1] for date in DATE.findall(TEXT))


def test_every_row_has_all_cells_with_a_source_and_a_strength() -> None:
    head, *others = rows(TEXT).values()
    assert head[-2] == "Better than tacit at"
    assert len(others) >= 10
    for cells in others:
        name, *_, strength, source = cells
        assert len(cells) == len(head)
        assert all(cells)
        if name != "tacit":
            assert LINK.search(source)
            assert DATE.search(source)
            assert len(strength.split()) > 10
        if name not in ("tacit", "scikit-learn"):
            assert any(HASH.fullmatch(commit) for commit in COMMIT.findall(source)), name


def test_links_into_files_name_a_commit_or_a_release() -> None:
    assert not {"main", "master", "HEAD", "latest"} & set(COMMIT.findall(TEXT))
