"""Tampering with a ledger shows."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tacit import Adjacency, Cost, Ledger
from tacit.ledger.entries import COLUMNS, LedgerError
from tests.ledger.children import entry

ENTRIES = 6
HALF = Cost(0.5, 1e-6, Adjacency.RECORD, 0.01)
VALUES: dict[str, list[Any]] = {
    "kind": ["refusal", "limit", "other"],
    "time": [0, 10**18],
    "clock": [0],
    "dataset": ["elsewhere", "Registry", None],
    "epsilon": [0.0, 0.4999999999999999, 0, None, "0.5"],
    "delta": [1e-300, -0.0],
    "rho": [0.0, None],
    "adjacency": ["label", None],
    "fingerprint": [b"1" * 32, None, "0" * 32],
    "protocol": ["fedauc"],
    "step": ["1"],
    "session": ["another"],
    "request": [b"1" * 32],
    "period": [1],
    "accounting": ["basic"],
    "reason": ["LimitError", ""],
    "hash": [bytes(32), b""],
    "number": [100],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed ledger of a limit and five debits."""
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.limit("registry", 10.0, 1e-3)
        for number in range(1, ENTRIES):
            ledger.debit(entry(f"run {number}", cost=HALF))
    return path


def edit(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement, values in statements:
            connection.execute(statement, values)


def insert(path: Path, *rows: tuple[Any, ...]) -> None:
    insertion = f"INSERT INTO entries VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    edit(path, *[(insertion, row) for row in rows])


def rows(path: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT * FROM entries ORDER BY number").fetchall()


def complaint(path: Path, head: bytes | None = None) -> str:
    with Ledger.open_readonly(path) as pages, pytest.raises(LedgerError) as result:
        pages.verify(head)
    return str(result.value)


@pytest.mark.parametrize(("column", "value"), [(c, v) for c in VALUES for v in VALUES[c]])
def test_a_changed_value_is_found(path: Path, column: str, value: Any) -> None:
    assert VALUES.keys() == set(COLUMNS)
    change = f"UPDATE entries SET {column} = ? WHERE number = 3"  # noqa: S608
    edit(path, (change, (value,)))
    assert "entry 3" in complaint(path)


def test_no_more_is_debited_in_a_book_that_was_changed(path: Path) -> None:
    """Also where it is changed while it is open, once it is read again."""
    change = "UPDATE entries SET epsilon = 0.0 WHERE number = ?"
    with Ledger(path) as ledger:
        assert ledger.debit(entry("before", cost=HALF)).number == ENTRIES + 1
        edit(path, (change, (ENTRIES + 1,)))
        with pytest.raises(LedgerError, match="does not verify"):
            ledger.debit(entry("after", cost=HALF))
    edit(path, (change, (3,)))
    with Ledger(path) as ledger:
        for _ in range(2):
            with pytest.raises(LedgerError, match="does not verify: entry 3 was changed"):
                ledger.debit(entry("last", cost=HALF))
        with pytest.raises(LedgerError, match="does not verify"):
            ledger.limit("registry", 100.0)


REORDERED = {
    "removed": ["DELETE FROM entries WHERE number = 3"],
    "removed and renumbered": [
        "DELETE FROM entries WHERE number = 3",
        "UPDATE entries SET number = -number WHERE number > 3",
        "UPDATE entries SET number = -number - 1 WHERE number < 0",
    ],
    "swapped": [
        "UPDATE entries SET number = -3 WHERE number = 3",
        "UPDATE entries SET number = 3 WHERE number = 4",
        "UPDATE entries SET number = 4 WHERE number = -3",
    ],
}


@pytest.mark.parametrize("way", REORDERED)
def test_removed_and_reordered_entries_are_found(path: Path, way: str) -> None:
    edit(path, *((statement, ()) for statement in REORDERED[way]))
    said = "entry 3 is missing" if way == "removed" else "entry 3 was changed"
    assert said in complaint(path)


def test_an_inserted_entry_and_those_of_another_book_are_found(path: Path) -> None:
    other = path.with_name("other.db")
    Ledger(other).close()
    insert(other, *rows(path))
    assert "entry 1 was changed" in complaint(other)
    insert(path, (ENTRIES + 1, *rows(path)[3][1:]))
    assert f"entry {ENTRIES + 1} was changed" in complaint(path)


def test_an_end_that_was_cut_off_shows_against_a_head_noted_before(path: Path) -> None:
    with Ledger.open_readonly(path) as pages:
        head = pages.head
        heads = [line.hash for line in pages.lines()]
    edit(path, ("DELETE FROM entries WHERE number = ?", (ENTRIES,)))
    with Ledger.open_readonly(path) as pages:
        assert pages.verify() == ENTRIES - 1
        assert pages.verify(heads[2]) == ENTRIES - 1
    assert f"none of its {ENTRIES - 1} entries has the head {head.hex()}" in complaint(path, head)


def test_a_book_written_anew_shows_against_a_head_noted_before(path: Path) -> None:
    """Whoever may write may write a ledger whose chain is right; its heads are others."""
    with Ledger.open_readonly(path) as pages:
        head, chain, lines = pages.head, pages._first_hash, pages.lines()
    changes = []
    for line in lines:
        less = replace(line, epsilon=line.epsilon / 2)
        chain = less.chained(chain)
        statement = "UPDATE entries SET epsilon = ?, hash = ? WHERE number = ?"
        changes.append((statement, (less.epsilon, chain, line.number)))
    edit(path, *changes)
    with Ledger.open_readonly(path) as pages:
        assert pages.verify() == ENTRIES
    assert "has the head" in complaint(path, head)


def test_a_forged_line_that_no_program_writes_is_found(path: Path) -> None:
    with Ledger.open_readonly(path) as pages:
        last = pages.lines()[-1]
    for change in ({"time": last.time - 1}, {"kind": "gift"}, {"session": None}, {"epsilon": -9.0}):
        forged = replace(last, number=last.number + 1, **change)
        forged = replace(forged, hash=forged.chained(last.hash))
        values = tuple(getattr(forged, name) for name in COLUMNS)
        edit(path, ("DELETE FROM entries WHERE number = ?", (forged.number,)))
        insert(path, values)
        assert "is not one this program writes" in complaint(path)


def test_the_chain_is_what_its_document_says(path: Path) -> None:
    """Computed again from the file alone, by the rule in docs/guides/ledger.md."""
    with closing(sqlite3.connect(path)) as connection:
        _, name, key_check = connection.execute("SELECT * FROM identity").fetchone()
    before = sha256(b"tacit ledger 1 identity" + name + key_check).digest()
    for *values, result in rows(path):
        plain = [value.hex() if isinstance(value, bytes | float) else value for value in values]
        text = json.dumps(plain, separators=(",", ":")).encode()
        before = sha256(b"tacit ledger 1" + before + text).digest()
        assert result == before


def test_a_damaged_file_is_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-2000:] = bytes(2000)
    path.write_bytes(content)
    assert "ledger.db" in complaint(path)


@pytest.mark.parametrize("writable", [True, False])
def test_a_copy_is_read_also_where_nothing_can_be_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "ledger.db").write_bytes(path.read_bytes())
    folder.chmod(0o755 if writable else 0o555)
    monkeypatch.setattr("tacit.ledger.files.os.access", lambda place, mode: writable)
    with Ledger.open_readonly(folder / "ledger.db") as pages:
        assert pages.verify() == ENTRIES
        assert writable or [file.name for file in folder.iterdir()] == ["ledger.db"]
    folder.chmod(0o755)
