"""The study of dropping links and killed servers runs, and finds nothing."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("flwr")
outages = pytest.importorskip("benchmarks.outages")
pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_runs_end_right_or_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert outages.main(["--runs", "3", "--sites", "3", "--drops", "2"])
    told = dict(re.findall(r"^(.+?) {2,}([\d.]+)$", capsys.readouterr().out, re.M))
    assert int(told["ended right"]) + int(told["ended with a sentence"]) == 3
    assert (told["debited twice"], told["forgotten"], told["server killed"]) == ("0", "0", "1")
