"""A client's ledger: debits, limits and their windows, clocks, and what it never holds."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.ledger import entries
from tacit.ledger.accounts import Amount, Window, amount
from tacit.ledger.ledger import Ledger
from tacit.privacy.composition import largest_rho
from tacit.privacy.cost import UNPROTECTED, Adjacency, Cost

LABEL, RECORD = Adjacency.LABEL, Adjacency.RECORD
REPLACE, SCORE = Adjacency.REPLACE, Adjacency.SCORE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


class Clock:
    """A clock that the test turns."""

    seconds = 1e9

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(path: Path, clock: Clock) -> Iterator[Ledger]:
    with Ledger(path, clock) as opened:
        yield opened


def asked(session: str = "run", cost: Cost | None = None, **changes: Any) -> entries.Entry:
    spent = Cost(1.0, adjacency=RECORD) if cost is None else cost
    entry = entries.Entry(
        "registry", bytes(32), "dpauc", "0 cells", session, entries.request_digest(b"ask"), spent
    )
    return replace(entry, **changes)


def test_every_commit_waits_for_the_disk(path: Path) -> None:
    for _ in range(2):
        with Ledger(path) as ledger:
            results = [
                ledger._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "fullfsync")
            ]
            assert results == ["wal", 2, 1]


def test_a_line_says_what_was_asked(path: Path) -> None:
    cost = Cost(0.5, 1e-7, RECORD, 0.01)
    with Ledger(path, clock=lambda: 1e9) as ledger:
        ledger.limit("registry", 1.0, 1e-6)
        receipt = ledger.debit(asked(cost=cost))
        with Ledger.open_readonly(path) as other:
            line = other.lines()[-1]
        assert (receipt.number, receipt.hash) == (line.number, line.hash) == (2, ledger.head)
    assert receipt.time.isoformat() == "2001-09-09T01:46:40+00:00"
    reported = line.entry
    assert replace(reported, request=asked().request) == asked(cost=cost)
    assert reported.request != asked().request


def test_costs_come_back_exactly(path: Path) -> None:
    small, half = Cost(0.1, adjacency=LABEL), Cost(1 / 3, 1e-300, REPLACE, 2.0**-60)
    costs = [small, half, Cost(0.0, adjacency=SCORE), UNPROTECTED]
    with Ledger(path) as ledger:
        ledger.limit("registry", math.inf)
        for number, cost in enumerate(costs):
            ledger.debit(asked(f"{number}", cost))
    with Ledger(path) as ledger:
        assert list(ledger.history("registry").elements()) == costs
        assert ledger.history() == ledger.history("registry")
        assert not ledger.history("elsewhere")


def test_threads_share_a_book(ledger: Ledger) -> None:
    def debited(number: int) -> bool:
        try:
            return bool(ledger.debit(asked(f"{number}")))
        except entries.LimitError:
            return False

    ledger.limit("registry", 15.0)
    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(debited, range(40))) == 15
    assert ledger.verify() == len(ledger.lines()) == 1 + 40


@pytest.mark.parametrize(
    "change",
    [
        {"request": entries.request_digest(b"another query")},
        {"protocol": "fedauc"},
        {"fingerprint": b"1" * 32},
    ],
)
def test_another_question_in_a_step_is_refused(ledger: Ledger, change: dict[str, Any]) -> None:
    ledger.limit("registry", 10.0)
    ledger.debit(asked())
    with pytest.raises(entries.ConflictError, match="was answered for another"):
        ledger.debit(asked(**change))
    assert ledger.spending("registry")[0].epsilon == 1.0


def test_the_same_records_under_another_name_are_refused(ledger: Ledger) -> None:
    ledger.limit("registry", 10.0)
    ledger.limit("escape", 10.0)
    ledger.debit(asked())
    with pytest.raises(entries.ConflictError, match="are booked as 'registry', got 'escape'"):
        ledger.debit(asked("other", dataset="escape"))


def spent(*epsilons: float, at: Adjacency = RECORD) -> list[Cost]:
    return [Cost(epsilon, adjacency=at) for epsilon in epsilons]


GAUSSIAN = Cost(0.1, 6e-7, RECORD, 0.001)

REACHED: dict[str, tuple[dict[str, Any], list[Cost], Cost, str]] = {
    "a sentence for the owner": (
        {"epsilon": 0.3, "adjacency": LABEL},
        spent(0.1, 0.1, 0.1, at=LABEL),
        Cost(1e-6, adjacency=LABEL),
        r"^limit epsilon 0\.3 at label adjacency, epsilon 0\.3 spent; dpauc asks data set "
        "'registry' for epsilon 1e-06 more at label adjacency$",
    ),
    "delta": ({"epsilon": 10.0, "delta": 1e-6}, [GAUSSIAN], GAUSSIAN, "delta 6e-07"),
    "a free step that shows scores": (
        {"epsilon": 2.0},
        [],
        Cost(0.0, adjacency=LABEL),
        "for epsilon 0 more at label",
    ),
    "no rho": (
        {"epsilon": 5.0, "delta": 1e-6, "accounting": "zcdp"},
        [Cost(1.0, 1e-9, RECORD, 0.01)],
        Cost(0.01, 1e-9, RECORD),
        r"\(rho 0.01, by zcdp\)",
    ),
    **{
        f"{parts} parts of a limit": (
            {"epsilon": 1.0},
            [*spent(*[1.0 / parts] * parts), *spent(0.0)],
            Cost(1e-6, adjacency=RECORD),
            "epsilon 1 at",
        )
        for parts in (3, 6, 7, 49)
    },
    **{
        f"{spending.value} in a limit of {limited.value}": (
            {"epsilon": 2.0, "adjacency": limited},
            spent(*[1.0] * fits, at=spending),
            Cost(1.0, adjacency=spending),
            f"at {limited.value} adjacency",
        )
        for limited, spending, fits in (
            (RECORD, RECORD, 2),
            (REPLACE, RECORD, 1),
            (LABEL, RECORD, 1),
            (LABEL, REPLACE, 2),
            (LABEL, LABEL, 2),
            (RECORD, LABEL, 0),
            (RECORD, REPLACE, 0),
            (LABEL, SCORE, 0),
            (SCORE, LABEL, 0),
        )
    },
}
"""A limit, the costs that fit, the one that does not, and what its refusal says."""


@pytest.mark.parametrize("case", REACHED)
def test_a_limit_is_reached_and_not_passed(ledger: Ledger, case: str) -> None:
    limit, fitting, last, message = REACHED[case]
    ledger.limit("registry", **limit)
    for number, cost in enumerate(fitting):
        ledger.debit(asked(f"{number}", cost))
    with pytest.raises(entries.LimitError, match=message):
        ledger.debit(asked("last", last))


def test_without_a_limit_nothing_is_answered(ledger: Ledger) -> None:
    with pytest.raises(entries.LimitError, match="no limit is set for data set 'registry'"):
        ledger.debit(asked())
    assert not ledger.history()


def test_others_learn_no_numbers() -> None:
    kinds: list[type[entries.BudgetError]] = entries.BudgetError.__subclasses__()
    for kind in [*kinds, entries.BudgetError]:
        assert kind("epsilon 3").public.startswith("declined")
        assert not any(message.isdigit() for message in kind("epsilon 3").public)


def test_what_protects_nothing_needs_an_infinite_limit_and_stays(ledger: Ledger) -> None:
    ledger.limit("registry", 100.0)
    with pytest.raises(entries.LimitError, match="for epsilon without limit more at no adjacency"):
        ledger.debit(asked("0", UNPROTECTED))
    ledger.limit("registry", math.inf)
    ledger.debit(asked("0", UNPROTECTED))
    ledger.limit("registry", 100.0)
    with pytest.raises(entries.LimitError, match="1 debits without limit"):
        ledger.debit(asked("1", Cost(0.1, adjacency=RECORD)))


def test_all_limits_of_a_data_set_hold(ledger: Ledger, clock: Clock) -> None:
    ledger.limit("registry", 1.0, period=timedelta(days=1))
    ledger.limit("registry", 3.0, period=timedelta(days=365))
    for day in range(3):
        ledger.debit(asked(f"{day}"))
        with pytest.raises(entries.LimitError, match=r"^limit epsilon 1 per 1 day at record"):
            ledger.debit(asked(f"{day} again"))
        clock.seconds += DAY
    with pytest.raises(entries.LimitError, match=r"^limit epsilon 3 per 365 days at record"):
        ledger.debit(asked("3"))


def test_concentrated_sums_allow_more_small_debits(path: Path) -> None:
    small = Cost(0.1, adjacency=RECORD)
    fitting = {}
    for accounting in ("basic", "zcdp"):
        with Ledger(path.with_name(accounting)) as ledger:
            ledger.limit("registry", 3.0, 1e-6, accounting=accounting)
            fitting[accounting] = 0
            with pytest.raises(entries.LimitError):
                for number in range(100):
                    ledger.debit(asked(f"{number}", small))
                    fitting[accounting] += 1
    rho = largest_rho(3.0, 1e-6)
    assert fitting == {"basic": 30, "zcdp": math.floor(rho / (0.1**2 / 2))}
    assert fitting["zcdp"] > 30


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "a limit's epsilon must be positive, got 0.0"),
        ({"epsilon": math.nan}, "a limit's epsilon must be positive, got nan"),
        ({"epsilon": 1.0, "delta": 1.0}, "at least 0 and below 1, got 1.0"),
        ({"epsilon": 1.0, "period": timedelta(0)}, "period must be positive, got 0:00:00"),
        ({"epsilon": 1.0, "accounting": "pld"}, "must be one of .*, got 'pld'"),
        ({"epsilon": 1.0, "accounting": "zcdp"}, "a finite epsilon and a positive delta"),
    ],
)
def test_wrong_limits_are_refused(ledger: Ledger, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ledger.limit("registry", **settings)
    assert ledger.lines() == []


def test_a_debit_that_must_follow_another_is_refused_after_any_other(path: Path) -> None:
    """Decided with the debit, so that of two processes that ask at once one is refused."""
    with Ledger(path) as ledger, Ledger(path) as other:
        ledger.limit("registry", math.inf)
        first = ledger.debit(asked(), last=b"")
        with pytest.raises(entries.RepeatedError, match="was debited before"):
            other.debit(asked(), last=b"")
        second = other.debit(asked(), last=first.hash)
        with pytest.raises(entries.RepeatedError):
            ledger.debit(asked(), last=first.hash)
        with pytest.raises(entries.ConflictError, match="an older state was restored"):
            ledger.debit(asked(step="later"), last=first.hash)
        ledger.debit(asked(step="later"), last=second.hash)
        assert [line.kind for line in ledger.lines()].count("debit") == 3


def test_a_refusal_is_noted_once_for_a_session_and_step(ledger: Ledger) -> None:
    for session in ("a", "a", "b"):
        with pytest.raises(entries.LimitError):
            ledger.debit(asked(session))
    noted = [(line.kind, line.session, line.reason) for line in ledger.lines()]
    assert noted == [("refusal", "a", "LimitError"), ("refusal", "b", "LimitError")]
    ledger.limit("registry", 1.0)
    ledger.debit(asked("a"))
    assert ledger.spending("registry")[0].epsilon == 1.0


@given(st.permutations(range(8)), st.sampled_from((np.int8, np.int64, np.float64)))
def test_order_and_dtype_do_not_matter(order: list[int], dtype: Any) -> None:
    scores = np.array([0.1, 0.1, 0.3, -0.0, 1.0, 0.3, 0.5, 0.25])
    labels = np.array([0, 1, 1, 0, 1, 0, 0, 1], dtype=dtype)
    with tempfile.TemporaryDirectory() as folder, Ledger(f"{folder}/book.db") as ledger:
        expected = ledger.fingerprint(np.abs(scores), labels.astype(np.int64))
        assert ledger.fingerprint(scores[order], labels[order]) == expected


def test_any_change_matters(path: Path) -> None:
    scores, labels = np.array([0.1, 0.2, 0.3]), np.array([0, 1, 1])
    with Ledger(path) as ledger, Ledger(path.with_name("other.db")) as other:
        results = {
            ledger.fingerprint(scores, labels),
            other.fingerprint(scores, labels),
            ledger.fingerprint(scores, 1 - labels),
            ledger.fingerprint(scores[:2], labels[:2]),
            ledger.fingerprint(np.nextafter(scores, 1), labels),
            ledger.fingerprint(labels, scores),
            ledger.fingerprint(scores),
            ledger.fingerprint(np.repeat(scores, 2), np.repeat(labels, 2)),
            ledger.fingerprint(scores[[1, 0, 2]], labels),
        }
        assert len(results) == 9
        assert {len(each) for each in results} == {32}
    with Ledger(path) as again:
        assert again.fingerprint(scores, labels) in results


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "at least one column"),
        ([[1.0, 2.0], [1.0]], r"one length, got shapes \[\(2,\), \(1,\)\]"),
        ([[[1.0]]], r"one length, got shapes \[\(1, 1\)\]"),
        ([[math.nan]], "finite numbers"),
        ([[2**53 + 1]], "whole ones below 2"),
    ],
)
def test_what_is_no_table_is_refused(path: Path, columns: list[Any], message: str) -> None:
    with Ledger(path) as ledger, pytest.raises(ValueError, match=message):
        ledger.fingerprint(*[np.array(column) for column in columns])


def test_neither_records_nor_asks_are_in_the_book(path: Path) -> None:
    scores, labels = np.array([0.123456789, 0.987654321]), np.array([0, 1])
    query = b"ranks of your records: 17, 42"
    with Ledger(path) as ledger:
        ledger.limit("registry", 1.0)
        records, request = ledger.fingerprint(scores, labels), entries.request_digest(query)
        ledger.debit(asked(fingerprint=records, request=request))
        stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert not any(
        secret in stored for secret in (scores.tobytes(), query, entries.request_digest(query))
    )


def test_only_the_owner_may_read(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.limit("registry", 1.0)
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    names = ("ledger.db", "ledger.db-shm", "ledger.db-wal", "ledger.db.key")
    assert modes == dict.fromkeys(names, 0o600)


@pytest.mark.parametrize("name", ["ledger.db", "ledger.db.key"])
def test_files_that_others_may_read_are_refused(path: Path, name: str) -> None:
    Ledger(path).close()
    path.with_name(name).chmod(0o640)
    with pytest.raises(entries.LedgerError, match=f"{name} must be its owner's only, got mode 640"):
        Ledger(path)


def test_a_book_without_its_key_can_be_read_and_not_continued(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.limit("registry", 1.0)
    path.with_name("ledger.db.key").unlink()
    with pytest.raises(entries.LedgerError, match=r"ledger\.db\.key is missing"):
        Ledger(path)
    with Ledger.open_readonly(path) as pages:
        assert pages.verify() == 1


def test_another_books_key_is_refused(path: Path) -> None:
    for each in (path, path.with_name("other.db")):
        Ledger(each).close()
    path.with_name("other.db.key").replace(path.with_name("ledger.db.key"))
    with pytest.raises(entries.LedgerError, match="is not the key of"):
        Ledger(path)


@pytest.mark.parametrize("content", [b"", b"score,label\n", b"SQLite format 3\0" + bytes(4080)])
def test_other_files_are_no_books(path: Path, content: bytes) -> None:
    Ledger(path).close()
    path.write_bytes(content)
    for make in (Ledger, Ledger.open_readonly):
        with pytest.raises(entries.LedgerError, match=r"db (is not|cannot be used as) a ledger"):
            make(path)


def test_a_book_that_is_not_there(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Ledger.open_readonly(path)
    with pytest.raises(FileNotFoundError) as missing:
        Ledger(path / "deeper")
    assert missing.value.filename == str(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset": ""}, "dataset must be 1 to 200 printable characters, got ''"),
        ({"session": "x" * 201}, "session must be 1 to 200 printable"),
        ({"step": "a\nb"}, "step must be 1 to 200 printable"),
        ({"request": b"short"}, "request must have 32 bytes, got 5"),
        ({"fingerprint": b""}, "fingerprint must have 32 bytes, got 0"),
        ({"cost": Cost(0.0)}, "a cost must name its adjacency"),
    ],
)
def test_others_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        asked(**change)


DAY = 86_400.0
COSTS = (
    Cost(0.1, adjacency=RECORD),
    Cost(0.25, 1e-6, RECORD, 0.01),
    Cost(0.5, 1e-7, RECORD),
    Cost(0.7, adjacency=Adjacency.LABEL),
    UNPROTECTED,
)


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
def test_it_adds_up_the_period(steps: list[tuple[int, Cost, int]], period: int | None) -> None:
    span = None if period is None else period * entries.MICROSECOND
    window = Window(entries.Limit("registry", 1.0, period=span))
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
    limit = entries.Limit("registry", 1.0)
    assert amount(Cost(1 + 9e-10, adjacency=RECORD), RECORD).within(limit)
    assert not amount(Cost(1 + 2e-9, adjacency=RECORD), RECORD).within(limit)


def test_a_clock_that_goes_back_does_not_free_budget(path: Path, clock: Clock) -> None:
    with Ledger(path, clock) as ledger:
        ledger.limit("registry", 2.0, period=timedelta(days=1))
        ledger.debit(asked("first"))
        clock.seconds = 1e9 - 3650 * DAY
        ledger.debit(asked("second"))
    with Ledger(path, clock) as ledger:
        with pytest.raises(entries.LimitError):
            ledger.debit(asked("after a restart"))
        lines = ledger.lines()
        assert {line.time for line in lines} == {10**15}
        assert lines[-1].clock == (10**9 - 3650 * 86400) * 10**6
        ledger.verify()


@pytest.mark.parametrize("seconds", [math.nan, -1.0, math.inf, 1e15])
def test_a_senseless_clock_stops_the_book(ledger: Ledger, clock: Clock, seconds: float) -> None:
    ledger.limit("registry", 2.0)
    clock.seconds = seconds
    with pytest.raises(entries.LedgerError, match="seconds from 1970 to 9999, got"):
        ledger.debit(asked("first"))
    clock.seconds = 1e9
    assert ledger.debit(asked("first")).number == 2
