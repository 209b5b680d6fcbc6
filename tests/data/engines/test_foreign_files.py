"""Files of somebody else: views, macros and names that would read other files or settings."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.data.engines.connections import DuckDBEngine
from tacit.data.engines.opening import from_database, from_files
from tacit.data.errors import DataError

PRIVATE = "private-key"

READING = {
    "text": "SELECT content FROM read_text('{folder}/*.key')",
    "blob": "SELECT content FROM read_blob('{folder}/ledger.key')",
    "csv": "SELECT column0 FROM read_csv('{folder}/ledger.key', header = false)",
    "json": "SELECT json FROM read_json_objects('{folder}/ledger.json')",
    "parquet": "SELECT value FROM read_parquet('{folder}/ledger.parquet')",
    "names": "SELECT string_agg(file) FROM glob('{folder}/*')",
    "database": "SELECT value FROM read_duckdb('{folder}/other.duckdb')",
    "url": "SELECT content FROM read_text('file://{folder}/ledger.key')",
    "text as a query": "FROM query('SELECT content FROM read_text(''{folder}/*.key'')')",
    "above the temporary folder": (
        "SELECT content FROM read_text(current_setting('temp_directory') || '/..{folder}/*.key')"
    ),
    "above the database": "SELECT content FROM read_text('{folder}/folder/../ledger.key')",
    "proxy": "SELECT current_setting('http_proxy')",
    "home": "SELECT string_agg(value) FROM duckdb_settings()",
    "secrets": "SELECT string_agg(name) FROM duckdb_secrets()",
}
"""What a view may try: each shows the private word without the engine's settings."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with private files, and an environment with private words."""
    home = tmp_path / f"home-{PRIVATE}"
    home.mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "ledger.key").write_text(PRIVATE, encoding="utf-8")
    (tmp_path / "ledger.json").write_text(f'{{"value": "{PRIVATE}"}}', encoding="utf-8")
    (tmp_path / f"{PRIVATE}.txt").touch()
    pq.write_table(pa.table({"value": [PRIVATE]}), tmp_path / "ledger.parquet")
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute(f"CREATE TABLE kept AS SELECT '{PRIVATE}' AS value")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HTTP_PROXY", f"http://user:{PRIVATE}@127.0.0.1:1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "folder"))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE PERSISTENT SECRET \"{PRIVATE}\" (TYPE http, BEARER_TOKEN 'x')")
    return tmp_path


def database(folder: Path, *statements: str) -> Path:
    """A file that somebody else made elsewhere: nothing in it was evaluated here."""
    file = folder / "scored.duckdb"
    with duckdb.connect(str(file)) as connection:
        for statement in statements:
            connection.execute(statement)
    return file


RECORDS = "SELECT i / 9 AS score, i % 2 AS label, {client} AS client FROM range(10) AS r(i)"


@pytest.mark.parametrize("way", READING)
def test_a_view_shows_nothing_of_other_files_and_settings(way: str, folder: Path) -> None:
    """As column of clients its answer would stand in results and reports."""
    reading = READING[way].format(folder=folder)
    if way.startswith("above the temporary"):
        reading = reading.replace(f"..{folder}", "../..")
    view = RECORDS.format(client=f"CAST(({reading}) AS VARCHAR)")
    file = database(folder, f"CREATE VIEW scored AS {view}")
    with duckdb.connect(config={"temp_directory": str(folder / "folder" / "made")}) as connection:
        connection.execute(f"ATTACH '{file}' AS given (READ_ONLY)")
        rows = connection.execute("SELECT client FROM given.scored").fetchall()
    assert PRIVATE in str(rows)
    try:
        told = str(from_database(f"duckdb://{file}", "scored", client="client").names)
    except DataError as error:
        told = str(error)
    assert PRIVATE not in told.replace(str(folder), "")


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/x", "s3://bucket/x", "hf://datasets/x"])
def test_an_address_of_the_network_is_not_asked(address: str, folder: Path) -> None:
    file = database(folder)
    query = RECORDS.format(client=f"(SELECT content FROM read_text('{address}'))")
    with pytest.raises(DataError, match=r"disabled by configuration|httpfs") as caught:
        from_database(f"duckdb://{file}", query=query, client="client")
    assert PRIVATE not in str(caught.value)


def test_a_party_of_a_federation_reads_no_other_file_either(folder: Path) -> None:
    view = f"SELECT length(content) AS score, 1 AS label FROM read_text('{folder}/ledger.key')"
    file = database(folder, f"CREATE VIEW scored AS {view}")
    for table, query in (("scored", None), (None, view)):
        with pytest.raises(DataError, match="disabled by configuration"):
            from_database(f"duckdb://{file}", table, query)


OPENING = (
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "RESET lock_configuration",
    "SET autoload_known_extensions = true",
    "INSTALL httpfs",
    "LOAD sqlite",
    "ATTACH '{folder}/other.duckdb' AS other",
    "COPY (SELECT 1) TO '{folder}/written.csv'",
    "EXPORT DATABASE '{folder}/written'",
    "IMPORT DATABASE '{folder}'",
    "SELECT * FROM enable_logging(storage := 'file', storage_path := '{folder}/written')",
    "SELECT * FROM enable_profiling(format := 'json', save_location := '{folder}/w.json')",
    "CREATE TABLE given.made (i INTEGER)",
    "SELECT nextval('numbers')",
)
"""Statements that would open an engine, or write."""


