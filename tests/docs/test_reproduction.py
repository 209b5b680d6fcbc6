"""The page of reproductions is what its generator makes of the results that are kept."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from tacit_studies import TABLES, Row, Target
from tests.docs import generator

DOCS = Path(__file__).parents[2] / "docs"
KEPT = sorted((DOCS / "reproduction").glob("*.json"))
PAGE = (DOCS / "reproduction.md").read_text(encoding="utf-8")
LARGEST = 330_000
"""Bytes of all results together."""


GENERATOR = generator("reproduction")

EMPTY = {"table": "coverage", "row": "a", "paper": None, "ours": None, "ratio": None}
ROWS: list[dict[str, Any]] = [
    EMPTY | {"column": "b", "paper": 2.0, "ours": 1.9, "ratio": 0.95},
    EMPTY | {"column": "c"},
    EMPTY
    | {"row": "|a|", "column": "d_e", "ours": 1.123456789, "target": "0.9..1.1", "met": False},
]


def result(rows: list[dict[str, Any]] = ROWS, **changed: Any) -> Any:
    about = {"scores": "synthetic", "repeats": 5, "seconds": 1.0, "version": "0"} | changed
    return GENERATOR.Result.of_rows(rows, **about)


def test_the_page_is_what_the_generator_gives() -> None:
    assert GENERATOR.page(GENERATOR.kept_results()) == PAGE


def test_results_are_small_and_about_tables_that_exist() -> None:
    assert sum(path.stat().st_size for path in KEPT) < LARGEST
    for path in KEPT:
        remaining = GENERATOR.Result.read(path)
        assert remaining.file == path.name
        assert remaining.table in TABLES
        assert remaining.repeats >= 1
        assert remaining.measured()
    texts = [PAGE, *(path.read_text(encoding="utf-8") for path in KEPT)]
    assert not any(re.search(r"(?<![\w.])/(?:home|tmp|work|root)/", text) for text in texts)


def test_every_table_is_on_the_page_and_every_target_that_missed_is_listed() -> None:
    assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", PAGE) for name in TABLES)
    listed = PAGE.split("\n## Missed targets\n", 1)[1].split("\n## ", 1)[0]
    missed = [
        target
        for remaining in GENERATOR.kept_results()
        for target in remaining.measured()
        if isinstance(target, Target) and not target.met
    ]
    assert len(re.findall(r"^\| (?!Name|---)", listed, re.MULTILINE)) == len(missed)
    assert PAGE.count("| **no** |") == len(missed)


def test_a_result_is_kept_and_gives_its_rows_and_targets_back(tmp_path: Path) -> None:
    """Whether a target is met is computed again."""
    made = result(note="a note")
    made.write(tmp_path)
    file = tmp_path / made.file
    assert GENERATOR.Result.read(file) == made
    assert json.loads(file.read_text())["repeats"] == 5
    row, silent, target = made.measured()
    assert (type(row), row.paper, row.ours) == (Row, 2.0, 1.9)
    assert math.isnan(silent.ours)
    assert isinstance(target, Target)
    assert (target.at_least, target.at_most, target.ours, target.met) == (0.9, 1.1, 1.1235, False)
    file.write_text(file.read_text().replace("1.1235", "1.05"))
    assert GENERATOR.Result.read(file).measured()[-1].met
    assert "None." in "\n".join(GENERATOR.misses([GENERATOR.Result.read(file)]))


def test_rows_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="3 names"):
        result([*ROWS, ROWS[0]])
