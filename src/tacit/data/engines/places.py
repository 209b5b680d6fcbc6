"""Where records are: the address of a database, a pattern or folder of files, or large files."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

from tacit.data.errors import DataError
from tacit.data.tables import RECORD_FILES

SECRETS = (
    *("password", "sslpassword", "oauth_client_secret"),
    *("scram_client_key", "scram_server_key"),
)
"""Options of an address that hold a password."""

POSTGRES_PREFIXES = ("postgresql://", "postgres://")
DUCKDB_PREFIX = "duckdb://"
PARQUET = (".parquet", ".pq")
PATTERN_SIGNS = "*?["

LARGE_BYTES = 100_000_000
"""From this size on, Parquet files are counted where they are, not read into memory."""


def is_address(source: str) -> bool:
    """Whether a source is a database's address."""
    return source.startswith((*POSTGRES_PREFIXES, DUCKDB_PREFIX))


def is_pattern(source: str) -> bool:
    """Whether a source is a pattern or a folder of files, and not a file."""
    path = Path(source)
    return path.is_dir() or (any(sign in source for sign in PATTERN_SIGNS) and not path.exists())


def is_large(sources: Sequence[str]) -> bool:
    """Whether Parquet files are too large to be read into memory for counts alone."""
    files = [Path(source) for source in sources]
    if not all(file.suffix.lower() in PARQUET and file.is_file() for file in files):
        return False
    return sum(file.stat().st_size for file in files) >= LARGE_BYTES


def matched(sources: Sequence[str]) -> list[str]:
    """The files of patterns and folders, in order of their names.

    Raises
    ------
    DataError : for a pattern or folder without files, and a file that is found twice.
    """
    files: list[str] = []
    for source in sources:
        if Path(source).is_dir():
            matches = _in_folder(Path(source))
        elif is_pattern(source):
            matches = sorted(glob.glob(source, recursive=True))  # noqa: PTH207 -- also absolute
        else:
            matches = [source]
        if not matches:
            raise DataError(f"no file is found for {source}")
        files += matches
    seen = set[Path]()
    for file in files:
        path = Path(file).absolute()
        if not path.is_file():
            raise DataError(f"{file} does not exist")
        if not _is_text(file):
            raise DataError(f"the name of a file must be UTF-8, got {file!r}: rename it")
        if path in seen:
            raise DataError(f"duplicate file {file}")
        seen.add(path)
    return files


def _in_folder(folder: Path) -> list[str]:
    """The Parquet files of a folder, which holds no other files of records."""
    files = (path for path in folder.rglob("*") if path.is_file())
    found = sorted(str(path) for path in files if path.name.lower().endswith(RECORD_FILES))
    for file in found:
        if not file.lower().endswith(PARQUET):
            raise DataError(
                f"a folder of records holds Parquet files alone, and {folder} has {file}: name "
                "files, or a pattern such as 'folder/*.csv'"
            )
    return found


def _is_text(name: str) -> bool:
    """Whether a file's name has only characters of UTF-8, which DuckDB needs."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def public_address(address: str) -> str:
    """An address as messages may show it: host and database, without the user.

    Raises
    ------
    DataError : for an address with a password, or of another form, which the message does not
        repeat: what cannot be read as an address may hold a password.

    Examples
    --------
    >>> public_address("postgresql://reader@db.example:5432/clinic?sslmode=require")
    'postgresql://db.example:5432/clinic'
    """
    parts = _address_parts(address)
    options = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if parts.password is not None or options & set(SECRETS):
        raise DataError(
            "a password must not be part of an address, where plans, logs and lists of processes "
            "show it: set PGPASSWORD, or write it into a file that PGPASSFILE names"
        )
    host = parts.netloc.rpartition("@")[2]
    return f"postgresql://{host}{parts.path}"


def _address_parts(address: str) -> SplitResult:
    """The parts of an address; none where ``@`` follows the host, which a password may precede."""
    malformed = DataError(
        "an address must have the form postgresql://user@host:port/database, without a password, "
        "and with %40 for @ in a name"
    )
    if not address.startswith(POSTGRES_PREFIXES):
        raise malformed
    try:
        parts = urlsplit(address)
    except ValueError:
        raise malformed from None
    if "@" in parts.path + parts.query + parts.fragment or parts.fragment:
        raise malformed
    return parts
