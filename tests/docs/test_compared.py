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


def test_the_page_says_as_of_when_and_no_date_is_later() -> None:
    day = re.search(r"^As of (20\d\d-\d\d-\d\d)\.", TEXT, re.MULTILINE)
    assert day
    assert all(date <= day[1] for date in DATE.findall(TEXT))


@pytest.mark.parametrize("name", [*OTHERS, "scikit-learn", "tacit"])
def test_every_row_has_all_cells_with_a_source_and_a_strength(name: str) -> None:
    cells = rows(TEXT)[name]
    assert rows(TEXT)["Project"][-2] == "Better than tacit at"
    assert len(cells) == 9
    assert all(cells)
    if name != "tacit":
        assert LINK.search(cells[-1])
        assert DATE.search(cells[-1])
        assert len(cells[-2].split()) > 10
    if name in OTHERS:
        assert any(HASH.fullmatch(commit) for commit in COMMIT.findall(cells[-1]))


def test_links_into_files_name_a_commit_or_a_release() -> None:
    assert not {"main", "master", "HEAD", "latest"} & set(COMMIT.findall(TEXT))
