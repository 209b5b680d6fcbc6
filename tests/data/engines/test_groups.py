"""Private groups of stored records: counted where they are, as those of records in memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import Result

import tacit
from tacit.data.engines.counts_file import CountedRecords
from tacit.data.engines.opening import from_database
from tacit.data.engines.stored import StoredClients
from tests.classified import GROUPS, group_clients
from tests.data.engines.conftest import database
from tests.terminal import run, succeeded

ALL = group_clients(600, clients=3)
BY_WARD: dict[str, Any] = {"client": "site", "group": "ward", "group_names": GROUPS}


def records() -> pa.Table:
    assert ALL.categories is not None
    sites, wards = ALL.client_of_record.astype(str), np.array(GROUPS)[ALL.categories.of_record]
    return pa.table({"score": ALL.scores, "label": ALL.labels, "site": sites, "ward": wards})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with the table ``scored``, and a Parquet file beside it."""
    path = tmp_path / "records.duckdb"
    database(path, records(), f"COPY scored TO '{path.with_suffix('.parquet')}'")
    return path


@pytest.mark.parametrize(
    ("change", "names", "message"),
    [
        ("", ("x", "y"), "'z' in a record of .* is none of x, y"),
        ("UPDATE scored SET ward = NULL WHERE label = 1", GROUPS, "column 'ward' has no value"),
        ("ALTER TABLE scored DROP COLUMN ward", GROUPS, "no column 'ward'"),
        ("", ("x", "y", "z'; --"), 'cannot be called "z\'; --"'),
    ],
)
def test_groups_are_refused(change: str, names: tuple[str, ...], message: str, file: Path) -> None:
    with duckdb.connect(str(file)) as opened:
        opened.execute(change or "SELECT 1")
    with pytest.raises(tacit.DataError, match=message):
        from_database(f"duckdb://{file}", "scored", group="ward", group_names=names)


def test_counts_by_group_are_summed_in_other_cells() -> None:
    edges = np.array([0.25, 0.5, 0.75])
    by_cell = ALL.counts_in(edges, by_group=True)
    counted = StoredClients(CountedRecords(edges, by_cell, groups=GROUPS))
    assert np.array_equal(counted.counts_in(edges, by_group=True), by_cell)
    assert np.array_equal(counted.counts_in(edges), ALL.counts_in(edges))
    half = np.array([0.5])
    assert np.array_equal(counted.counts_in(half, True), ALL.counts_in(half, True))
    assert np.array_equal(counted.sizes, ALL.sizes)
    assert int(counted.positives) == ALL.positives


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_public_groups_come_in_the_order_of_memory(kind: pa.DataType, tmp_path: Path) -> None:
    wards = pa.array(np.arange(60) % 3 + 9).cast(kind)
    table = pa.table({"score": np.arange(60) / 60, "label": np.arange(60) % 2, "ward": wards})
    stored = from_database(database(tmp_path / "a.duckdb", table), "scored", group="ward")
    expected = tacit.Groups.from_arrays(wards.to_numpy(zero_copy_only=False)).names
    assert stored.category_names == expected


def counted(file: Path, arguments: tuple[str, ...]) -> Result:
    """The result of ``tacit evaluate --counts`` on what DuckDB answers to ``tacit sql``."""
    named = ("--protocol", "grouped-histogram", "--group-names", "x,y,z")
    source = ("--engine", "duckdb", "--table", "scored", "--client", "site")
    made = run("sql", *named, *source, "--private-group", "ward")
    answer = file.with_suffix(".counts.csv")
    with duckdb.connect(str(file)) as opened:
        opened.execute(f"COPY ({made.output.rstrip().rstrip(';')}) TO '{answer}' (HEADER)")
    return run("evaluate", "--counts", answer, *arguments)


def test_groups_that_a_statement_counted_have_their_figures(file: Path) -> None:
    named = ("--protocol", "grouped-histogram", "--group-names", "x,y,z", "--trust", "exact-sum")
    made = succeeded(counted(file, (*named, "--height", "10", "--json")))
    groups = json.loads(made.stdout)["groups"]
    exact = tacit.GroupedHistogram("exact-sum", height=10, group_names=GROUPS)
    expected = tacit.evaluate(ALL, exact).to_dict()["groups"]
    assert [each["measures"] for each in groups] == [each["measures"] for each in expected]


def test_counts_of_other_groups_and_of_none_are_refused(file: Path) -> None:
    named = ("--protocol", "grouped-histogram", "--epsilon", "1", "--group-names")
    made = counted(file, (*named, "z,y,x"))
    assert made.exit_code != 0
    assert "has counts in the cells" in made.output
    plain = run("sql", *named[:2], "--table", "t", "--group-names", "x,y")
    assert "--protocol grouped-histogram needs --private-group" in plain.output
