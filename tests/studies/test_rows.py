import json
import math

import pytest

from tacit_studies.rows import Measured, Row, Target, format_rows, summary, summary_lines
from tests import known

ROW_KEYS = ["table", "row", "column", "paper", "ours", "ratio"]


def row(paper: float | None, ours: float, name: str = "r") -> Row:
    return Row("t", name, "c", paper, ours)


def test_a_row_has_exactly_the_six_keys() -> None:
    assert list(row(2.0, 3.0).to_dict()) == ROW_KEYS
    assert row(2.0, 3.0).to_dict()["ratio"] == 1.5


@pytest.mark.parametrize(("paper", "ours"), [(None, 1.0), (0.0, 1.0), (2.0, math.nan)])
def test_no_ratio_without_two_numbers_and_null_for_those_that_are_not_finite(
    paper: float | None, ours: float
) -> None:
    assert row(paper, ours).ratio is None
    written = json.loads(json.dumps(row(paper, ours).to_dict(), allow_nan=False))["ours"]
    assert written == (ours if math.isfinite(ours) else None)


@pytest.mark.parametrize(
    ("ours", "low", "high", "text", "met"),
    [
        (0.5, None, 0.5, "<= 0.5", True),
        (0.51, None, 0.5, "<= 0.5", False),
        (10.0, 10, None, ">= 10", True),
        (9.9, 10, None, ">= 10", False),
        (0.95, 0.93, 0.97, "0.93..0.97", True),
        (0.98, 0.93, 0.97, "0.93..0.97", False),
        (0.92, 0.93, 0.97, "0.93..0.97", False),
        (math.nan, None, 0.5, "<= 0.5", False),
    ],
)
def test_a_target_is_judged_on_both_sides(
    ours: float, low: float | None, high: float | None, text: str, met: bool
) -> None:
    target = Target("t", "r", "c", ours, low, high)
    assert (target.target, target.met) == (text, met)
    entries = target.to_dict()
    assert list(entries) == [*ROW_KEYS, "target", "met"]
    assert entries["paper"] is None
    assert entries["ratio"] is None


def test_a_summary_counts_only_cells_with_a_ratio() -> None:
    rows = [row(1.0, 1.05), row(1.0, 0.85), row(1.0, 2.0, "far"), row(None, 9.0)]
    totals = summary(rows)
    assert totals.cells == 3
    assert totals.geometric_mean == pytest.approx((1.05 * 0.85 * 2) ** (1 / 3))
    assert totals.within == {10: 1 / 3, 20: 2 / 3, 25: 2 / 3}
    assert known(totals.worst).row == "far"


def test_a_ratio_of_zero_is_the_worst_and_leaves_the_mean_defined() -> None:
    totals = summary([row(1.0, 0.0, "none"), row(1.0, 2.0)])
    assert totals.geometric_mean == pytest.approx(2.0)
    assert known(totals.worst).row == "none"


def test_a_summary_names_the_targets_that_were_missed() -> None:
    targets = [Target("t", "good", "c", 1.0, at_least=1), Target("t", "bad", "c", 0.0, at_least=1)]
    totals = summary(targets)
    assert totals.targets == 2
    assert totals.unmet == (targets[1],)
    assert str(totals) == "1 of 2 targets met; missed: bad, c"


def test_nothing_to_compare_is_said() -> None:
    assert str(summary([row(None, 1.0)])) == "no number of the paper to compare with"
    assert summary_lines([]) == ["no number of the paper to compare with"]
    assert format_rows([]) == ""


def test_means_do_not_flatter_deviations() -> None:
    lines = summary_lines([row(1.0, 1.0, "a mean"), row(1.0, 3.0, "a std"), row(1.0, 1.0, "exact")])
    assert [line.split(":")[0] for line in lines[:2]] == ["mean", "std"]
    assert "worst 3.000" in lines[1]
    assert lines[2].startswith("1 cells")


def test_text_columns_align_and_end_without_spaces() -> None:
    rows: list[Measured]
    rows = [row(None, 0.75, "long name"), row(2.17e-3, 2.2e-3), Target("t", "r", "c", 1.0, 2.0)]
    lines = format_rows(rows).split("\n")
    assert lines[0].split() == ["row", "column", "paper", "ours", "ratio"]
    assert lines[1].split() == ["long", "name", "c", "-", "0.75", "-"]
    assert lines[2].split() == ["r", "c", "2.17e-03", "2.20e-03", "1.014"]
    assert len({len(line) for line in lines[:3]}) == 1
    assert lines[-1].split() == ["r", "c", ">=", "2", "1", "NO"]
    assert all(line == line.rstrip() for line in lines)
