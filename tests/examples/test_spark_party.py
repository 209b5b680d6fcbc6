"""A fourth party, whose records are on Spark: its file and its program, without the federation."""

from __future__ import annotations

import json
import shutil

import pytest

from tacit.running.session.party_file import PartyFile
from tacit.running.session.plan_file import Plan
from tests.examples.conftest import EXAMPLES
from tests.terminal import in_python


def test_the_party_on_spark_has_its_records() -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed: tacit[spark]")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed: apt-get install openjdk-17-jre-headless")
    home = EXAMPLES / "three-databases"
    party, plan = PartyFile.read(home / "d" / "party.toml"), Plan.read(home / "four.toml")
    assert [each.name for each in plan.parties] == ["a", "b", "c", party.name]
    words = "evaluate", str(party.records), "--epsilon", "9", "--json"
    done = in_python("from tacit.cli import main; main()", *words)
    assert json.loads(done.stdout)["auc"]["value"] == pytest.approx(0.8, abs=0.1), done.stderr
