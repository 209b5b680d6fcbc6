"""The comparison with other projects names its sources and their dates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "compared-with.md"
TEXT = PAGE.read_text(encoding="utf-8")

OTHERS = (
    "FATE",
    "SecretFlow",
    "NVIDIA FLARE",
    "Flower",
    "TensorFlow Federated",
    "DataSHIELD",
    "FHAUC",
    "FedCurve",
)

DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
LINK = re.compile(r"\]\((https://[^)\s]+)\)")
COMMIT = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:blob|tree)/([\w.-]+)")
HASH = re.compile(r"[0-9a-f]{40}")


def rows(text: str) -> dict[str, list[str]]:
    """The table's rows as cells, by the project that they are about."""
    table = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    return {row[0].strip(): row for row in cells if set(row[0]) != {"-"}}


def test_the_page_says_as_of_when() -> None:
    assert re.search(r"^As of 20\d\d-\d\d-\d\d\.", TEXT, re.MULTILINE)


def test_every_row_has_all_cells() -> None:
    result = rows(TEXT)
    assert {*OTHERS, "tacit", "scikit-learn"} <= set(result)
    assert {len(cells) for cells in result.values()} == {9}
    assert all(cell for cells in result.values() for cell in cells)


@pytest.mark.parametrize("name", [*OTHERS, "scikit-learn"])
def test_every_row_has_a_link_and_a_date(name: str) -> None:
    source = rows(TEXT)[name][-1]
    assert LINK.search(source)
    assert DATE.search(source)


@pytest.mark.parametrize("name", [*OTHERS, "scikit-learn"])
def test_every_row_says_where_the_project_is_better(name: str) -> None:
    assert rows(TEXT)["Project"][-2] == "Better than tacit at"
    assert len(rows(TEXT)[name][-2].split()) > 10


@pytest.mark.parametrize("name", OTHERS)
def test_every_project_is_cited_at_a_commit(name: str) -> None:
    assert any(HASH.fullmatch(index) for index in COMMIT.findall(rows(TEXT)[name][-1]))


def test_links_into_files_name_a_commit_or_a_release() -> None:
    commits = COMMIT.findall(TEXT)
    assert len(commits) >= len(OTHERS)
    assert not {"main", "master", "HEAD", "latest"} & set(commits)


def test_dates_are_not_after_the_day_of_the_page() -> None:
    search = re.search(r"^As of (20\d\d-\d\d-\d\d)\.", TEXT, re.MULTILINE)
    assert search
    assert all(date <= search[1] for date in DATE.findall(TEXT))


def test_a_row_without_link_or_date_would_be_noticed() -> None:
    row = rows("| a | [x](https://github.com/a/b/tree/main) | none |\n| b | c | d |")
    assert set(row) == {"a", "b"}
    assert COMMIT.findall(row["a"][1]) == ["main"]
    assert not LINK.search(row["b"][-1])
    assert not DATE.search(row["b"][-1])
