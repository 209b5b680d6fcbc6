"""A real server of PostgreSQL on a loopback port, started once a test process."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
import pytest

import tacit
from tacit.data.engines.stored import StoredClients
from tacit.protocol import Clients, Protocol
from tacit.running.deployment.flower_programs.programs import free_port

WITHOUT = "TACIT_TESTS_WITHOUT_POSTGRES"
"""Set to 1, tests run as on a machine without PostgreSQL."""

SCRIPT = Path(__file__).parents[3] / "examples" / "three-databases" / "make_databases.py"


def example() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(SCRIPT)))


TERMINATED = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND datname = current_database()"
)
"""Ends all other sessions: that of an earlier test, held by its error, may lock its tables."""


class Server:
    """The server, with a connection of its owner."""

    def __init__(self, address: str) -> None:
        import psycopg

        parts = urlsplit(address)
        self.password = str(parts.password)
        self.address = address.replace(f":{parts.password}@", "@")
        self.owner = psycopg.connect(address, autocommit=True)
        self.run("SET lock_timeout = '60s'")

    def run(self, statement: str, *values: Any) -> None:
        self.owner.execute(statement.encode(), values or None)

    def fill(self, name: str, records: pa.Table) -> None:
        """A table of records, whose columns are numbers, labels or texts."""
        usual = {"label": "integer"} | {
            field.name: "double precision"
            for field in records.schema
            if pa.types.is_floating(field.type)
        }
        columns = [f"{column} {usual.get(column, 'text')}" for column in records.column_names]
        self.run(f"CREATE TABLE {name} ({', '.join(columns)})")
        with self.owner.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
            for row in zip(*records.to_pydict().values(), strict=True):
                copy.write_row(row)


@pytest.fixture(scope="session")
def server_of_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if os.environ.get(WITHOUT) == "1":
        pytest.skip(f"{WITHOUT}=1: PostgreSQL is taken for not installed")
    script = example()
    if script.program("initdb") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    pytest.importorskip("psycopg", reason="no driver is installed: pip install tacit[postgres]")
    folder = tmp_path_factory.mktemp("postgres")
    server = Server(script.start_postgres(folder, free_port()))
    yield server
    server.owner.close()
    script.stop_postgres(folder)


@pytest.fixture
def postgres(server_of_postgres: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("PGPASSWORD", server_of_postgres.password)
    server_of_postgres.run(TERMINATED)
    server_of_postgres.run("DROP SCHEMA public CASCADE")
    server_of_postgres.run("CREATE SCHEMA public")
    return server_of_postgres


def database(file: Path, records: pa.Table, *more: str) -> str:
    """The address of a DuckDB database with the table ``scored``, after further statements."""
    with duckdb.connect(str(file)) as connection:
        connection.register("given", records)
        connection.execute("CREATE TABLE scored AS SELECT * FROM given")
        for statement in more:
            connection.execute(statement)
    return f"duckdb://{file}"


def check_same(stored: Clients, memory: Clients, protocol: Protocol) -> None:
    """Stored records give the result of those in memory under one seed, to the last bit."""
    one, other = (tacit.evaluate(each, protocol, 1).to_dict() for each in (memory, stored))
    assert one == other


def check_ranked(stored: Clients, memory: Clients, protocol: Protocol) -> None:
    """Ranks of stored records give the figures of those in memory, but for rounding."""
    one, other = (tacit.evaluate(each, protocol, 1) for each in (memory, stored))
    assert other.auc.value == pytest.approx(one.auc.value, abs=1e-12)
    assert other.auc.sampling_error == pytest.approx(one.auc.sampling_error, rel=1e-12)
    assert other.auc.privacy_error == pytest.approx(one.auc.privacy_error, rel=1e-12)
    assert other.traffic.bytes_sent.tolist() == one.traffic.bytes_sent.tolist()
    assert other.warnings == one.warnings


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """No stored record may be read into memory."""

    def loaded(stored: StoredClients) -> Clients:
        raise MemoryError

    monkeypatch.setattr(StoredClients, "_loaded", property(loaded))
