"""``--ledger FILE`` of runs in one process: debited in whole before anything is computed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.ledger.ledger import Ledger
from tacit.running import evaluating, simulation
from tacit.running.evaluating import UNDEBITED
from tests.cli.examples import counts_file
from tests.terminal import run

HISTOGRAM = "--protocol score-histogram --epsilon 1"
FORMS = {
    "chosen": ("record", "evaluate north.csv --epsilon 1"),
    "labels": ("label", "evaluate north.csv --protocol fedauc --epsilon 1"),
    "counts": ("record", f"evaluate --counts counts.csv {HISTOGRAM}"),
    "stored": ("record", f"evaluate *th.parquet {HISTOGRAM}"),
    "groups": ("record", f"evaluate models.parquet --score new --groups ward {HISTOGRAM}"),
    "models": ("label", "compare models.parquet --score new --versus old --epsilon 1"),
    "persons": ("person", f"evaluate visits.csv --person patient --per-person 2 {HISTOGRAM}"),
    "missing": ("record", f"evaluate gaps.csv --missing drop --count-missing 0.25 {HISTOGRAM}"),
}


def debits(path: Path) -> list[tuple[float, str | None]]:
    """Epsilon and adjacency of the ledger's debits."""
    with Ledger.open_readonly(path) as pages:
        pages.verify()
        return [(line.epsilon, line.adjacency) for line in pages.lines() if line.kind == "debit"]


def limited(path: Path, name: str, epsilon: float, adjacency: str = "record") -> None:
    """Set a limit."""
    with Ledger(path) as ledger:
        ledger.limit(name, epsilon, adjacency=tacit.Adjacency(adjacency))


@pytest.mark.parametrize("form", FORMS)
def test_a_run_is_debited_whole(folder: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    counts_file(folder / "north.parquet", folder / "counts.csv")
    (folder / "gaps.csv").write_text((folder / "north.csv").read_text() + "0.5,\n")
    book, (kind, text) = folder / "budget.db", FORMS[form]
    limited(book, "own", 1.5, kind)
    words, ledger = text.split(), ("--ledger", book)
    said = run(*words).stdout + run(*words, *ledger, "--seed", 1).stdout
    assert "nothing remembers what was spent" in said
    assert UNDEBITED in said
    refused = [run(*words, *ledger, "--exact")] if form != "counts" else []
    assert debits(book) == []
    assert f"{book}, debited" in run(*words, *ledger).stdout
    assert debits(book) == [(1.0, kind)]
    for where in (evaluating, simulation):
        monkeypatch.delattr(where, "simulate")
    refused += [run(*words, *ledger), run(*words, *ledger, "--federation", "other")]
    assert {(each.exit_code, each.stdout) for each in refused} == {(2, "")}
    for each, why in zip(
        refused[::-1], ("booked as", "epsilon 1 spent", "without limit"), strict=False
    ):
        assert why in each.stderr
    limited(book, "own", 2, kind)
    with pytest.raises((NameError, AttributeError)):
        run(*words, *ledger)
    assert debits(book) == [(1.0, kind)] * 2, "a run that broke off is paid"


def test_what_no_debit_could_cover_is_refused_or_unlimited(tmp_path: Path) -> None:
    records, book = tacit.binormal_scores(200, 300, 0.8, seed=0), tmp_path / "budget.db"
    asked: dict[str, Any] = {"epsilon": 1, "ledger": book}
    with pytest.raises(FileNotFoundError, match="`tacit ledger limit` makes one"):
        tacit.evaluate(records, **asked)
    limited(book, "one", math.inf)
    tacit.evaluate(records, **asked, exact=True)
    limited(book, "other", math.inf)
    wrong: dict[str, dict[str, Any]] = {
        "got 'one', 'other': name": {},
        "not both": {"state": tacit.ClientState()},
        "give ledgers": {"engine": "spu"},
    }
    for why, given in wrong.items():
        with pytest.raises(ValueError, match=why):
            tacit.evaluate(records, **asked, **given)
    assert debits(book) == [(math.inf, None)]