def test_an_engine_stays_closed(folder: Path) -> None:
    file = database(folder, "CREATE SEQUENCE numbers", "CREATE TABLE scored (score DOUBLE)")
    before = sorted(folder.iterdir())
    engine = DuckDBEngine("the table", database=str(file))
    for statement in OPENING:
        with pytest.raises(DataError, match="the table cannot be read"):
            engine.rows(statement.format(folder=folder))
        assert sorted(folder.iterdir()) == before, statement
    fetching = "SELECT value FROM duckdb_settings() WHERE name LIKE '%known_extensions'"
    assert {str(value) for (value,) in engine.rows(fetching)} == {"false"}


def test_files_are_the_only_ones_that_are_read(folder: Path) -> None:
    file = folder / "scored.parquet"
    pq.write_table(pa.table({"score": [0.5], "label": [1]}), file)
    engine = DuckDBEngine("the files", files=[str(file)])
    assert engine.rows(f"SELECT score FROM '{file}'") == [(0.5,)]
    for other in (folder / "ledger.parquet", f"{folder}/*.parquet", f"{file}/../ledger.parquet"):
        with pytest.raises(DataError, match="disabled by configuration"):
            engine.rows(f"SELECT * FROM read_parquet('{other}')")


@pytest.mark.parametrize(
    ("macro", "name"),
    [
        ("isfinite(x) AS true", "isfinite"),
        ("SUM(x) AS 99", "SUM"),
        ('"+"(a, b) AS 99', r"\+"),
        ("duckdb_functions() AS TABLE SELECT 1", "duckdb_functions"),
    ],
)
def test_a_database_that_replaces_functions_is_refused(macro: str, name: str, folder: Path) -> None:
    """Its counts would not be those of the records that are in its table."""
    file = database(folder, f"CREATE TABLE scored AS {RECORDS.format(client=1)}")
    database(folder, f"CREATE MACRO {macro}")
    with pytest.raises(DataError, match=f"must not define .* functions again, got '{name}'"):
        from_database(f"duckdb://{file}", "scored")


def test_a_database_may_have_views_and_macros_of_its_own(folder: Path) -> None:
    file = database(
        folder,
        "CREATE SCHEMA clinic",
        f"CREATE TABLE clinic.stored AS {RECORDS.format(client=1)}",
        "CREATE MACRO halved(x) AS x / 2",
        "CREATE VIEW scored AS SELECT halved(score) AS score, label FROM clinic.stored",
    )
    assert from_database(f"duckdb://{file}", "scored").ends == (0.0, 0.5)
    assert from_database(f"duckdb://{file}", "clinic.stored").ends == (0.0, 1.0)


def test_a_database_of_another_kind_loads_no_extension(folder: Path) -> None:
    file = folder / "scored.duckdb"
    file.write_bytes(b"SQLite format 3\0" + bytes(4096))
    with pytest.raises(DataError, match="not a valid DuckDB database file"):
        from_database(f"duckdb://{file}", "scored")


def test_a_path_like_an_address_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB takes ``file:/scored.parquet`` for a file of the root folder."""
    pq.write_table(pa.table({"score": [0.75], "label": [1]}), tmp_path / "scored.parquet")
    given = tmp_path / "given"
    named = given / "file:" / str(tmp_path).lstrip("/")
    named.mkdir(parents=True)
    pq.write_table(pa.table({"score": [0.25], "label": [1]}), named / "scored.parquet")
    monkeypatch.chdir(given)
    for source in (".", "**/*.parquet"):
        assert from_files([source]).ends == (0.25, 0.25)


def test_files_are_named_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"score": [0.5], "label": [1]}), tmp_path / name / "scored.parquet")
    monkeypatch.chdir(tmp_path / "a")
    names = from_files(["scored.parquet", "../b/*.parquet"]).names
    assert set(names) == {"scored.parquet", "../b/scored.parquet"}
    with pytest.raises(DataError, match=r"duplicate file \./scored\.parquet"):
        from_files(["scored.parquet", "./*.parquet"])


@pytest.mark.parametrize("name", ["clients", "bins", "cubics"])
def test_a_table_may_have_any_ordinary_name(name: str, tmp_path: Path) -> None:
    """What the engine adds for a statement hides none of them."""
    made = f"CREATE TABLE {name} AS {RECORDS.format(client='i % 3')}"
    clients = from_database(f"duckdb://{database(tmp_path, made)}", name, client="client")
    assert tacit.evaluate(clients, tacit.FedAUC(epsilon=1.0), 1).auc is not None
    assert tacit.evaluate(clients, tacit.ScoreHistogram(epsilon=1.0), 1).auc is not None


def test_a_file_whose_name_is_no_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "scores\udcff.parquet"
    pq.write_table(pa.table({"score": [0.5], "label": [1]}), tmp_path / "scores.parquet")
    (tmp_path / "scores.parquet").rename(file)
    with pytest.raises(DataError, match="must be UTF-8"):
        from_files([str(file)])
