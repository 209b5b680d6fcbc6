"""Golden numbers by R: those of records that come with scikit-learn, which need no R."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit_studies.golden import command
from tacit_studies.golden.comparing import Compared, compared, golden_numbers
from tacit_studies.golden.records import RECORDS


def test_all_figures_of_the_cancer_records_are_those_of_r() -> None:
    rows = list(compared(RECORDS["breast-cancer"](), golden_numbers()["breast-cancer"]))
    assert len(rows) == 12
    assert [row.name for row in rows if not row.fits] == []


def test_versions_are_recorded_and_no_record_is() -> None:
    for numbers in golden_numbers().values():
        assert {"R", "pROC", "rms"} <= numbers.keys()
        assert not any(isinstance(value, list) for value in numbers.values())


def test_a_difference_beyond_what_is_allowed_is_told() -> None:
    assert not Compared("auc", 0.8, 0.81, 1e-3).fits


def test_without_r_its_own_records_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = CliRunner().invoke(command.golden, ["--check"])
    assert done.exit_code == 0, done.output
    assert "asah: not checked, aSAH comes with R's package pROC" in done.output
    assert "MISSED" not in done.output


def test_an_r_that_fails_is_no_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "Rscript"
    program.write_text("#!/bin/sh\necho 'there is no package called pROC' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    done = CliRunner().invoke(command.golden, ["--check"])
    assert done.exit_code == 1
    assert "asah: not checked, R failed: there is no package called pROC" in done.output


@pytest.mark.parametrize(
    ("label", "recorded", "today"),
    [
        ("AUC, records", "auc", ""),
        ("Brier score, records", "brier", ""),
        ("Brier score, finest cells", "", "brier, cells"),
        ("slope, finest cells", "slope", "slope, cells"),
        ("intercept, finest cells", "intercept", "intercept, cells"),
        ("mean distance (Eavg, ICI)", "eavg", "eavg, smoothed"),
        ("E90", "e90", "e90, smoothed"),
        ("Emax", "emax", "emax, smoothed"),
    ],
)
def test_the_pages_table_has_the_recorded_numbers_and_those_of_today(
    label: str, recorded: str, today: str
) -> None:
    """The records of today's, aSAH, come with R's package pROC."""
    known = golden_numbers()["asah"]
    by_r, by_tacit, digits = _row(label)
    if recorded:
        assert by_r == pytest.approx(known[recorded], abs=0.51 * 10.0**-digits)
    if today and shutil.which("Rscript") is not None:
        rows = {row.name: row for row in compared(RECORDS["asah"](), known)}
        assert [name for name, row in rows.items() if not row.fits] == []
        assert by_tacit == pytest.approx(rows[today].by_tacit, abs=0.51 * 10.0**-digits)


def _row(label: str) -> tuple[float, float, int]:
    """Both numbers of a row of the page's table, and the digits of the first one."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "measures.md").read_text(
        encoding="utf-8"
    )
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
    by_r, by_tacit = [cell.strip() for cell in line.split("|")[2:4]]
    return float(by_r), float(by_tacit), len(by_r.partition(".")[2])


def test_one_of_both_options_is_needed() -> None:
    assert CliRunner().invoke(command.golden, []).exit_code == 2
