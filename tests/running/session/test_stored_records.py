"""A party's records in files, folders, databases and counts: one answer, and what ties a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import tacit
import tacit.protocol as tp
from tacit.data.engines import opening, relations, statements, stored
from tacit.data.engines.records import EngineRecords
from tacit.running.deployment import preview
from tacit.running.session import party_file, run_records
from tacit.running.session.coordinator import RunError
from tacit.running.session.plan_file import Plan
from tacit.running.session.toml_source import PlanError
from tests.data.engines.conftest import database
from tests.running import desks

FEDAUC = 'name = "fedauc"\nepsilon = 1.0\ntrust = "secure-sum"'
FILE = 'file = "records.csv"'
LOCAL = 'name = "two-round-auc"\nepsilon = 1.0'


def moved(home: Path, source: str) -> None:
    """Put party a's records where the source says, of which its file then names these keys."""
    folder = home / "a"
    table = csv.read_csv(folder / "records.csv")
    keys = {
        "large": 'file = "whole.parquet"',
        "pattern": 'file = "parts/part-[01].parquet"',
        "folder": 'file = "parts"',
        "duckdb": 'records = "duckdb://clinic.duckdb"\ntable = "scored"',
        "counts": 'counts = "counts.csv"',
    }
    (folder / "parts").mkdir()
    pq.write_table(table, folder / "whole.parquet")
    for part in range(2):
        pq.write_table(table.slice(35 * part, 35), folder / "parts" / f"part-{part}.parquet")
    more = []
    once = Plan.read(home / "plan.toml").protocol.one_count
    if once is not None:
        relation = relations.Relation(relations.DUCKDB, "scored", "score", "label")
        counted = statements.counting_statement(relation, once.edges, *once.ends, once.mark())
        more.append(f"COPY ({counted}) TO '{folder / 'counts.csv'}'")
    database(folder / "clinic.duckdb", table, *more)
    desks.edited(folder / "party.toml", (FILE, keys[source]))


def figures(home: Path, protocol: str, source: str = "") -> object:
    """The result of a federation without noise, whose party a has its records somewhere."""
    identity = desks.federation(home, protocol, limit=desks.UNLIMITED)
    if source:
        moved(home, source)
    return desks.carried(home, identity, tp.NoNoise()).server_result


SOURCES = ("large", "pattern", "folder", "duckdb", "counts")


