"""The command with EncryptedAUC: what it prints, and that its every error is one sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tacit import extras
from tests.terminal import content_of, page_of, refusal_of, run

ENCRYPTED = ("--protocol", "encrypted-auc", "--thresholds", "20")
PUBLISHED = ("--protocol", "published-fhe", "--thresholds", "20")


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_tenseal_is_an_extra(folder: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """Other protocols do without it."""

    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(extras, "import_module", absent)
    records = ("evaluate", "north.csv", "--split", 3)
    options = (*PUBLISHED, "--most-records", 1000, "--scheme", scheme)
    sentence = refusal_of(run(*records, *options))
    assert sentence.endswith("needs TenSEAL; install it with: pip install 'tacit[encrypted]'")
    assert run(*records, "--protocol", "exact").exit_code == 0


def test_agreed_thresholds_are_an_option(folder: Path) -> None:
    options = ("--protocol", "encrypted-auc", "--most-records", 1000, "--split", 3)
    content = content_of("evaluate", "north.csv", *options, "--thresholds", "0,0.2,0.5,0.8,1")
    assert content["protocol"]["thresholds"] == [0, 0.2, 0.5, 0.8, 1]


@pytest.mark.parametrize("adversary", ["semi-honest", "malicious"])
def test_a_report_rounds_the_certain_range_outwards(folder: Path, adversary: str) -> None:
    pytest.importorskip("tenseal")
    options = (*ENCRYPTED, "--most-records", 1000, "--adversary", adversary)
    content = content_of("evaluate", "north.csv", "--split", 3, *options)
    assert content["protocol"]["adversary"] == adversary
    low, high = content["auc"]["interval"]
    assert low <= content["exact"] <= high
    assert high - low == pytest.approx(2 * content["auc"]["half_range"])
    page = page_of(content, folder)
    reported = re.search(r"Certainly the exact AUC .* lies between (\S+) and (\S+)\.", page)
    assert reported is not None
    assert low - 0.01 < float(reported[1]) <= low
    assert high <= float(reported[2]) < high + 0.01
    assert "With 95 % confidence" not in page
