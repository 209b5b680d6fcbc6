"""``tacit evaluate`` of patterns, databases and counts, and ``tacit sql``."""

from __future__ import annotations

import gc
import json
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from tacit.data.engines.connections import DuckDBEngine
from tacit.data.engines.statements import ConstantTable
from tests.data.engines.conftest import database
from tests.data.engines.test_duckdb import parts, table
from tests.terminal import content_of, run

HISTOGRAM = ("--protocol", "score-histogram", "--epsilon", "1")


def value(*arguments: str) -> float:
    return float(content_of("evaluate", *arguments)["auc"]["value"])


def test_patterns_folders_and_databases_give_the_same_figure(tmp_path: Path) -> None:
    pattern, address = parts(tmp_path, table()), database(tmp_path / "clinic.duckdb", table())
    more = ("--client", "site", *HISTOGRAM, "--height", "5", "--seed", "1")
    figures = {
        value(pattern, *more),
        value(str(tmp_path), *more),
        value(address, "--table", "scored", *more),
        value(address, "--query", "SELECT * FROM scored", *more),
    }
    assert len(figures) == 1
    assert 0 < value(pattern, "--split", "4", *HISTOGRAM, "--seed", "1") < 1


def test_the_statement_and_its_counts(tmp_path: Path) -> None:
    address = database(tmp_path / "clinic.duckdb", table())
    arguments = ("--table", "scored", "--protocol", "score-histogram", "--engine", "duckdb")
    statement = run("sql", *arguments).stdout
    counts = tmp_path / "counts.csv"
    with duckdb.connect(address.removeprefix("duckdb://"), read_only=True) as connection:
        connection.sql(statement).write_csv(str(counts))
    made = run("evaluate", "--counts", str(counts), *HISTOGRAM, "--seed", "1", "--json")
    assert made.exit_code == 0, made.output
    assert "counts answer one round: score-histogram runs in its form" in made.stderr
    one_round = ("--height", "10", *HISTOGRAM, "--seed", "1")
    figure = float(json.loads(made.stdout)["auc"]["value"])
    assert figure == value(address, "--table", "scored", *one_round)


def test_groups_and_classes_take_patterns_and_folders(tmp_path: Path) -> None:
    records = table().append_column("other", pa.array([0.5] * 4000))
    pattern = parts(tmp_path, records)
    settings = ("--protocol", "exact", "--groups", "site")
    made = [run("evaluate", source, *settings) for source in (pattern, str(tmp_path))]
    assert [each.exit_code for each in made] == [0, 0], made[0].output
    classes = ("--scores", "score,other", "--classes", "0,1", "--trust", "exact-sum")
    found = run("evaluate", pattern, "--protocol", "multiclass-histogram", *classes)
    assert found.exit_code == 0, found.output


def test_a_request_to_terminate_leaves_no_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
