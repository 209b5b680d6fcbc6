"""``--score``, ``--label``, ``--positive`` with ``FILE=``: columns of other names in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

import tacit
from tests.terminal import content_of, run, succeeded

OWN = ("--score", "north.csv=risk", "--label", "north.csv=died", "--positive", "north.csv=yes")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """North has other names and words than south; together has all of both."""
    monkeypatch.chdir(tmp_path)
    scores, labels = tacit.binormal_scores(60, 140, 0.8, seed=0)
    rows = list(zip(scores.tolist(), labels.tolist(), strict=True))
    north = [f"{score},{'yes' if label else 'no'}" for score, label in rows[40:]]
    south = [f"{score},{label}" for score, label in rows[:40]] + ["0.5,0", "0.25,0"]
    together = south + [f"{score},{label}" for score, label in rows[40:]]
    for name, head, lines in (
        ("north", "risk,died", north),
        ("south", "score,label", south),
        ("together", "score,label", together),
    ):
        Path(f"{name}.csv").write_text("\n".join([head, *lines]) + "\n")


def test_a_file_s_own_columns_and_words_are_read() -> None:
    found = content_of("evaluate", "north.csv", "south.csv", *OWN, "--protocol", "exact")
    whole = content_of("evaluate", "together.csv", "--protocol", "exact")
    assert found["auc"] == whole["auc"]


@pytest.mark.parametrize("files", ["north.csv south.csv", "./north.csv south.csv", "[ns]*.csv"])
def test_a_file_is_known_by_any_spelling(files: str) -> None:
    """Taken for a word of all files, yes would have left north without a positive."""
    found = succeeded(run("check", *files.split(), *OWN))
    assert "north.csv: 160 records, 20 positive" in found.output


def test_a_mapping_names_files_that_are_read() -> None:
    with pytest.raises(tacit.DataError, match=r"a column of scores was named for east\.csv"):
        tacit.read("south.csv", {"east.csv": "risk"})


def test_a_comparison_reads_a_file_s_own_columns() -> None:
    """The south's first model is the column that elsewhere is the second's."""
    lines = [line.split(",") for line in Path("together.csv").read_text().splitlines()[1:]]
    for name, head, rows in (
        ("a", "old,new,label", lines[:100]),
        ("b", "risk,rival,died", lines[100:]),
        ("c", "new,old,label", lines[100:]),
    ):
        both = [(float(score) / 2, score, label) for score, label in rows]
        texts = [f"{b},{a},{y}" if name == "c" else f"{a},{b},{y}" for a, b, y in both]
        Path(f"{name}.csv").write_text("\n".join([head, *texts]) + "\n")
    own = ("--score", "b.csv=rival", "--versus", "b.csv=risk", "--label", "b.csv=died")
    usual = ("--score", "new", "--versus", "old")
    more = ("--epsilon", "30", "--seed", "3", "--exact")
    found = content_of("compare", "a.csv", "b.csv", *usual, *own, *more)
    alike = content_of("compare", "a.csv", "c.csv", *usual, *more)
    assert found["difference"] == alike["difference"]
