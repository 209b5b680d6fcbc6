"""Where ``tacit evaluate`` has its records from: files, patterns, databases, or counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import click

from tacit.cli.shell import complain, progress_of, refuse
from tacit.data.clients import Clients
from tacit.data.columns import check_rule
from tacit.data.engines import opening
from tacit.data.engines.stored import StoredClients
from tacit.data.form import PLAIN
from tacit.data.reading import FileColumns, read_columns
from tacit.data.scales import Units
from tacit.protocol.conversation import OneCount, Protocol
from tacit.results.text import escaped


def check_source(params: Mapping[str, Any]) -> None:
    """Refuse options of ``tacit evaluate`` that do not go with where records are from."""
    files, counts = params["files"], params["counts"]
    if counts is not None and files:
        raise click.UsageError("--counts cannot be used with FILES")
    if counts is None and not files:
        raise click.UsageError("Missing argument 'FILES...'.")
    check_places(params)
    if not check_rule(params["missing"]):
        refuse("{} needs --missing drop", params, "count_missing")
        return
    sentence = "--missing drop cannot be used with {}"
    remedy = "leave records without a value out of the files first"
    refuse(f"{sentence}: {remedy}", params, "scores", "private_group")
    refuse(sentence, params, "counts")


def check_places(params: Mapping[str, Any]) -> None:
    """Refuse files and a database together, and options that name a part of it without one."""
    files = params["files"]
    addresses = [file for file in files if opening.is_address(file)]
    if addresses and len(files) > 1:
        raise click.UsageError("a database's address must be the only one of FILES")
    if not addresses and (params["table"], params["query"]) != (None, None):
        raise click.UsageError(
            "--table and --query need a database's address, as postgresql://user@host/database or "
            "duckdb://file"
        )


def stored_source(
    asked: SimpleNamespace,
    columns: FileColumns,
    group: str | None = None,
    names: Sequence[str] = (),
    scores: tuple[str, ...] = (),
    only_counts: bool = False,
) -> StoredClients | None:
    """Clients of databases, patterns and large files; None where these are read into memory.

    Parameters
    ----------
    asked : the options of the command.
    columns : what they say of records; where it differs between files these are read into memory.
    group, scores : as ``FileColumns.of_files`` takes them.
    names : the agreed names of groups or classes; without these a public group's are read off.
    only_counts : whether the records are only counted.
    """
    if any(isinstance(value, Mapping) for value in vars(columns).values()):
        return None
    read, files = columns.of_files("", group, names, scores)[""], asked.files
    source = files
    if opening.is_address(files[0]):
        source = opening.DatabaseTable(files[0], asked.table, asked.query)
    return opening.stored_clients(source, read, only_counts, partial(progress_of, label="records"))


def read_asked(asked: SimpleNamespace, columns: FileColumns, *groups: Any, **more: Any) -> Clients:
    """Clients as ``stored_source`` takes what is asked for, else with their records in memory."""
    stored = stored_source(asked, columns, *groups, **more)
    if stored is not None:
        return stored
    return read_columns(columns.of_files(files_in_memory(asked.files), *groups))[0]


IN_MEMORY = "--separator or --decimal"
"""Options that an engine does not know."""


def files_in_memory(files: Sequence[str], option: str = IN_MEMORY) -> list[str]:
    """The files of patterns and folders, where an option needs all records in memory.

    Raises
    ------
    click.UsageError : for a database.
    DataError : for a pattern without files.
    """
    if any(map(opening.is_address, files)):
        raise click.UsageError(f"{option} needs files, not a database")
    return opening.files_of(files)


def read_source(
    asked: SimpleNamespace,
    protocol: Protocol | None,
    columns: FileColumns,
    group: tuple[str, tuple[str, ...]] | None,
) -> tuple[Protocol | None, Clients]:
    """The clients of a source, and the protocol in a form that it can answer.

    Records of databases, patterns and large files stay where they are, if only counts are asked
    for.

    Parameters
    ----------
    asked : the options of ``tacit evaluate``.
    protocol : what is evaluated; None where it is chosen when the records are counted.
    columns : what the options say of records.
    group : the column of private groups and their names; None where records have none.
    """
    if asked.counts is not None and protocol is not None:
        if columns.form != PLAIN:
            raise click.UsageError(
                "--positive, --separator and --decimal need files of records, and --counts has none"
            )
        return _read_counted(asked, protocol, columns.unit)
    only_counts = protocol is None or protocol.one_count is not None
    return protocol, read_asked(asked, columns, *(group or ()), only_counts=only_counts)


def counted_once(protocol: Protocol) -> OneCount:
    """The form of a protocol that counts once.

    Raises
    ------
    click.UsageError : for a protocol that needs records.
    """
    once = protocol.one_count
    if once is None:
        raise click.UsageError(
            f"--protocol {protocol.name} with these settings needs records: counts in cells "
            "are not enough"
        )
    return once


def _read_counted(
    asked: SimpleNamespace, protocol: Protocol, unit: Units
) -> tuple[Protocol, Clients]:
    """The form of a protocol that counts once, and the clients of a file of counts."""
    from tacit.data.engines.counts_file import read_counts  # noqa: PLC0415 -- few need it

    once = counted_once(protocol)
    if once.protocol != protocol:
        complain(
            f"tacit: counts answer one round: {protocol.name} runs in its form that counts once"
        )
    word = unit if isinstance(unit, str) else None
    most = asked.per_person or 0
    cells = once.edges, once.mark(most), once.ends
    clients = read_counts(asked.counts, *cells, word, once.groups, most)
    return once.protocol, clients


MOST_NAMED = 20
"""Largest number of clients whose own numbers are on the screen."""


def say_left_out(clients: Clients, names: bool) -> None:
    """Print on standard error how many records were left out, which only exact results say.

    Parameters
    ----------
    clients : with the records that were left out.
    names : whether the clients may be named.
    """
    if clients.left_out is None:
        return
    scores, labels = clients.left_out.sum(axis=1).tolist()
    complain(
        f"tacit: {scores + labels:,} records were left out: {scores:,} without a score, "
        f"{labels:,} without a label{_by_client(clients) if names else ''}. The exact number is "
        "for this screen: without --exact it is not in the result"
    )


def _by_client(clients: Clients) -> str:
    """The numbers of clients that left any out, where they are few enough for a line."""
    totals = clients.left_out.sum(axis=0).tolist() if clients.left_out is not None else []
    named = zip(clients.names, totals, strict=False)  # of clients without names, none
    parts = [f"{escaped(name)} {total:,}" for name, total in named if total]
    return f" ({', '.join(parts)})" if 1 < len(parts) <= MOST_NAMED else ""
