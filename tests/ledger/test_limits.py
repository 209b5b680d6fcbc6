"""Windows of limits, and clocks that go wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.ledger.accounts import Amount, Window, amount
from tacit.ledger.entries import MICROSECOND, Entry, LedgerError, Limit, LimitError
from tacit.ledger.ledger import Ledger
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost

DAY = 86_400.0
RECORD = Adjacency.RECORD
COSTS = (
    Cost(0.1, adjacency=RECORD),
    Cost(0.25, 1e-6, RECORD, 0.01),
    Cost(0.5, 1e-7, RECORD),
    Cost(0.7, adjacency=Adjacency.LABEL),
    UNPROTECTED,
)


class Clock:
    """A clock that the test turns."""

    seconds = 1e9

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(tmp_path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db", clock) as opened:
        yield opened


def asked(session: str, epsilon: float = 1.0) -> Entry:
    cost = Cost(epsilon, adjacency=RECORD)
    return Entry("registry", bytes(32), "dpauc", "0", session, bytes(32), cost)


def naive(debits: list[tuple[int, Cost]], now: int, period: int | None) -> tuple[Fraction, int]:
    """The sum of epsilons in the window, and how many debits protect nothing, by a loop."""
    inside = [cost for time, cost in debits if period is None or now - time < period]
    bare = [cost for cost in inside if cost.adjacency is not RECORD]
    remaining = [Fraction(cost.epsilon) for cost in inside if cost.adjacency is RECORD]
    return sum(remaining, Fraction(0)), len(bare)


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(COSTS), st.integers(0, 40)), max_size=40
    ),
    period=st.one_of(st.none(), st.integers(1, 60)),
)
def test_it_adds_up_what_lies_within_the_period(
    steps: list[tuple[int, Cost, int]], period: int | None
) -> None:
    span = None if period is None else period * MICROSECOND
    window = Window(Limit("registry", 1.0, period=span))
    debits: list[tuple[int, Cost]] = []
    now = 0
    for wait, cost, look in steps:
        now += wait
        for moment in (now + look, now):
            result = window.at(moment)
            epsilon, bare = naive(debits, moment, period)
            assert [result.epsilon, result.lost] == [epsilon * 2**100, bare]
        window.take(now, cost)
        debits.append((now, cost))


def test_amounts_are_rounded_up_and_taken_off_exactly() -> None:
    tiny = amount(Cost(5e-324, adjacency=RECORD), RECORD)
    assert (tiny.epsilon, tiny.rho) == (1, 1)
    assert tiny + tiny - tiny - tiny == Amount()


def test_a_sum_may_pass_its_limit_by_a_billionth_and_no_more() -> None:
    limit = Limit("registry", 1.0)
    assert amount(Cost(1 + 9e-10, adjacency=RECORD), RECORD).within(limit)
    assert not amount(Cost(1 + 2e-9, adjacency=RECORD), RECORD).within(limit)


@pytest.mark.parametrize("period", [timedelta(days=1), None])
def test_a_debit_counts_for_exactly_its_period(
    ledger: Ledger, clock: Clock, period: timedelta | None
) -> None:
    ledger.limit("registry", 1.0, period=period)
    ledger.debit(asked("first"))
    clock.seconds = 1e9 + (200 * 365 * DAY if period is None else DAY - 0.001)
    with pytest.raises(LimitError):
        ledger.debit(asked("early"))
    if period is not None:
        clock.seconds = 1e9 + DAY
        ledger.debit(asked("in time"))
        with pytest.raises(LimitError):
            ledger.debit(asked("again"))


def test_looking_from_a_wrong_time_forgets_nothing(ledger: Ledger, clock: Clock) -> None:
    """The clock leaps, a question is refused without a note, and the clock comes back."""
    ledger.limit("registry", 1.0, period=timedelta(days=1))
    ledger.debit(asked("first"))
    for clock.seconds in (1e9, 1e9 + 5 * DAY):
        with pytest.raises(LimitError):
            ledger.debit(asked("far too much", 5.0))
    assert ledger.spending("registry", clock)[0].epsilon == 0.0
    clock.seconds = 1e9 + 1
    assert ledger.spending("registry", clock)[0].epsilon == 1.0
    with pytest.raises(LimitError):
        ledger.debit(asked("second"))


def test_a_clock_that_goes_back_does_not_free_budget(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path, clock) as ledger:
        ledger.limit("registry", 2.0, period=timedelta(days=1))
        ledger.debit(asked("first"))
        clock.seconds = 1e9 - 3650 * DAY
        ledger.debit(asked("second"))
    with Ledger(path, clock) as ledger:
        with pytest.raises(LimitError):
            ledger.debit(asked("after a restart"))
        lines = ledger.lines()
        assert {line.time for line in lines} == {10**15}
        assert lines[-1].clock == (10**9 - 3650 * 86400) * 10**6
        ledger.verify()


def test_after_a_leap_ahead_and_back_debits_count_longer_not_shorter(
    ledger: Ledger, clock: Clock
) -> None:
    ledger.limit("registry", 2.0, period=timedelta(days=1))
    clock.seconds = 1e9 + 100 * DAY
    ledger.debit(asked("in the future"))
    for day in range(100):
        clock.seconds = 1e9 + day * DAY
        if day == 0:
            ledger.debit(asked("back again"))
        with pytest.raises(LimitError):
            ledger.debit(asked(f"{day}"))
    clock.seconds = 1e9 + 101 * DAY
    ledger.debit(asked("when the clock has caught up"))


@pytest.mark.parametrize("seconds", [math.nan, -1.0, math.inf, 1e15])
def test_a_clock_that_makes_no_sense_stops_the_book(
    ledger: Ledger, clock: Clock, seconds: float
) -> None:
    ledger.limit("registry", 2.0)
    clock.seconds = seconds
    with pytest.raises(LedgerError, match="seconds from 1970 to 9999, got"):
        ledger.debit(asked("first"))
    clock.seconds = 1e9
    assert ledger.debit(asked("first")).number == 2
