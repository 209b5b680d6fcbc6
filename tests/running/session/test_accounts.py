"""What a party reads on its own terminal about the cost of runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import tacit
from tacit.ledger.entries import Entry, LimitError
from tacit.running.session.debits import note_freed, paid_line

DAY = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def ledger(tmp_path: Path) -> tacit.Ledger:
    """A limit of 3 in a year, of which 2 were spent."""
    opened = tacit.Ledger(tmp_path / "ledger.db", clock=DAY.timestamp)
    opened.limit("registry", 3.0, period=timedelta(days=365))
    cost = tacit.Cost(1.0, 0.0, tacit.Adjacency.RECORD)
    for number in range(2):
        session, request = f"{number:032x}", b"r" * 32
        opened.debit(Entry("registry", b"f" * 32, "dpauc", "step", session, request, cost))
    return opened


def test_an_answer_says_what_it_cost_and_what_is_left(ledger: tacit.Ledger) -> None:
    protocol = tacit.DPAUC(1.0)
    with ledger:
        spendings = ledger.spending("registry")
        line = paid_line(protocol, protocol.guarantee, protocol.guarantee, spendings)
    assert line.startswith("answered: AUC by dpauc; this run has cost epsilon 1 so far")
    assert "allows epsilon 3 in any 365 days at record adjacency; 2 spent" in line
    assert line.endswith("enough for 1 more run")


def test_a_decline_says_why_and_when_there_is_room_again(ledger: tacit.Ledger) -> None:
    refusal = LimitError("its limit is 3")
    with ledger:
        note_freed(refusal, ledger, *ledger.spending("registry"))
    (note,) = refusal.__notes__
    assert note.startswith("budget returns from 2027-03-01; to allow more now: tacit ledger limit")


def test_a_limit_without_a_window_frees_nothing(tmp_path: Path) -> None:
    with tacit.Ledger(tmp_path / "ledger.db") as opened:
        opened.limit("registry", 3.0)
        refusal = LimitError("no room")
        note_freed(refusal, opened, *opened.spending("registry"))
        assert not hasattr(refusal, "__notes__")
