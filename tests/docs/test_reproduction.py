"""The page of reproductions is what its generator makes of the results that are kept."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tacit_studies import TABLES, Beside, Row, Target

DOCS = Path(__file__).parents[2] / "docs"
KEPT = sorted((DOCS / "reproduction").glob("*.json"))
PAGE = (DOCS / "reproduction.md").read_text(encoding="utf-8")
LARGEST = 330_000
"""Bytes of all results together."""


def load() -> ModuleType:
    """The generator, which is a program beside the pages and no part of the package."""
    spec = importlib.util.spec_from_file_location(
        "reproduction_page", DOCS / "generating" / "reproduction.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GENERATOR = load()

ROWS: list[dict[str, Any]] = [
    {"table": "coverage", "row": "a", "column": "b", "paper": 2.0, "ours": 1.9, "ratio": 0.95},
    {"table": "coverage", "row": "a", "column": "c", "paper": None, "ours": None, "ratio": None},
    {
        "table": "coverage",
        "row": "|a|",
        "column": "d_e",
        "paper": None,
        "ours": 1.123456789,
        "ratio": None,
        "target": "0.9..1.1",
        "met": False,
    },
]


def result(**changed: Any) -> Any:
    about = {"scores": "synthetic", "repeats": 5, "seconds": 1.0, "version": "0"} | changed
    return GENERATOR.Result.of_rows(ROWS, **about)


def test_the_page_is_what_the_generator_gives() -> None:
    assert GENERATOR.page(GENERATOR.kept_results()) == PAGE


def test_results_are_small_and_about_tables_that_exist() -> None:
    assert KEPT
    assert sum(path.stat().st_size for path in KEPT) < LARGEST
    for path in KEPT:
        remaining = GENERATOR.Result.read(path)
        assert remaining.file == path.name
        assert remaining.table in TABLES
        assert remaining.repeats >= 1
        assert remaining.measured()


def test_every_table_is_on_the_page_or_named_as_missing() -> None:
    assert all(re.search(rf"(?<![\w-]){name}(?![\w-])", PAGE) for name in TABLES)


def test_every_target_that_missed_is_listed() -> None:
    listed = PAGE.split("\n## Missed targets\n", 1)[1].split("\n## ", 1)[0]
    missed = [
        target
        for remaining in GENERATOR.kept_results()
        for target in remaining.measured()
        if isinstance(target, Target) and not target.met
    ]
    assert listed.count(f"| {GENERATOR.KEPT.name}") == 0
    assert len(re.findall(r"^\| (?!Name|---)", listed, re.MULTILINE)) == len(missed)
    assert PAGE.count("| **no** |") == len(missed)


def test_no_path_of_a_machine_is_on_the_page() -> None:
    texts = [PAGE, *(path.read_text(encoding="utf-8") for path in KEPT)]
    assert not any(re.search(r"(?<![\w.])/(?:home|tmp|work|root)/", text) for text in texts)


def test_a_result_is_kept_and_read_again(tmp_path: Path) -> None:
    made = result(note="a note")
    made.write(tmp_path)
    assert GENERATOR.Result.read(tmp_path / made.file) == made
    assert json.loads((tmp_path / made.file).read_text())["repeats"] == 5


def test_a_result_gives_the_rows_and_targets_back() -> None:
    row, silent, target = result().measured()
    assert isinstance(row, Row)
    assert (row.paper, row.ours) == (2.0, 1.9)
    assert math.isnan(silent.ours)
    assert isinstance(target, Target)
    assert (target.at_least, target.at_most, target.met) == (0.9, 1.1, False)
    assert target.ours == 1.1235


def test_whether_a_target_is_met_is_computed_anew(tmp_path: Path) -> None:
    made = result()
    made.write(tmp_path)
    file = tmp_path / made.file
    file.write_text(file.read_text().replace("1.1235", "1.05"))
    assert GENERATOR.Result.read(file).measured()[-1].met
    assert "None." in "\n".join(GENERATOR.misses([GENERATOR.Result.read(file)]))


def test_errors_beside_floors_are_kept_with_what_was_before(tmp_path: Path) -> None:
    missed = Beside("floor", "a", "std", 3.0, at_most=2.0, floor=1.0, before=9.0, reason="x|y")
    met = Beside("floor", "b", "std", 1.5, at_most=2.0)
    about = {"scores": "synthetic", "repeats": 5, "seconds": 1.0, "version": "0"}
    made = GENERATOR.Result.of_rows([missed.to_dict(), met.to_dict()], **about)
    made.write(tmp_path)
    assert GENERATOR.Result.read(tmp_path / made.file).measured() == [missed, met]
    text = "\n".join(GENERATOR.section(made))
    assert "| a | std | 9 | 2 | 3 | 1 | **no** | x\\|y |" in text
    assert "| b | std | none | 2 | 1.5 | none | yes |" in text


def test_the_section_shows_misses_and_escapes_what_tables_would_not_bear() -> None:
    text = "\n".join(GENERATOR.section(result(note="Look here.")))
    assert "| \\|a\\| | d\\_e | 0.9..1.1 | 1.1235 | **no** |" in text
    assert "| a | b | 2 | 1.9 | 0.950 | yes |" in text
    assert "1 numbers with nothing printed" in text
    assert "- Look here." in text
    assert "`tacit reproduce coverage --repeats 5`" in text


@pytest.mark.parametrize(
    ("paper", "ours", "said"),
    [
        (1.0, 1.2, "yes"),
        (1.0, 1.3, "higher"),
        (1.0, 0.7, "lower"),
        (None, 1.0, "no ratio"),
        (1.0, math.nan, "no ratio"),
    ],
)
def test_verdicts(paper: float | None, ours: float, said: str) -> None:
    assert GENERATOR.verdict(Row("t", "r", "c", paper, ours)) == said


def test_a_bound_of_the_paper_holds_below_it() -> None:
    assert GENERATOR.verdict(Row("t", "r", "slope, at most", -0.5, -0.9)) == "yes"
    assert GENERATOR.verdict(Row("t", "r", "slope, at most", -0.5, -0.3)) == "lower"
    assert GENERATOR.verdict(Row("t", "r", "slope, at most", 0.0, -0.1)) == "yes"


def test_rows_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="3 names"):
        GENERATOR.Result.of_rows(
            [*ROWS, ROWS[0]], scores="synthetic", repeats=1, seconds=1.0, version="0"
        )


def test_bounds_read_what_targets_write() -> None:
    for target in (
        Target("t", "r", "c", 1.0, 0.93, 0.97),
        Target("t", "r", "c", 1.0, at_most=3e-5),
    ):
        assert GENERATOR.bounds(target.target) == (target.at_least, target.at_most)
