"""Golden numbers by R: those of records that come with scikit-learn, which need no R."""

from __future__ import annotations

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


def test_one_of_both_options_is_needed() -> None:
    assert CliRunner().invoke(command.golden, []).exit_code == 2
