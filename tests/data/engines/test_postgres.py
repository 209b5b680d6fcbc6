"""A real PostgreSQL: the same figures as records in memory, rights, changes, lost connections."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import ignore_patterns

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.data.engines.connections import PostgresEngine
from tacit.data.engines.opening import from_database, public_address
from tacit.data.engines.pieces import ConstantTable
from tacit.data.reading import read
from tacit.protocol import Clients, DataError
from tacit.running.session.party_file import PartyFile, read_records
from tacit.running.session.run_records import UnreadableError
from tests.data.engines.conftest import (
    SCRIPT,
    TERMINATED,
    Server,
    check_ranked,
    check_same,
    example,
)
from tests.data.engines.test_duckdb import PROTOCOLS, in_memory, table
from tests.running import desks
from tests.running.session.test_stored_records import FILE, spent


def filled(server: Server, records: int = 500) -> Clients:
    made = table(records)
    server.fill("scored", made)
    return in_memory(made)


@pytest.mark.parametrize("kind", ["numeric", "double precision"])
@pytest.mark.parametrize("label", ["boolean", "smallint", "numeric"])
def test_types_of_columns(kind: str, label: str, postgres: Server) -> None:
    postgres.run(f"CREATE TABLE public.t (score {kind}, label {label})")
    texts = ("true", "false") if label == "boolean" else ("1", "0")
    for score, text in ((0.3, texts[0]), (0.7, texts[1]), (0.3, texts[0])):
        postgres.run(f"INSERT INTO t VALUES ({score}, {text})")
    stored = from_database(postgres.address, "public.t")
    assert stored.counts_in(np.array([0.3, 0.5]))[:, :, 0].tolist() == [[0, 2, 0], [0, 0, 1]]


@pytest.fixture
def in_ascii(postgres: Server) -> Iterator[Server]:
    """A database whose texts are bytes to the server, without a word on their encoding."""
    postgres.run("DROP DATABASE IF EXISTS bytes WITH (FORCE)")
    postgres.run("CREATE DATABASE bytes ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    address = postgres.address.replace("owner@", f"owner:{postgres.password}@")
    server = Server(f"{address.rpartition('/')[0]}/bytes")
    yield server
    server.owner.close()
    postgres.run("DROP DATABASE bytes WITH (FORCE)")


@pytest.mark.parametrize("protocol", ["looks", "dpauc", "exact auc"])
def test_a_database_in_ascii_gives_the_figures_of_memory(protocol: str, in_ascii: Server) -> None:
    """Names of clients are UTF-8 there, also those beyond ASCII."""
    in_ascii.run("SET client_encoding = 'UTF8'")
    memory = filled(in_ascii)
    stored = from_database(in_ascii.address, "scored", client="site")
    assert stored.names == memory.names == ("B", "a", "x", "é")
    check_ranked(stored, memory, PROTOCOLS[protocol])
    party = from_database(in_ascii.address, "scored")
    assert sorted(party.scores.tolist()) == sorted(memory.scores.tolist())


def test_a_text_that_is_not_utf8_is_one_sentence(in_ascii: Server) -> None:
    in_ascii.run("CREATE TABLE scored (score real, label integer, site text)")
    in_ascii.run(r"INSERT INTO scored VALUES (0.5, 1, E'caf\351'), (0.4, 0, 'caf')")
    with pytest.raises(DataError, match="scored cannot be read: invalid byte sequence"):
        from_database(in_ascii.address, "scored", client="site")
    assert from_database(in_ascii.address, "scored").records == 2


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("NULL, 1", "column 'score' has no value in a record of postgresql://127.0.0.1"),
        ("0.5, NULL", "column 'label' has no value in a record of postgresql://127.0.0.1"),
        ("'NaN', 1", "scores must be finite numbers, got NaN in a record of"),
        ("0.5, 3", "labels must be 0 or 1, got 3 in a record of"),
    ],
)
def test_faults_are_named(row: str, sentence: str, postgres: Server) -> None:
    postgres.run("CREATE TABLE scored (score double precision, label integer)")
    postgres.run(f"INSERT INTO scored VALUES (0.1, 0), ({row})")
    with pytest.raises(DataError, match=sentence):
        from_database(postgres.address, "scored")


def test_sql_in_the_names_of_columns_and_tables_is_only_a_name(postgres: Server) -> None:
    filled(postgres, 10)
    score = 'score" FROM scored; DROP TABLE scored; --'
    with pytest.raises(DataError, match="has no column 'score\" FROM scored; DROP"):
        from_database(postgres.address, "scored", score=score)
    with pytest.raises(DataError, match="does not exist"):
        from_database(postgres.address, 'scored"; DROP TABLE scored; --')
    with pytest.raises(DataError, match="needs a table or a query, one of them"):
        from_database(postgres.address)
    assert from_database(postgres.address, "scored").records == 10


def test_a_session_only_reads(postgres: Server) -> None:
    filled(postgres, 10)
    postgres.run(
        "CREATE FUNCTION emptied() RETURNS SETOF scored LANGUAGE sql AS "
        "'DELETE FROM scored RETURNING *'"
    )
    with pytest.raises(DataError, match="in a read-only transaction"):
        from_database(postgres.address, query="SELECT * FROM emptied()")


def test_a_query_cannot_end_the_transaction_that_only_reads(postgres: Server) -> None:
    query = (
        "SELECT 0.5 AS score, 1 AS label) AS a; COMMIT; CREATE TABLE made (x integer); "
        "SELECT * FROM (SELECT 0.5 AS score, 1 AS label"
    )
    with pytest.raises(DataError, match="cannot insert multiple commands"):
        from_database(postgres.address, query=query)
    found = postgres.owner.execute("SELECT to_regclass('public.made')").fetchone()
    assert found == (None,)


def test_a_query_may_end_with_a_comment(postgres: Server) -> None:
    query = "SELECT 0.5 AS score, 1 AS label -- all of them"
    assert from_database(postgres.address, query=query).records == 1


def test_a_table_without_rights_is_named(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(postgres, 10)
    postgres.run("DROP ROLE IF EXISTS stranger")
    postgres.run("CREATE ROLE stranger LOGIN PASSWORD 'unlikely'")
    postgres.run("GRANT USAGE ON SCHEMA public TO stranger")
    monkeypatch.setenv("PGPASSWORD", "unlikely")
    address = postgres.address.replace("owner@", "stranger@")
    with pytest.raises(DataError, match="permission denied for table scored"):
        from_database(address, "scored")
    monkeypatch.setenv("PGPASSWORD", "wrong-secret")
    with pytest.raises(DataError, match="password authentication failed") as caught:
        from_database(address, "scored")
    assert "wrong-secret" not in str(caught.value)
    assert "stranger" not in str(caught.value)


@pytest.mark.parametrize("protocol", [tacit.ExactAUC(), tacit.FedAUC(2.0, trust="secure-sum")])
def test_a_server_sorts_ranks(protocol: tacit.Protocol, postgres: Server, no_room: None) -> None:
    """No record is kept in memory."""
    memory = filled(postgres)
    check_ranked(from_database(postgres.address, "scored", client="site"), memory, protocol)


def test_a_run_sees_one_state_of_the_table(postgres: Server) -> None:
    memory = filled(postgres)
    stored = from_database(postgres.address, "scored", client="site")
    postgres.run("INSERT INTO scored VALUES (0.5, 1, 'new')")
    check_same(stored, memory, tacit.ScoreHistogram(epsilon=1.0))


def test_a_view_of_another_type_and_another_number_of_rows_are_declined(postgres: Server) -> None:
    memory = filled(postgres)
    # two draws agree in records and positives of four sites with a probability below 10^-7
    postgres.run("CREATE VIEW changing AS SELECT * FROM scored WHERE random() < 0.5")
    stored = from_database(postgres.address, "changing", client="site")
    with pytest.raises(DataError, match="has other records each time it is read; order") as caught:
        tacit.evaluate(stored, tacit.ScoreHistogram(epsilon=1.0), 1)
    # whole numbers: the digits of a small count may be among those of the address
    said = set(map(int, re.findall(r"\d+", str(caught.value).replace("127.0.0.1", ""))))
    assert said.isdisjoint([stored.records, stored.positives, memory.records, memory.positives])
    postgres.run("CREATE VIEW typed AS SELECT score::text AS score, label FROM scored")
    with pytest.raises(DataError, match="must hold numbers, got type text"):
        from_database(postgres.address, "typed")


def test_a_lost_connection_is_one_sentence(postgres: Server) -> None:
    filled(postgres)
    stored = from_database(postgres.address, "scored")
    postgres.run(TERMINATED)
    with pytest.raises(DataError, match=r"scored cannot be read: .*terminat"):
        tacit.evaluate(stored, tacit.ScoreHistogram(epsilon=1.0), 1)


def test_a_connection_lost_in_the_middle_of_a_run_costs_a_party_nothing(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was debited before stands; the same message, sent again, is answered and paid once."""
    identity = desks.federation(tmp_path, desks.HISTOGRAM)
    records = read([str(PartyFile.read(tmp_path / "a" / "party.toml").records)])
    postgres.fill("scored", pa.table({"score": records.scores, "label": records.labels}))
    named = f'records = "{postgres.address}"\ntable = "scored"'
    desks.edited(tmp_path / "a" / "party.toml", (FILE, named))
    coordinator, lost = desks.coordinated(tmp_path, identity), list[float]()
    # masked numbers of the second sum: the first is debited, and records are read again
    messages = desks.advanced(tmp_path, coordinator, rounds=7)
    before, whole = spent(tmp_path), PostgresEngine.batches

    def interrupted(
        engine: PostgresEngine, statement: str, tables: Sequence[ConstantTable] = ()
    ) -> Iterator[pa.RecordBatch]:
        batches = whole(engine, statement, tables)
        yield next(batches)
        postgres.run(TERMINATED)
        lost.append(spent(tmp_path))
        yield from batches

    with monkeypatch.context() as patch:
        patch.setattr(PostgresEngine, "batch_rows", 50)
        patch.setattr(PostgresEngine, "batches", interrupted)
        with pytest.raises(UnreadableError, match=r"scored cannot be read: .*terminat"):
            desks.desk_of(tmp_path, 0).answer(messages[0])
    assert lost == [before]
    assert 0 < spent(tmp_path) == before
    desks.advanced(tmp_path, coordinator, messages=messages)
    assert coordinator.server_result
    assert spent(tmp_path) == pytest.approx(1.0)


