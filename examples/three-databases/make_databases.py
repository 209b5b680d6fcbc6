"""Make the three parties' synthetic records: python make_databases.py [FOLDER].

Hospital ``a`` has them in PostgreSQL, ``b`` in a database of DuckDB, ``c`` in Parquet files. For
``a`` a server of PostgreSQL is started, which listens on this machine alone, with its data in a
temporary folder that ``a/postgres`` names. Where the environment variable
``TACIT_EXAMPLE_POSTGRES`` has the address of another
server, as ``postgresql://owner@127.0.0.1:5432/clinic``, the table is made there, and the address
belongs into ``a/party.toml``. Stop the server with: python make_databases.py stop [FOLDER].
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.random import default_rng

PORT = 54329
"""The port in a/party.toml."""

HOSPITALS = {"a": (400, 0.30), "b": (420, 0.25), "c": (380, 0.35)}
"""Records, and the share of positive labels."""

PLACES = ("/usr/local/bin", "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
"""Where PostgreSQL's programs are, beside the folders of PATH."""


def program(name: str) -> str | None:
    """Where a program of PostgreSQL is; None where it is not installed."""
    location = shutil.which(name)
    for place in PLACES:
        root, pattern = Path("/"), place.lstrip("/")
        location = location or next((str(path / name) for path in root.glob(pattern)), None)
    return location


def records(seed: int, size: int, share: float) -> pa.Table:
    """Scores and labels; positives score higher by one deviation."""
    random = default_rng(seed)
    labels = (random.random(size) < share).astype(np.int64)
    scores = 1 / (1 + np.exp(-random.normal(1.2 * labels - 0.6, 1.0)))
    return pa.table({"score": np.round(scores, 4), "label": labels})


def as_server(folder: Path, *command: str) -> None:
    """Run a program of PostgreSQL, which refuses to run as root."""
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", "postgres", str(folder)], check=True)
        command = ("runuser", "-u", "postgres", "--", *command)
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")


def start_postgres(folder: Path, port: int = PORT) -> str:
    """Start a server whose data are in a new folder, and return its owner's address."""
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    if initdb is None or pg_ctl is None:
        sys.exit("PostgreSQL is not installed: apt-get install postgresql, or set an address")
    # its processes must be able to enter the folder, which a home of root's does not allow
    home = Path(tempfile.mkdtemp(prefix="tacit-postgres-"))
    home.chmod(0o755)
    data = home / "data"
    data.mkdir()
    password = secrets.token_hex(16)
    secret = home / "password"
    secret.touch(mode=0o600)
    secret.write_text(password, encoding="utf-8")
    access = ("-U", "owner", "-A", "scram-sha-256", f"--pwfile={secret}")
    as_server(home, initdb, "-D", str(data), "-E", "UTF8", *access)
    secret.unlink()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    log = data / "log"
    as_server(data, pg_ctl, "-D", str(data), "-w", "-l", str(log), "-o", options, "start")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "postgres").write_text(str(data), encoding="utf-8")
    return f"postgresql://owner:{password}@127.0.0.1:{port}/postgres"


def stop_postgres(folder: Path) -> None:
    """Stop the server that ``start_postgres`` started, and remove its data."""
    note = folder / "postgres"
    if not note.exists():
        sys.exit("no server of PostgreSQL was started from here")
    data = Path(note.read_text(encoding="utf-8"))
    as_server(data, program("pg_ctl") or "pg_ctl", "-D", str(data), "-m", "fast", "-w", "stop")
    shutil.rmtree(data.parent, ignore_errors=True)
    note.unlink()


def fill_postgres(address: str, table: pa.Table, folder: Path) -> None:
    """Write a table, and a role that may read it, whose password is in ``pgpass``."""
    import psycopg

    password = secrets.token_hex(16)
    rows = list(zip(table["score"].to_pylist(), table["label"].to_pylist(), strict=True))
    with psycopg.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS scored")
        cursor.execute("CREATE TABLE scored (score double precision, label integer)")
        cursor.executemany("INSERT INTO scored VALUES (%s, %s)", rows)
        cursor.execute("SELECT FROM pg_roles WHERE rolname = 'reader'")
        verb = "ALTER" if cursor.rowcount else "CREATE"
        cursor.execute(f"{verb} ROLE reader LOGIN PASSWORD '{password}'")
        cursor.execute("GRANT USAGE ON SCHEMA public TO reader")
        cursor.execute("GRANT SELECT ON scored TO reader")
    secret = folder / "pgpass"
    secret.touch(mode=0o600)
    secret.write_text(f"*:*:*:reader:{password}\n", encoding="utf-8")


def fill_duckdb(file: Path, table: pa.Table) -> None:
    """Write a table into a new database of DuckDB."""
    import duckdb

    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        connection.register("records", table)
        connection.execute("CREATE TABLE scored AS SELECT * FROM records")


def main(folder: Path) -> None:
    """Write all three parties' records into their folders."""
    if find_spec("psycopg") is None:
        sys.exit("the driver of PostgreSQL is not installed: pip install 'tacit[postgres]'")
    tables = {name: records(seed, *size) for seed, (name, size) in enumerate(HOSPITALS.items())}
    for name in HOSPITALS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    fill_duckdb(folder / "b" / "records.duckdb", tables["b"])
    pq.write_table(tables["c"], folder / "c" / "records.parquet")
    given = os.environ.get("TACIT_EXAMPLE_POSTGRES")
    if (folder / "a" / "postgres").exists():
        sys.exit("the server of PostgreSQL runs already: python make_databases.py stop")
    fill_postgres(given or start_postgres(folder / "a"), tables["a"], folder / "a")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    stops = arguments[:1] == ["stop"]
    place = arguments[1:] if stops else arguments
    chosen = Path(place[0]) if place else Path(__file__).resolve().parent
    if stops:
        stop_postgres(chosen / "a")
    else:
        main(chosen)
