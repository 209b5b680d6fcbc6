"""``--ledger FILE`` of runs in one process: debited in whole before anything is computed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import tacit
from tacit.ledger.entries import DEBIT, LimitError, Line
from tacit.ledger.ledger import Ledger
from tacit.running import evaluating, simulation
from tacit.running.run_ledger import UNDEBITED
from tests.cli.examples import counts_file
from tests.terminal import refusal_of, run

EVALUATED = ("evaluate", "north.csv", "--epsilon", 1)
HISTOGRAM = (*EVALUATED, "--protocol", "score-histogram")
FORMS = {
    "chosen": EVALUATED,
    "labels": (*EVALUATED, "--protocol", "fedauc"),
    "counts": ("evaluate", "--counts", "counts.csv", *HISTOGRAM[2:]),
    "pattern": ("evaluate", "*th.parquet", *HISTOGRAM[2:]),
    "groups": ("evaluate", "models.parquet", "--score", "new", "--groups", "ward", *HISTOGRAM[2:]),
    "compared": ("compare", "models.parquet", "--score", "new", "--versus", "old", "--epsilon", 1),
    "persons": ("evaluate", "visits.csv", "--person", "patient", "--per-person", 2, *HISTOGRAM[2:]),
    "missing": (
        *("evaluate", "gaps.csv", *HISTOGRAM[2:]),
        *("--missing", "drop", "--count-missing", 0.25),
    ),
}


@pytest.fixture
def book(folder: Path) -> Path:
    """A ledger that allows epsilon 1.5 about changed records, persons, or labels each."""
    counts_file(folder / "north.parquet", folder / "counts.csv")
    (folder / "gaps.csv").write_text((folder / "north.csv").read_text() + "0.5,\n")
    with Ledger(folder / "budget.db") as ledger:
        for adjacency in tacit.Adjacency:
            ledger.limit(f"by {adjacency.value}", 1.5, adjacency=adjacency)
    return folder / "budget.db"


def debits(path: Path) -> list[Line]:
    """The ledger's debits."""
    with Ledger.open_readonly(path) as pages:
        pages.verify()
        return [line for line in pages.lines() if line.kind == DEBIT]


def never(*_: Any, **__: Any) -> NoReturn:
    """A run that must not begin."""
    raise AssertionError


@pytest.mark.parametrize("form", FORMS)
def test_a_run_is_debited_whole_and_a_refused_one_computes_nothing(
    book: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    kind = {"labels": "label", "compared": "label", "persons": "person"}.get(form, "record")
    words = (*FORMS[form], "--ledger", book, "--federation")
    done = run(*words, f"by {kind}")
    assert done.exit_code == 0, done.output
    assert "1 spent; enough for 0 more runs" in done.stdout
    assert [(line.epsilon, line.adjacency) for line in debits(book)] == [(1.0, kind)]
    for where in (evaluating, simulation):
        monkeypatch.setattr(where, "simulate", never)
    for name, why in ((f"by {kind}", "of which epsilon 1,"), ("by score", "are booked as")):
        refused = run(*words, name)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert why in refused.stderr
    assert len(debits(book)) == 1
    with Ledger(book) as opened:
        opened.limit(f"by {kind}", 2.0, adjacency=tacit.Adjacency(kind))
    with pytest.raises(AssertionError):
        run(*words, f"by {kind}")
    assert len(debits(book)) == 2, "a run that broke off is paid"


@pytest.mark.parametrize("form", ["chosen", "groups", "compared"])
def test_only_runs_that_protect_are_debited_and_others_say_so(book: Path, form: str) -> None:
    words = (*FORMS[form], "--federation", "by label")
    assert "nothing remembers what was spent" in run(*words).stdout
    assert "nothing remembers" not in run(*words, "--seed", 1).stdout
    assert UNDEBITED in run(*words, "--seed", 1, "--ledger", book).stdout
    assert "without limit" in refusal_of(run(*words, "--ledger", book, "--exact"))
    assert debits(book) == []


def test_an_exact_figure_is_noted_as_unlimited(tmp_path: Path) -> None:
    records = tacit.binormal_scores(200, 300, 0.8, seed=0)
    book = tmp_path / "budget.db"
    ledger: dict[str, Any] = {"ledger": book}
    with pytest.raises(FileNotFoundError):
        tacit.evaluate(records, epsilon=1, **ledger)
    with Ledger(book) as opened:
        opened.limit("one", math.inf)
    tacit.evaluate(records, epsilon=1, exact=True, **ledger)
    assert [line.epsilon for line in debits(book)] == [math.inf]
    with Ledger(book) as opened:
        opened.limit("other", math.inf)
    with pytest.raises(ValueError, match="has 'one', 'other': name"):
        tacit.evaluate(records, epsilon=1, **ledger)
    for wrong in ({"state": tacit.ClientState()}, {"engine": "spu"}):
        with pytest.raises(ValueError, match="give ledger"):
            tacit.evaluate(records, "fedauc", epsilon=1, **ledger, **wrong)
    with pytest.raises(LimitError, match="no limit is set"):
        tacit.evaluate((np.arange(9), np.arange(9) % 2), "exact", **ledger, federation="third")
