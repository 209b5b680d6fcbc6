"""Persons of stored records: the records that count are those of the same records in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.data.engines.opening import from_database, from_files
from tacit.data.persons import SEED_BYTES, PersonWarning
from tacit.protocol import Clients, DataError
from tests.classified import GROUPS
from tests.data.engines.conftest import Server, check_same, database
from tests.terminal import content_of, run

SEED = bytes(range(SEED_BYTES))
BY: dict[str, Any] = {"client": "site", "person": "who"}
OWNERLESS = "table scored has no value in some records: every record needs a person$"
SETTINGS = ["--protocol", "score-histogram", "--height", 6]


def visits(records: int = 600) -> pa.Table:
    """Records of persons with one to many visits, many of them equal, in any order.

    Of each person only at one site: a person at two is on the screen.
    """
    rng = np.random.default_rng(7)
    who = rng.integers(0, 80, records) ** 2 // 80
    scores, labels = rng.integers(0, 12, records) / 11, rng.integers(0, 2, records)
    sites = np.array(["b", "é", "it's"])[who % 3]
    wards = np.array(GROUPS)[rng.integers(0, 3, records)]
    blanks = " \t\n\xa0\x1c\u2003"
    texts = [f"{each}{blanks[index % 7 :]}" for index, each in enumerate(who)]
    return pa.table({"score": scores, "label": labels, "site": sites, "ward": wards, "who": texts})


ALL = visits()


def in_order(records: pa.Table, **by: Any) -> Clients:
    """In memory, in the order in which an engine gives a person's records places."""
    order = np.lexsort((records["label"].to_numpy(), records["score"].to_numpy()))
    return Clients.from_frame(records.take(order), **(by or BY))


def check_counted(stored: Clients, memory: Clients, most: int) -> None:
    """The same records count, by their values, at every client."""
    one, other = (each.counted(most, SEED)[0] for each in (memory, stored))
    assert one.names == other.names
    assert one.sizes.tolist() == other.sizes.tolist()
    for client in range(one.count):
        parts = [each.part(client, client + 1) for each in (one, other)]
        expected, found = (sorted(zip(each.scores, each.labels, strict=True)) for each in parts)
        assert expected == found


def opened(kind: str, records: pa.Table, folder: Path, request: pytest.FixtureRequest) -> Clients:
    """The records where an engine reads them."""
    if kind == "postgres":
        postgres: Server = request.getfixturevalue("postgres")
        postgres.fill("scored", records)
        return from_database(postgres.address, "scored", **BY)
    if kind == "files":
        for site in pc.unique(records["site"]).to_pylist():
            part = records.filter(pc.equal(records["site"], site))
            pq.write_table(part, folder / f"{site}.parquet")
        return from_files([str(folder / "*.parquet")], person="who")
    if kind == "integers":
        numbers = pa.array([int(each.strip()) for each in records["who"].to_pylist()])
        records = records.set_column(records.column_names.index("who"), "who", numbers)
    return from_database(database(folder / "a.duckdb", records), "scored", **BY)


