"""Faults under a ledger: kills at any place, several processes, a full disk."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit import Adjacency, Cost, Ledger
from tacit.ledger.entries import LedgerError
from tests.ledger.children import entry

ROOT = Path(__file__).parents[2]


def children(*arguments: object) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.ledger.children", *map(str, arguments)]
    single = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=single, capture_output=True, text=True, check=True, timeout=600
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_no_reply_without_its_debit(tmp_path: Path) -> None:
    """Whatever line a process is killed at, the ledger verifies, and its debit came first."""
    runs = children("kill", tmp_path / "ledger.db", 0)
    assert sum(run["status"] == signal.SIGKILL for run in runs) == len(runs) - 2 > 100
    assert [run for run in runs if run["replied"] > run["debited"]] == []
    assert runs[-1]["replied"] > 0


def test_a_reply_before_its_debit_is_noticed(tmp_path: Path) -> None:
    runs = children("kill", tmp_path / "ledger.db", 1)
    assert any(run["replied"] > run["debited"] for run in runs)


def test_together_they_never_pass_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    (reported,) = children("crowd", path, 6, 20, 5)
    assert reported["codes"] == [0] * 6
    assert sum(reported["accepted"]) == 20
    with Ledger.open_readonly(path) as ledger:
        ledger.verify()
        assert ledger.spending("registry")[0].epsilon == 5.0


def test_a_book_after_a_fork_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        monkeypatch.setattr("tacit.ledger.files.os.getpid", lambda: -1)
        with pytest.raises(LedgerError, match="opened before a fork"):
            ledger.limit("registry", 1.0)


def test_a_full_database(tmp_path: Path) -> None:
    requested = entry("run", cost=Cost(0.0, adjacency=Adjacency.RECORD))
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.limit("registry", 1.0)
        (pages,) = ledger._connection.execute("PRAGMA page_count").fetchone()
        ledger._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(LedgerError, match="database or disk is full"):
            for _ in range(1000):
                ledger.debit(requested)
        before = ledger.verify()
        with pytest.raises(LedgerError, match="database or disk is full"):
            ledger.debit(requested)
        assert ledger.verify() == before


def test_a_book_that_is_locked_for_too_long(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger._connection.execute("PRAGMA busy_timeout = 1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            ledger.limit("registry", 1.0)
        other.execute("ROLLBACK")
        other.close()
        assert ledger.limit("registry", 1.0).number == 1
