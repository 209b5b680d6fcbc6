"""Every table and figure on a thousand records."""

from functools import cache

import numpy as np
import pytest

from tacit.metrics.ranking import auc, doubled_mid_ranks
from tacit.privacy.mechanisms.response import flip_probability
from tacit_studies.figures import BUDGET_FRACTIONS
from tacit_studies.measuring import Bench, Split
from tacit_studies.papers import fedauc
from tacit_studies.references import dpauc as reference_dpauc
from tacit_studies.references import fedauc as reference_fedauc
from tacit_studies.registry import TABLES
from tacit_studies.rows import Measured, Row, Target
from tacit_studies.sources import Scores
from tests.studies.sources import MORE, SOME, check_rows, few, real_clients

NAMES = [
    *(f"fedauc-table-{number}" for number in (1, 2, 3, 5, 6, 7, 8, 9)),
    *(f"fedauc-figure-{number}" for number in ("1a", "1b", "1c", "4", "5", "6", "8")),
    *(f"dpauc-table-{number}" for number in (1, 2, 3, 4, 5)),
    *("dpauc-figure-3", "fedauc-influence", "dpauc-histogram", "coverage"),
]
ON_REAL = [
    *("fedauc-table-1", "fedauc-table-6", "fedauc-table-8", "fedauc-figure-1a", "fedauc-figure-8"),
    *("dpauc-table-1", "dpauc-figure-3", "dpauc-histogram"),
]
"""One of those that are measured by the same function."""

LATER = [name for name in TABLES if not name.startswith(("fedauc", "dpauc")) and name != "coverage"]
"""Those that mix rows and targets, whose jobs are tested apart."""


def test_the_registry_holds_every_name_with_a_description() -> None:
    assert [name for name in TABLES if name not in LATER] == NAMES
    assert LATER
    assert all(table.description and "\n" not in table.description for table in TABLES.values())


@cache
def measured(name: str) -> list[Measured]:
    """The rows of two repetitions, which several tests look at; of the slowest, one epoch's."""
    with pytest.MonkeyPatch.context() as patch:
        for printed in ("TABLE_4", "TABLE_5"):
            patch.setattr(reference_dpauc, printed, getattr(reference_dpauc, printed)[:1])
        return TABLES[name].measure(few(), repeats=2, seed=1)


@pytest.mark.parametrize(
    ("name", "real"), [*((name, False) for name in NAMES), *((name, True) for name in ON_REAL)]
)
def test_every_table_gives_rows_that_survive_json(name: str, real: bool) -> None:
    source = few(real_clients())
    rows = TABLES[name].measure(source, repeats=2, seed=1) if real else measured(name)
    check_rows(rows, name)
    if name in NAMES[-3:]:
        assert all(isinstance(row, Target) for row in rows)
        return
    # tables and figures of the papers consist of rows, and only tables have printed figures
    assert all(isinstance(row, Row) for row in rows)
    plain = [row for row in rows if not row.column.startswith("claim")]
    printed = {isinstance(row, Row) and row.paper is not None for row in plain}
    assert printed == {"table" in name}


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("fedauc-table-1", 84),
        ("fedauc-table-2", 48),
        ("fedauc-table-3", 6 * 3 + 3),
        ("fedauc-table-5", 9 * 3 + 3),
        ("fedauc-table-6", 9 * 3 + 3),
        ("fedauc-table-7", 120),
        ("fedauc-table-8", 11),
        ("fedauc-table-9", 13 * 3 + 3),
        ("dpauc-table-1", 4 * 3 + 3),
        ("dpauc-table-4", 3 * 4 * 4),
        ("dpauc-table-5", 3 * 4 * 5),
    ],
)
def test_every_printed_cell_has_a_job(name: str, cells: int) -> None:
    assert len(TABLES[name].jobs()) == cells


def test_paper_2_prints_two_tables_of_paper_1() -> None:
    for ours, theirs in (("dpauc-table-2", "fedauc-table-8"), ("dpauc-table-3", "fedauc-table-9")):
        pairs = zip(measured(ours), measured(theirs), strict=True)
        assert all((a.row, a.column, a.ours) == (b.row, b.column, b.ours) for a, b in pairs)


def test_table_1_is_measured_as_in_table_7() -> None:
    wide = {(r.row, r.column): r.to_dict() for r in measured("fedauc-table-7")}
    for row in measured("fedauc-table-1"):
        assert wide[(row.row, row.column)] == {**row.to_dict(), "table": "fedauc-table-7"}


