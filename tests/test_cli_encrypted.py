"""The command with EncryptedAUC: what it prints, and that its every error is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from click.testing import CliRunner, Result

import tacit
from tacit.cli import main
from tacit.crypto import homomorphic

ENCRYPTED = ("--protocol", "encrypted-auc", "--thresholds", "20")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("records") / "scores.csv"
    scores, labels = tacit.binormal_scores(400, 600, 0.8, seed=0)
    pa_csv.write_csv(pa.table({"score": scores, "label": labels}), made)
    return made


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(main, ["evaluate", *(str(argument) for argument in arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("tacit: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def without_tenseal(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(homomorphic, "import_module", absent)


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_without_tenseal_the_error_says_how_to_install_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    without_tenseal(monkeypatch)
    options = (*ENCRYPTED, "--most-records", 1000, "--scheme", scheme)
    sentence = refused(file, "--split", 3, *options)
    assert sentence.endswith("needs TenSEAL: pip install 'tacit[encrypted]'\n")


def test_other_protocols_do_without_tenseal(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_tenseal(monkeypatch)
    assert run(file, "--split", 3, "--protocol", "exact").exit_code == 0


def test_one_party_is_refused_in_one_sentence(file: Path) -> None:
    assert "at least 2 parties, got 1" in refused(file, *ENCRYPTED, "--most-records", 1000)


def test_a_bound_below_or_beyond_what_is_possible(file: Path) -> None:
    sentence = refused(file, "--split", 2, *ENCRYPTED, "--most-records", 400)
    assert "one of them has 500" in sentence
    wide = ("--adversary", "malicious", "--most-records", 2**25)
    assert "most_records must be at most 11863283" in refused(file, "--split", 2, *ENCRYPTED, *wide)


@pytest.mark.parametrize("adversary", ["semi-honest", "malicious"])
def test_the_auc_is_printed(file: Path, adversary: str) -> None:
    pytest.importorskip("tenseal")
    options = (*ENCRYPTED, "--most-records", 1000, "--adversary", adversary, "--json")
    result = run(file, "--split", 3, *options)
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["protocol"]["adversary"] == adversary
    assert abs(found["auc"]["value"] - found["exact"]) < 5 * found["auc"]["approximation_error"]