@pytest.mark.parametrize("kind", ["duckdb", "integers", "files", "postgres"])
def test_the_same_records_count(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """By one seed, for rows in another order; also of all clients as one."""
    records = ALL.take(np.random.default_rng(1).permutation(len(ALL)))
    stored, memory = opened(kind, records, tmp_path, request), in_order(ALL)
    for most in (1, 2, 5):
        check_counted(stored, memory, most)
    check_counted(stored.pooled(), in_order(ALL, person="who"), 2)


@pytest.mark.usefixtures("no_room")
@pytest.mark.parametrize(
    "protocol", [tacit.ScoreHistogram("secure-sum", 2.0), tacit.DPAUC(4.0), tacit.FedAUC(4.0)]
)
def test_a_result_is_that_of_records_in_memory(protocol: tacit.Protocol, tmp_path: Path) -> None:
    stored = from_database(database(tmp_path / "a.duckdb", ALL), "scored", **BY)
    check_same(stored, in_order(ALL), protocol)


def test_private_groups_follow_their_records(tmp_path: Path) -> None:
    """The groups of what counts are those of the records, and others do not change the draw."""
    grouped: dict[str, Any] = {"group": "ward", "group_names": GROUPS}
    address = database(tmp_path / "a.duckdb", ALL)
    plain = from_database(address, "scored", **BY).counted(2, SEED)[0]
    counted = from_database(address, "scored", **BY, **grouped).counted(2, SEED)[0]
    by_group = counted.counts_in(np.array([0.5]), by_group=True)
    assert by_group.sum(axis=0).tolist() == plain.counts_in(np.array([0.5])).tolist()
    read_in = counted.part(0, counted.count)
    assert read_in.categories is not None
    found = np.bincount(read_in.categories.of_record).tolist()
    assert by_group.sum(axis=(1, 2, 3)).tolist() == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE scored SET who = NULL WHERE label = 1", OWNERLESS),
        ("UPDATE scored SET who = ' ' WHERE label = 1", OWNERLESS),
        ("UPDATE scored SET who = CHR(9) || CHR(160) WHERE label = 1", OWNERLESS),
        (
            "ALTER TABLE scored ALTER who TYPE DOUBLE USING score",
            "must hold integers or strings, got type num",
        ),
        ("ALTER TABLE scored DROP COLUMN who", "no column 'who'"),
    ],
)
def test_other_persons_are_refused_uncounted(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        from_database(database(tmp_path / "a.duckdb", ALL, change), "scored", **BY)


def test_persons_at_two_clients_are_counted_on_the_screen(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """At each of them as many records count as of others."""
    sites = pc.if_else(pc.less(ALL["score"], 0.5), "z", ALL["site"])
    moved = ALL.set_column(2, "site", sites)
    with pytest.warns(PersonWarning, match="^57 persons with records at two clients or more"):
        stored, memory = opened("duckdb", moved, tmp_path, request), in_order(moved)
    check_counted(stored, memory, 1)


def test_groups_at_hand_of_records_in_a_database_are_refused(tmp_path: Path) -> None:
    stored = from_database(database(tmp_path / "a.duckdb", ALL), "scored", **BY)
    groups = tacit.Groups.from_arrays(ALL["ward"].to_numpy())
    with pytest.raises(DataError, match="need the records in memory"):
        tacit.evaluate_groups(stored, groups, tacit.FedAUC(1.0), per_person=2)


def test_a_statement_of_a_warehouse_counts_as_many_records_of_a_person(tmp_path: Path) -> None:
    """Its key is fresh; its counts are for a run about so many records of a person only."""
    options = ["--table", "scored", "--client", "site", "--person", "who", "--per-person", 2]
    first, second = (run("sql", *SETTINGS, *options, "--engine", "duckdb").stdout for _ in range(2))
    assert first != second
    files = counts, ownerless = tmp_path / "counts.csv", tmp_path / "ownerless.csv"
    database(tmp_path / "a.duckdb", ALL)
    with duckdb.connect(tmp_path / "a.duckdb") as connection:
        connection.execute(f"COPY ({first.rstrip().rstrip(';')}) TO '{files[0]}'")
        connection.execute("UPDATE scored SET who = NULL WHERE label = 1")
        connection.execute(f"COPY ({second.rstrip().rstrip(';')}) TO '{files[1]}'")
    asked = ["evaluate", *SETTINGS, "--epsilon", 8, "--counts"]
    content = content_of(*asked, counts, "--per-person", 2, "--seed", 1)
    assert content["person"]["records"] == 2
    refused = {
        (counts,): "these settings need",
        (counts, "--per-person", 3): "these settings need",
        (ownerless, "--per-person", 2): "or is missing",
    }
    for source, message in refused.items():
        done = run(*asked, *source)
        assert done.exit_code == 2
        assert message in done.stderr