def test_table_2_has_the_papers_deviation() -> None:
    rows = TABLES["fedauc-table-2"].measure(Scores(small=SOME, large=MORE), repeats=2_000)
    values = {(row.row, row.column): row.ours for row in rows}
    pairs = SOME.positives * SOME.negatives
    for epsilon in reference_fedauc.TABLE_2:
        for clients in (10, 1_000):
            formula = np.sqrt(2 * clients) * (SOME.records - 1) / (pairs * epsilon)
            ours = values[(f"eps={epsilon:g} GlobalLaplace", f"K={clients}")]
            assert ours == pytest.approx(formula, rel=0.12)


def test_sensitivities_are_ranks() -> None:
    clients = Bench(few(), 1, 0).clients(Split(7))
    ranks = doubled_mid_ranks(clients.scores) / 2
    own = [ranks[a:b].max() for a, b in zip(clients.offsets, clients.offsets[1:], strict=False)]
    assert fedauc.rank_sensitivity(clients, of_all=False).tolist() == own
    assert fedauc.rank_sensitivity(clients, of_all=True).tolist() == [999.0] * 7


@pytest.mark.parametrize(("times", "numbers"), [(1, 1), (10, 2**21), (5, 2**23), (7, 2**20)])
def test_groups_cover_all_repetitions(times: int, numbers: int) -> None:
    groups = list(fedauc._groups(times, numbers, seed=0))
    assert sum(size for size, _ in groups) == times
    assert len({seed for _, seed in groups}) == len(groups)
    assert all(size * numbers <= max(numbers, 2**22) for size, _ in groups)


def test_flipped_labels_give_the_papers_noisy_auc() -> None:
    scores, labels = Scores().draw(SOME, epoch=0, seed=2)
    ranks = doubled_mid_ranks(scores)
    plain = fedauc.flipped_aucs(ranks, labels, 30.0, 2, seed=0)
    assert plain.tolist() == pytest.approx([auc(scores, labels)] * 2, abs=1e-12)
    flip, rate = flip_probability(1.0), SOME.positives / SOME.records
    wrong = (1 - rate) * flip / (rate * (1 - flip) + (1 - rate) * flip)
    missed = rate * flip / (rate * flip + (1 - rate) * (1 - flip))
    expected = SOME.auc[0] * (1 - wrong - missed) + (wrong + missed) / 2
    aucs = fedauc.flipped_aucs(ranks, labels, 1.0, 200, seed=0)
    assert aucs.mean() == pytest.approx(expected, abs=4 * aucs.std() / np.sqrt(200))


def test_label_guessing_counts_the_highest_scores() -> None:
    scores, labels = Bench(few(), 1, 0).scored()
    rows = {(r.row, r.column): r.ours for r in TABLES["fedauc-table-8"].measure(few(), 1, 0)}
    best = labels[np.argsort(-scores)]
    for top in (1, 5, 10, 50, 100, 500, 1_000):
        assert rows[(f"top {top}", "positives")] == best[:top].sum()
        assert rows[(f"top {top}", "precision")] == pytest.approx(best[:top].mean())
        assert rows[(f"top {top}", "recall")] == pytest.approx(best[:top].sum() / 300)
    assert ("top 5000", "positives") not in rows


def test_the_best_share_is_where_the_deviation_is_smallest() -> None:
    rows = TABLES["fedauc-figure-1b"].measure(Scores(small=SOME, large=MORE), 50)
    points, claim = rows[: len(BUDGET_FRACTIONS)], rows[len(BUDGET_FRACTIONS)]
    best = min(points, key=lambda row: row.ours)
    assert best.column == f"alpha={claim.ours:g}"
    assert 0.4 <= claim.ours <= 0.7


def test_densities_count_every_record() -> None:
    rows = TABLES["dpauc-figure-3"].measure(few(), 1)
    counts = {
        name: sum(r.ours for r in rows if r.row == name) for name in ("positives", "negatives")
    }
    assert counts == {"positives": 300, "negatives": 700}


def test_one_data_size_is_compared_with_the_other() -> None:
    rows = TABLES["fedauc-figure-1a"].measure(few(), 30)
    small, large, claim = (row for row in rows if row.row == "eps=2")
    assert claim.ours == pytest.approx(large.ours / small.ours)
    assert isinstance(claim, Row)
    assert claim.paper == pytest.approx(0.316, abs=1e-3)


def test_influence_targets_are_for_the_cells_that_fit() -> None:
    rows = measured("fedauc-influence")
    against_better = [row for row in rows if "better" in row.column]
    assert len(against_better) == 4 * 2 * 2
    assert [row.column for row in rows if row.row == "eps=1 IID K=10"] == [
        "influence staircase / better of RR and adaptive Laplace",
        "influence staircase / adaptive Laplace",
        "influence Laplace / adaptive Laplace",
    ]
