"""Records that change between two steps: the next one is declined, earlier debits stand."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tacit.crypto.identities import Identity
from tacit.ledger.ledger import Ledger
from tacit.running.session.coordinator import Coordinator, RunError
from tacit.running.session.party.party_file import PartyFile
from tacit.running.session.party.service import CHANGED_RECORDS
from tacit.running.session.toml_source import PlanError
from tests.running.deployment.federation_files import HISTOGRAM, federation
from tests.running.session.party.test_service import carried, coordinated, desks_of, reopened


def in_duckdb(home: Path, what: str = 'table = "scored"') -> None:
    """Put party a's records into a database, of which its file then names a table or a query."""
    folder = home / "a"
    file = folder / "party.toml"
    csv = PartyFile.read(file).records
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE scored AS FROM read_csv('{csv}')")
    name_records(file, f'records = "duckdb://clinic.duckdb"\n{what}')


def name_records(file: Path, lines: str) -> None:
    """Let a party's file name other records."""
    text = file.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("file"))
    file.write_text(text.replace(line, lines), encoding="utf-8")


def one_more_record(home: Path) -> None:
    with duckdb.connect(str(home / "a" / "clinic.duckdb")) as connection:
        connection.execute("INSERT INTO scored SELECT * FROM scored LIMIT 1")


def carried_with_a_change(home: Path, identity: Identity, rounds: int) -> Coordinator:
    coordinator = coordinated(home, identity)
    desks_of(home)
    messages = coordinator.open()
    for number in range(100):
        if number == rounds:
            one_more_record(home)
        for index, message in messages.items():
            coordinator.receive(index, reopened(home, index).answer(message))
        messages = coordinator.close()
        if not messages:
            break
    return coordinator


def paid(home: Path) -> float:
    with Ledger(home / "a" / "ledger.db") as ledger:
        ledger.verify()
        return sum(line.epsilon or 0.0 for line in ledger.lines() if line.step is not None)


def test_a_party_reads_a_database(tmp_path: Path) -> None:
    identity = federation(tmp_path, HISTOGRAM)
    in_duckdb(tmp_path)
    assert carried(tmp_path, identity).server_result is not None
    assert paid(tmp_path) == pytest.approx(1.0)


def test_changed_records_are_declined_and_debits_stand(tmp_path: Path) -> None:
    identity = federation(tmp_path, HISTOGRAM)
    in_duckdb(tmp_path)
    with pytest.raises(RunError, match=CHANGED_RECORDS):
        carried_with_a_change(tmp_path, identity, rounds=6)
    assert 0 < paid(tmp_path) < 0.5


def test_a_query_that_returns_other_rows_at_the_second_step_is_declined(tmp_path: Path) -> None:
    identity = federation(tmp_path, HISTOGRAM)
    in_duckdb(tmp_path, 'query = "SELECT * FROM scored WHERE score >= 0"')
    with pytest.raises(RunError, match=CHANGED_RECORDS):
        carried_with_a_change(tmp_path, identity, rounds=6)
    assert 0 < paid(tmp_path) < 0.5


def test_records_that_change_before_a_run_are_answered(tmp_path: Path) -> None:
    identity = federation(tmp_path, HISTOGRAM)
    in_duckdb(tmp_path)
    assert carried_with_a_change(tmp_path, identity, rounds=0).server_result is not None


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('records = "postgresql://a:secret@h/d"\ntable = "t"', "a password must not be part of"),
        ('records = "mysql://h/d"\ntable = "t"', "records must begin with postgresql://"),
        ('records = "duckdb://x"', "records needs table or query, one of them"),
        ('records = "duckdb://x"\ntable = "t"\nfile = "y"', "file and records"),
        ('file = "y"\ntable = "t"', "table needs records, the address of a database"),
    ],
)
def test_what_a_party_file_cannot_say(lines: str, sentence: str, tmp_path: Path) -> None:
    federation(tmp_path, HISTOGRAM)
    file = tmp_path / "a" / "party.toml"
    text = file.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("file"))
    file.write_text(text.replace(line, lines), encoding="utf-8")
    with pytest.raises(PlanError, match=sentence) as caught:
        PartyFile.read(file)
    assert "secret" not in str(caught.value)


def test_a_plan_or_message_never_shows_the_user_of_a_database(tmp_path: Path) -> None:
    federation(tmp_path, HISTOGRAM)
    file = tmp_path / "a" / "party.toml"
    text = file.read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("file"))
    named = 'records = "postgresql://reader@h/d"\ntable = "t"\npassfile = "secret"'
    file.write_text(text.replace(line, named), encoding="utf-8")
    read = PartyFile.read(file)
    assert str(read.records) == "table t of postgresql://h/d"
