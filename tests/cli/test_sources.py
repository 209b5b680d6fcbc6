"""``tacit evaluate`` of counts that ``tacit sql`` asked for, and requests to terminate."""

from __future__ import annotations

import gc
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tacit.data.engines.connections import DuckDBEngine
from tacit.data.engines.pieces import ConstantTable
from tests.cli.examples import counts_file
from tests.data.engines.test_duckdb import parts, table
from tests.terminal import content_of, run, succeeded

HISTOGRAM = ("--protocol", "score-histogram", "--epsilon", "1")


def test_the_statement_and_its_counts(tmp_path: Path) -> None:
    parts(tmp_path, table(), 1)
    records, counts = tmp_path / "part-0.parquet", tmp_path / "counts.csv"
    counts_file(records, counts)
    made = succeeded(run("evaluate", "--counts", counts, *HISTOGRAM, "--seed", 1, "--json"))
    assert "counts answer one round: score-histogram runs in its form" in made.stderr
    alone = content_of("evaluate", records, "--height", 10, *HISTOGRAM, "--seed", 1)
    assert json.loads(made.stdout)["auc"]["value"] == alone["auc"]["value"]


def test_termination_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may hold records that an engine sorts."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    made = list[str]()
    whole = DuckDBEngine.batches

    def terminated(
        engine: DuckDBEngine, statement: str, tables: Sequence[ConstantTable] = ()
    ) -> Iterator[pa.RecordBatch]:
        made.extend(each.name for each in temporary.iterdir())
        signal.raise_signal(signal.SIGTERM)
        return whole(engine, statement, tables)

    monkeypatch.setattr(DuckDBEngine, "batches", terminated)
    before = signal.getsignal(signal.SIGTERM)
    assert run("evaluate", parts(tmp_path, table()), "--protocol", "exact").exit_code == 130
    gc.collect()
    assert len(made) == 1
    assert list(temporary.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is before
