"""Counts that somebody else made: the figures of the records, and files that are refused."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import tacit
from tacit.data.engines.connections import DuckDBEngine, parquet_table
from tacit.data.engines.counts_file import CountedRecords, read_counts
from tacit.data.engines.relations import DUCKDB, Relation
from tacit.data.engines.statements import counting_statement
from tacit.data.engines.stored import StoredClients
from tacit.protocol import Clients, DataError, Protocol
from tacit.protocols.published.dpauc import PublishedDPAUC
from tests import known
from tests.data.engines.conftest import check_same
from tests.data.engines.test_duckdb import in_memory, table

EDGES = np.array([0.25, 0.5])
HEADER = "client,class,cell,records,total,cells\n"

PROTOCOLS: dict[str, Protocol] = {
    "looks": tacit.ScoreHistogram(epsilon=1.0),
    "exact sum": tacit.ScoreHistogram("exact-sum", height=6),
    "log-odds": tacit.ScoreHistogram(epsilon=1.0, scale="log-odds", height=5),
    "dpauc": tacit.DPAUC(epsilon=2.0),
    "confusion": PublishedDPAUC(epsilon=2.0, thresholds=9),
}


def counted(folder: Path, records: pa.Table, protocol: Protocol, client: str | None) -> Path:
    """What a site's administrator gets from the statement."""
    file, answer = folder / "records.parquet", folder / "counts.csv"
    pq.write_table(records, file)
    once = known(protocol.one_count)
    relation = Relation(DUCKDB, parquet_table([str(file)]), "score", "label", client)
    statement = counting_statement(relation, once.edges, *once.ends, once.mark())
    rows = DuckDBEngine("records", files=[str(file)]).rows(statement)
    with answer.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened).writerows([HEADER.strip().split(","), *rows])
    return answer


def read(file: Path, protocol: Protocol) -> tuple[Protocol, Clients]:
    once = known(protocol.one_count)
    return once.protocol, read_counts(str(file), once.edges, once.mark(), once.ends)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_counts_give_the_figures_of_the_records(name: str, tmp_path: Path) -> None:
    records, protocol = table(), PROTOCOLS[name]
    once, clients = read(counted(tmp_path, records, protocol, "site"), protocol)
    assert clients.names == in_memory(records).names
    check_same(clients, in_memory(records), once)


def test_a_total_may_be_written_with_a_point(tmp_path: Path) -> None:
    """As pandas writes a sum of a type that it takes for a float."""
    protocol = PROTOCOLS["looks"]
    file = counted(tmp_path, table(), protocol, None)
    file.write_text(file.read_text().replace(",4000,", ",4000.0,"))
    _, clients = read(file, protocol)
    assert (clients.names, clients.records) == (("counts",), 4000)


def test_a_protocol_that_needs_records_says_so(tmp_path: Path) -> None:
    protocol = PROTOCOLS["looks"]
    _, clients = read(counted(tmp_path, table(), protocol, None), protocol)
    with pytest.raises(DataError, match="only counts of these records are known"):
        tacit.evaluate(clients, tacit.FedAUC(epsilon=1.0), 1)
    with pytest.raises(DataError, match="counted in cells without an edge at"):
        tacit.evaluate(clients, tacit.DPAUC(1.0, 100), 1)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("", "has no counts"),
        ("a,1,0,5,5,other\n", "has counts in the cells 'other', and these settings need '3-mark'"),
        ("a,1,3,5,5,3-mark\n", "a cell from 0 to 2 and records above 0, got 1, 3 and 5"),
        ("a,1,0,0,0,3-mark\n", "records above 0, got 1, 0 and 0"),
        ("a,1,0,many,5,3-mark\n", "must have whole numbers as class, cell and records"),
        ("a,1,0,5.0,5,3-mark\n", "must have whole numbers as class, cell and records"),
        ("a,1,0,1_0,10,3-mark\n", "must have whole numbers as class, cell and records"),
        ("a,1,0,\u0665,5,3-mark\n", "must have whole numbers as class, cell and records"),
        (f"a,1,0,{'9' * 5000},5,3-mark\n", "must have whole numbers as class, cell and records"),
        ("a,1,0,-5,-5,3-mark\n", "records above 0, got 1, 0 and -5"),
        ("a,1,0,5,11,3-mark\na,1,0,6,11,3-mark\n", "row 2 counts a cell that another row counted"),
        ("a,-1,0,5,5,3-mark\n", "labels must be 0 or 1: .*, row 1 counts 5 records"),
        ("a,1,-1,7,7,3-mark\n", "scores must be finite and in their range: .* counts 7 records"),
        ("a,1\n", "a record must have 6 fields, got 2"),
        ("a,1,0,5,9,3-mark\n", "counts 5 records and row 1 states '9' for all rows: rows are"),
        ("a,1,0,5,7,3-mark\na,0,0,2,,3-mark\n", "counts 7 records and row 2 states ''"),
        ("a,1,0,3,7,3-mark\n,0,1,4,7,3-mark\n", "has records of no client together with those of"),
        (
            "".join(f"a,{cell % 2},{cell // 2},{2**52},{2**54},3-mark\n" for cell in range(4)),
            f"must count fewer than {2**53} records, got {2**54}",
        ),
        ("a,1,0,5,5,3-mark,6\n", "a record must have 6 fields, got 7"),
        (f"{HEADER.strip()},records\na,1,0,5,5,x,6\n", "must have one column 'records', got 2"),
        ("client,class\na,1\n", "must have one column 'cell', got 0: counts have"),
    ],
)
def test_files_of_another_form_are_refused(rows: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(rows if "class" in rows else HEADER + rows, encoding="utf-8")
    with pytest.raises(DataError, match=sentence):
        read_counts(str(file), EDGES, "3-mark")


def test_a_file_that_lost_any_of_its_rows_is_refused(tmp_path: Path) -> None:
    protocol = PROTOCOLS["exact sum"]
    whole = counted(tmp_path, table(300), protocol, "site")
    lines = whole.read_text(encoding="utf-8").splitlines()
    for left_out in (1, len(lines) // 2, len(lines) - 1):
        fewer = lines[:left_out] + lines[left_out + 1 :]
        whole.write_text("\n".join(fewer) + "\n", encoding="utf-8")
        with pytest.raises(DataError, match="rows are missing or were changed"):
            read(whole, protocol)


def test_counted_cells_are_put_together() -> None:
    by_cell = np.arange(1, 13).reshape(2, 3, 2)
    clients = StoredClients(CountedRecords(EDGES, by_cell))
    assert np.array_equal(clients.counts_in(EDGES), by_cell)
    both = clients.counts_in(np.array([0.0, 0.5, 2.0]))
    empty = np.zeros((2, 2), dtype=np.int64)
    merged = np.stack([empty, by_cell[:, :2].sum(axis=1), by_cell[:, 2], empty], axis=1)
    assert np.array_equal(both, merged)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        (np.ones((2, 2, 1), dtype=np.int64), r"must have shape \(2, 3, K\)"),
        (-np.ones((2, 3, 1), dtype=np.int64), "whole numbers of at least 0"),
        (np.ones((2, 3, 1)), "whole numbers of at least 0"),
        (np.zeros((2, 3, 1), dtype=np.int64), "client 0 has no records"),
    ],
)
def test_counts_that_cannot_be(counts: NDArray[Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        CountedRecords(EDGES, counts)


def test_names_of_columns_may_be_in_capitals(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(HEADER.upper() + ",1,2,3,7,x\n,0,0,4,7,x\n", encoding="utf-8")
    assert read_counts(str(file), EDGES, "x").positives == 3
