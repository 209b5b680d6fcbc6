"""Tables of Ibis, on DuckDB and on Spark: the figures of records in memory, and bad input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.api import clients_of
from tacit.data.engines import ibis_tables
from tacit.data.engines.opening import DatabaseTable, from_database
from tacit.data.errors import DataError
from tests.data.engines.conftest import check_ranked, check_same, database
from tests.data.engines.test_persons import check_counted, in_order, visits
from tests.data.engines.test_sums import check_sums, zoomed_scale

ibis = pytest.importorskip("ibis", reason="needs Ibis: pip install 'tacit[ibis]'")
pytest.importorskip("pyarrow_hotfix", reason="needs Ibis' own extra: ibis-framework[duckdb]")

RECORDS = visits()
BARE = [each.strip() for each in RECORDS["who"].to_pylist()]
RECORDS = RECORDS.append_column("bare", pa.array(BARE))
pytestmark = [  # Ibis calls what DuckDB and pandas will no longer have; Spark leaves sockets open
    pytest.mark.filterwarnings(f"ignore:{words}")
    for words in (
        "fetch_arrow_table",
        "The copy keyword",
        "unclosed",
        "Exception ignored",
    )
]


@pytest.fixture(scope="module", autouse=True)
def no_session_left() -> Iterator[None]:
    """Tests of clusters have sessions of other settings, and would get this one."""
    yield
    if "pyspark.sql" in sys.modules:
        session = sys.modules["pyspark.sql"].SparkSession.getActiveSession()
        if session is not None:
            session.stop()


def on_spark(file: Path) -> Any:
    sql = pytest.importorskip("pyspark.sql", reason="needs Spark: pip install 'tacit[spark]'")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    session = sql.SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    session.read.parquet(str(file)).createOrReplaceTempView("scored")
    return ibis.pyspark.connect(session).sql("SELECT *, 0 AS class FROM scored")


def on_duckdb(file: Path) -> Any:
    connection = ibis.duckdb.connect()
    connection.raw_sql(f"CREATE TABLE scored AS SELECT *, 0 AS class FROM '{file}'")
    return connection.table("scored")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(RECORDS, tmp_path / "scored.parquet")
    return tmp_path / "scored.parquet"


@pytest.mark.parametrize(
    ("engine", "plain"),
    [
        (on_duckdb, True),
        (on_duckdb, False),
        pytest.param(on_spark, False, marks=pytest.mark.slow),
        pytest.param(on_spark, True, marks=pytest.mark.slow),
    ],
)
def test_a_warehouse_gives_the_figures_of_records_in_memory(
    engine: Callable[[Path], Any], plain: bool, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by plain SQL, as for an engine that ``tacit`` has no dialect of."""
    if plain:
        monkeypatch.setattr(ibis_tables, "DIALECTS", {})
        monkeypatch.setattr(ibis_tables, "SAME", {})
    # plain SQL has no word for every blank
    given, memory, who = engine(file), in_order(RECORDS), "bare" if plain else "who"
    stored, persons = (clients_of(given, client="site", person=name) for name in (None, who))
    assert (stored.names, stored.ends) == (memory.names, memory.ends)
    check_counted(persons, memory, 2)
    memory = replace(memory, persons=None)
    check_same(stored, memory, tacit.ScoreHistogram(epsilon=1.0, height=5))
    check_ranked(stored, memory, tacit.FedAUC(epsilon=1.0))
    for scores in (memory.scores[:40], np.nextafter(memory.scores[:40], 1)):
        edges = np.sort(scores)
        assert np.array_equal(stored.counts_in(edges), memory.counts_in(edges))
    check_sums(stored, memory, zoomed_scale(), 16)


@pytest.mark.slow
def test_the_id_of_the_only_client_is_no_sql(file: Path) -> None:
    """Two quotation marks in a text are none to Spark."""
    alone = RECORDS.set_column(2, "site", pa.array(["it's"] * RECORDS.num_rows))
    pq.write_table(alone, file)
    check_counted(clients_of(on_spark(file), client="site", person="who"), in_order(alone), 2)


def test_a_party_reads_a_warehouse_at_an_address(tmp_path: Path) -> None:
    address = f"ibis+{database(tmp_path / 'a.duckdb', RECORDS)}"
    assert from_database(address, "main.scored", client="site").names == in_order(RECORDS).names
    party = DatabaseTable("ibis+duckdb://a.duckdb", "scored").at(tmp_path)
    assert (party.address, str(party)) == (address, f"table scored of {address}")
    assert from_database(party.address, party.table).records == RECORDS.num_rows


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "value": ("", {"table": "wrong"}, "labels must be 0 or 1, got 2 in a record of ibis.duckdb:/"),
    "column": ("", {"table": "scored", "score": "risk"}, "has no column 'risk', its columns are "),
    "kind": ("", {"table": "scored", "score": "site"}, "must hold numbers, got type text"),
    "id": ("", {"table": "scored", "client": "score"}, "must hold integers or strings, got type n"),
    "table": ("", {"table": "none"}, "table none cannot be read: none"),
    "draws": ("", {"table": "drawn"}, "table drawn has other records each time it is read; order"),
    "two": ("", {"query": "SELECT 1; DROP TABLE scored"}, "the query must be one SELECT statement"),
    "writes": ("", {"query": "DROP TABLE scored"}, "the query must be one SELECT statement"),
    "token": ("?access_token=x", {"table": "a"}, "must not be part .*: set TACIT_DATABASE_PASSW"),
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_input_is_one_sentence(case: str, tmp_path: Path) -> None:
    address = database(
        tmp_path / "a.duckdb",
        RECORDS,
        "CREATE VIEW wrong AS SELECT score, label + 1 AS label FROM scored",
        "CREATE VIEW drawn AS SELECT * FROM scored WHERE random() < 0.5",
    )
    more, named, sentence = WRONG[case]
    with pytest.raises(DataError, match=sentence):
        from_database(f"ibis+{address}{more}", **named).counts_in(np.array([0.5]))
