"""Records that change between two steps: the next one is declined, earlier debits stand."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tacit.crypto.identities import Identity
from tacit.running.session import party_file, run_records
from tacit.running.session.coordinator import Coordinator, RunError
from tests.running import desks


def in_duckdb(home: Path, what: str = 'table = "scored"') -> None:
    """Put party a's records into a database, of which its file then names a table or a query."""
    folder = home / "a"
    file = folder / "party.toml"
    csv = party_file.PartyFile.read(file).records
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE scored AS FROM read_csv('{csv}')")
    name_records(file, f'records = "duckdb://clinic.duckdb"\n{what}')


def name_records(file: Path, lines: str) -> None:
    """Let a party's file name other records."""
    desks.edited(file, ('file = "records.csv"', lines))


def one_more_record(home: Path) -> None:
    with duckdb.connect(str(home / "a" / "clinic.duckdb")) as connection:
        connection.execute("INSERT INTO scored SELECT * FROM scored LIMIT 1")


def carried_with_a_change(home: Path, identity: Identity, rounds: int) -> Coordinator:
    coordinator = desks.coordinated(home, identity)
    messages = desks.advanced(home, coordinator, rounds)
    one_more_record(home)
    desks.advanced(home, coordinator, messages=messages)
    return coordinator


def paid(home: Path) -> float:
    return sum(line.epsilon for line in desks.messages_in(home))


def test_changed_records_are_declined_and_debits_stand(tmp_path: Path) -> None:
    identity = desks.federation(tmp_path, desks.HISTOGRAM)
    in_duckdb(tmp_path, 'query = "SELECT * FROM scored WHERE score >= 0"')
    with pytest.raises(RunError, match=run_records.CHANGED_RECORDS):
        carried_with_a_change(tmp_path, identity, rounds=6)
    assert 0 < paid(tmp_path) < 0.5


def test_records_that_change_before_a_run_are_answered(tmp_path: Path) -> None:
    identity = desks.federation(tmp_path, desks.ONE_SUM)
    in_duckdb(tmp_path)
    assert carried_with_a_change(tmp_path, identity, rounds=0).server_result


def test_a_plan_or_message_never_shows_the_user_of_a_database(tmp_path: Path) -> None:
    desks.federation(tmp_path, desks.ONE_SUM)
    file = tmp_path / "a" / "party.toml"
    name_records(file, 'records = "postgresql://reader@h/d"\ntable = "t"\npassfile = "secret"')
    assert str(party_file.PartyFile.read(file).records) == "table t of postgresql://h/d"