IN_IT, MALFORMED = "a password must not be part of an address", "an address must have the form"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://reader:secret@127.0.0.1/clinic", IN_IT),
        ("postgresql://reader@127.0.0.1/clinic?password=secret", IN_IT),
        ("postgresql://reader:@127.0.0.1/clinic", IN_IT),
        ("ibis+clickhouse://reader@127.0.0.1/clinic?api_key=secret", IN_IT),
        ("postgresql://reader:sec/ret@127.0.0.1/clinic", MALFORMED),
        ("postgresql://reader:sec?ret@127.0.0.1/clinic", MALFORMED),
        ("postgresql://reader:sec#ret@127.0.0.1/clinic", MALFORMED),
        ("postgresql://reader:[sec@127.0.0.1/clinic", MALFORMED),
        ("postgresql://reader@127.0.0.1/clinic#sec", MALFORMED),
        ("host=127.0.0.1 password=secret", MALFORMED),
    ],
)
def test_addresses_that_may_hold_a_password_are_refused(address: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        from_database(address, "scored")
    assert "sec" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_address_is_shown_without_its_user() -> None:
    assert public_address("postgresql://reader@h:1/d?sslmode=require") == "postgresql://h:1/d"


def test_nobody_at_an_address_is_one_sentence() -> None:
    with pytest.raises(DataError, match=r"postgresql://127.0.0.1:1/clinic, table t cannot be read"):
        from_database("postgresql://reader@127.0.0.1:1/clinic", "t")


def test_the_example_makes_all_three_kinds_of_records(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SCRIPT.parent, tmp_path / "example", ignore=ignore_patterns(".tacit", "*.db"))
    home = tmp_path / "example"
    owner = postgres.address.replace("owner@", f"owner:{postgres.password}@")
    monkeypatch.setenv("TACIT_EXAMPLE_POSTGRES", owner)
    (home / "a" / "postgres").unlink(missing_ok=True)
    example().main(home)
    file = home / "a" / "party.toml"
    text = file.read_text(encoding="utf-8")
    address = postgres.address.replace("owner@", "reader@")
    changed = text.replace("postgresql://reader@127.0.0.1:54329/postgres", address)
    file.write_text(changed, encoding="utf-8")
    monkeypatch.delenv("PGPASSWORD")
    sizes = [read_records(PartyFile.read(home / name / "party.toml")).records for name in "abc"]
    assert sizes == [400, 420, 380]
