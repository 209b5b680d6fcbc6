"""Debits of a ledger beside bare SQLite and the disk: ``python -m benchmarks.ledger``."""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.timing import clock, paired, row
from tacit.ledger.entries import Entry
from tacit.ledger.ledger import Ledger
from tacit.privacy.cost import Adjacency, Cost

DEBITS, TIMES, OLD = 1000, 5, 20_000
LINE_BYTES = 400


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the ledger lies; its disk is measured")
    parser.add_argument("--old", type=int, default=OLD, help="debits in the ledger that is opened")
    options = parser.parse_args()
    print("\n".join(lines(folder=options.folder, old=options.old)), flush=True)


def lines(
    debits: int = DEBITS, times: int = TIMES, folder: Path | None = None, old: int = OLD
) -> list[str]:
    """Debits against inserts of rows as long, and against appending to a file with fdatasync."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        here = Path(made)
        with Ledger(here / "book.db") as book:
            book.limit("registry", epsilon=1e9)
            numbers = count()
            debited = partial(debit, book, numbers, debits)
            ledger_seconds, insert_seconds, ratio = paired(
                debited, partial(insert, here, debits), times
            )
            _, synced, to_disk = paired(debited, partial(append, here, debits), times)
            note = f"{debits / ledger_seconds:,.0f} a second"
            rows = [
                row(f"{debits:,} debits", ledger_seconds, note),
                row(
                    "  bare inserts",
                    insert_seconds,
                    f"{debits / insert_seconds:,.0f} a second, ratio {ratio:.2f}",
                ),
                row(
                    "  write and fdatasync",
                    synced,
                    f"{debits / synced:,.0f} a second, ratio {to_disk:.2f}",
                ),
            ]
        return rows + reopening(here / "old.db", old)


def debit(book: Ledger, numbers: count[int], debits: int) -> None:
    """One after the other, each durable before the next."""
    for _ in range(debits):
        book.debit(entry(next(numbers)))


def entry(number: int) -> Entry:
    cost = Cost(0.01, adjacency=Adjacency.RECORD)
    return Entry("registry", bytes(32), "dpauc", "0 noisy_cells", f"run {number}", bytes(32), cost)


def insert(folder: Path, rows: int) -> None:
    """Rows as long as a line of the ledger, a durable transaction each, in a table of their own."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS lines (number INTEGER PRIMARY KEY, line)")
    for _ in range(rows):
        connection.execute("INSERT INTO lines (line) VALUES (?)", (bytes(LINE_BYTES),))
    connection.close()


def append(folder: Path, writes: int) -> None:
    """What the disk itself allows: two pages at the end of a file, and a wait for them."""
    file = os.open(folder / "appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(writes):
        os.write(file, bytes(8192))
        os.fdatasync(file)
    os.close(file)


def reopening(path: Path, debits: int) -> list[str]:
    """The first and a later debit in a ledger that has many entries, whose chain is followed
    once."""
    with Ledger(path) as book:
        book.limit("registry", epsilon=1e9)
        debit(book, count(), debits)
    with Ledger(path) as book:
        first = clock(partial(book.debit, entry(debits)))
        later = clock(partial(debit, book, count(debits + 1), DEBITS)) / DEBITS
    size = path.stat().st_size / debits
    return [
        row(f"first debit after {debits:,}", first, f"{size:,.0f} bytes an entry"),
        row("  a later one", later, f"{1 / later:,.0f} a second"),
    ]


if __name__ == "__main__":
    main()