@pytest.mark.parametrize(
    ("protocol", "source"),
    [
        (desks.HISTOGRAM, "duckdb"),
        *((desks.ONE_SUM, source) for source in SOURCES),
        (desks.RESPONSE, "pattern"),
        (desks.RESPONSE, "duckdb"),
        (FEDAUC, "folder"),
        (desks.FEDAUC, "duckdb"),
    ],
)
def test_records_that_stay_give_the_figures_of_records_in_memory(
    protocol: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No record is read into memory, but where a protocol sends something of each."""
    monkeypatch.setattr(opening, "LARGE_BYTES", 0)
    if protocol not in (FEDAUC, desks.FEDAUC):
        monkeypatch.setattr(stored.StoredClients, "_loaded", property(lambda _: 1 / 0))
    whole, made = (tmp_path / name for name in ("memory", "[stored]"))
    expected = figures(whole, protocol)
    assert repr(figures(made, protocol, source)) == repr(expected)


def a_record_more(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("INSERT INTO scored SELECT * FROM scored LIMIT 1")


def two_labels_swapped(connection: duckdb.DuckDBPyConnection) -> None:
    """As many records and positives as before, and the same least and largest score."""
    connection.execute(
        "UPDATE scored SET label = 1 - label WHERE score IN "
        "(SELECT max(score) FILTER (label = 1) FROM scored WHERE score < 0.6 UNION "
        "SELECT max(score) FILTER (label = 0) FROM scored WHERE score < 0.6)"
    )


def another_order(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE OR REPLACE TABLE scored AS FROM scored ORDER BY -score")


@pytest.mark.parametrize("protocol", [desks.HISTOGRAM, LOCAL])
@pytest.mark.parametrize("change", [a_record_more, two_labels_swapped, another_order])
def test_a_table_that_changes_between_two_messages_is_declined_before_it_is_paid_for(
    protocol: str,
    change: Callable[[duckdb.DuckDBPyConnection], None],
    tmp_path: Path,
) -> None:
    """Not so the same records in another order, which a database may return."""
    identity = desks.federation(tmp_path, protocol)
    moved(tmp_path, "duckdb")
    coordinator = desks.coordinated(tmp_path, identity)
    later = desks.advanced(tmp_path, coordinator, 6 if protocol == desks.HISTOGRAM else 2)
    with duckdb.connect(str(tmp_path / "a" / "clinic.duckdb")) as connection:
        change(connection)
    before = spent(tmp_path)
    with contextlib.suppress(RunError):
        desks.advanced(tmp_path, coordinator, messages=later)
    changed = change is not another_order
    assert coordinator.declined == ({0: run_records.CHANGED_RECORDS} if changed else {})
    assert spent(tmp_path) == before or not changed


def spent(home: Path) -> float:
    return sum(line.epsilon for line in desks.messages_in(home))


def test_a_run_never_sorts_and_opens_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that reads records passes over them once; they are known by another name."""
    passes = []
    for name in ("__init__", "ascending", "counts", "batches"):
        whole = getattr(EngineRecords, name)

        def noted(*given: Any, _name: str = name, _whole: Any = whole, **named: Any) -> Any:
            passes.append(_name)
            return _whole(*given, **named)

        monkeypatch.setattr(EngineRecords, name, noted)
    identity = desks.federation(tmp_path, desks.HISTOGRAM)
    moved(tmp_path, "duckdb")
    desks.carried(tmp_path, identity)
    # the first message, and the masked numbers of each of three sums, or four, as the noise is
    assert passes.count("__init__") == passes.count("batches") in (4, 5), " ".join(passes)
    assert (passes.count("ascending"), passes.count("counts")) == (0, 3)
    desks.edited(tmp_path / "a" / "party.toml", ('dataset = "registry"', 'dataset = "renamed"'))
    coordinator = desks.coordinated(tmp_path, identity)
    with pytest.raises(RunError):
        desks.advanced(tmp_path, coordinator)
    assert "contradicts an earlier one" in coordinator.declined[0]


def test_records_have_one_fingerprint_wherever_they_are(tmp_path: Path) -> None:
    scores = np.array([0.5, -0.0, 0.0, 0.5, 0.25, 0.5])
    memory = tacit.Clients.from_arrays(scores, [1, 1, 0, 0, 1, 1])
    table = pa.table({"score": scores[::-1], "label": memory.labels[::-1]})
    there = opening.from_database(database(tmp_path / "r.duckdb", table), "scored")
    assert there.marks(bytes(32))[0] == memory.marks(bytes(32))[0]
    with tacit.Ledger(tmp_path / "ledger.db") as ledger:
        listed = ledger.fingerprint(memory.labels[::-1], scores[::-1])
        assert ledger.fingerprint(scores, memory.labels) == memory.marks(ledger.record_key)[0]
        assert listed != memory.marks(ledger.record_key)[0]
    by_class = np.array([scores, 1 - scores])
    table = pa.table({"a": by_class[0], "b": by_class[1], "group": memory.labels})
    memory = tacit.Clients.from_classes(by_class.T, memory.labels, ("0", "1"))
    classes: dict[str, Any] = {"scores": ("a", "b"), "label": None, "group": "group"}
    address = database(tmp_path / "c.duckdb", table)
    there = opening.from_database(address, "scored", **classes, group_names=("0", "1"))
    assert there.marks(bytes(32))[0] == memory.marks(bytes(32))[0]


def test_records_in_percent_stay_in_a_database(tmp_path: Path) -> None:
    desks.federation(tmp_path, desks.ONE_SUM)
    moved(tmp_path, "duckdb")
    file = tmp_path / "a" / "party.toml"
    desks.edited(file, ('table = "scored"', 'table = "scored"\nunit = "percent"'))
    assert not party_file.read_records(party_file.PartyFile.read(file)).at_hand


def test_a_plan_that_needs_more_than_counts_is_refused_with_the_setting_that_would_do(
    tmp_path: Path,
) -> None:
    desks.federation(tmp_path, desks.HISTOGRAM)
    moved(tmp_path, "counts")
    with pytest.raises(PlanError, match="agree on a plan with height = 10, which counts once, or"):
        preview.check_records(desks.desk_of(tmp_path, 0))
    assert desks.desk_of(tmp_path, 0).misfit[0] == party_file.ONLY_COUNTS


@pytest.mark.parametrize("key", ["file", "table", "person", "class"])
def test_keys_that_do_not_go_with_counts_are_named(key: str, tmp_path: Path) -> None:
    desks.federation(tmp_path, desks.ONE_SUM)
    file = tmp_path / "a" / "party.toml"
    desks.edited(file, (FILE, f'counts = "counts.csv"\n{key} = "x"'))
    with pytest.raises(PlanError, match=f"{key} and counts, a file of counts, cannot both"):
        party_file.PartyFile.read(file)


def test_a_plan_or_message_never_shows_the_user_of_a_database(tmp_path: Path) -> None:
    desks.federation(tmp_path, desks.ONE_SUM)
    file = tmp_path / "a" / "party.toml"
    named = 'records = "postgresql://reader@h/d"\ntable = "t"\npassfile = "secret"'
    desks.edited(file, (FILE, named))
    assert str(party_file.PartyFile.read(file).records) == "table t of postgresql://h/d"
