"""Statements of DuckDB that are interrupted, or whose temporary files find no space."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.data.engines.connections import DuckDBEngine
from tacit.data.errors import DataError

ENDLESS = "SELECT sum(hash(a.i + b.i)) FROM range(1000000000) a(i), range(1000000000) b(i)"
SORT = "SELECT hash(i)::VARCHAR || hash(i + 1)::VARCHAR AS text FROM range(1000000) r(i) ORDER BY 1"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises: a program that a shell starts in the background ignores it otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("how", ["rows", "batches"])
def test_an_interrupt_ends_a_statement_as_any_other_work(how: str) -> None:
    """The system ends the statement: without the interrupt it would run for years."""
    engine = DuckDBEngine("the table")
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(getattr(engine, how)(ENDLESS))
    timer.join()
    assert engine.rows("SELECT 1") == [(1,)]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Limits of every engine: those of an open one cannot be changed."""
    limits, connected = ["threads = 1"], duckdb.connect

    def limited(name: str, config: dict[str, Any]) -> duckdb.DuckDBPyConnection:
        connection = connected(name, config=config)
        for limit in limits:
            connection.execute(f"SET {limit}")
        return connection

    monkeypatch.setattr(duckdb, "connect", limited)
    return limits


COUNTED = f"SELECT count(text), max(text) FROM ({SORT} LIMIT 900000)"


@pytest.mark.usefixtures("limits")
def test_more_than_fits_into_memory_is_sorted_by_files() -> None:
    """The same statement fails without temporary files, in the next test."""
    assert DuckDBEngine("the table", memory=20).rows(COUNTED)[0][0] == 900_000


def test_a_full_disk_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: list[str]
) -> None:
    """A limit of the engine stands for the size of a disk, which a test cannot set."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    limits.append("max_temp_directory_size = '1MB'")
    engine = DuckDBEngine("the table", memory=20)
    with pytest.raises(DataError, match=f"no space is left in {tmp_path} for the engine") as raised:
        engine.rows(COUNTED)
    assert "TMPDIR" in str(raised.value)
    del engine, raised
    gc.collect()  # the error's frames refer to each other
    assert list(tmp_path.iterdir()) == []


def test_many_processors_have_memory_each(limits: list[str]) -> None:
    limits.append("threads = 64")
    engine = DuckDBEngine("the table")
    settings = "SELECT current_setting('threads'), current_setting('memory_limit')"
    assert engine.rows(settings) == [(8, "762.9 MiB")]
    # 64 threads with the memory of two end this for want of memory
    ordered = "SELECT random() AS score FROM range(5000000) ORDER BY score"
    assert sum(batch.num_rows for batch in engine.batches(ordered)) == 5_000_000


def test_too_little_memory_is_named_with_what_takes_less() -> None:
    engine = DuckDBEngine("the table", memory=3)
    with pytest.raises(DataError, match=r"Out of Memory.* MiB used.*; read fewer records, or"):
        engine.rows(COUNTED)
