"""A table of a database as a party's file names it: never with a password."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.data.clients import Clients
from tacit.data.engines.places import DUCKDB_PREFIX, public_address
from tacit.data.engines.stored import StoredClients

if TYPE_CHECKING:
    from tacit.data.engines.records import Engine
    from tacit.data.engines.sql.statements import Relation


@dataclass(frozen=True)
class DatabaseTable:
    """Where a party's records are, if they are in a database.

    Parameters
    ----------
    address : of the database, as ``from_database`` takes it.
    table, query : one of them.
    passfile : the file of a password, as libpq reads it; None for libpq's own places.
    """

    address: str
    table: str | None = None
    query: str | None = None
    passfile: Path | None = None

    def __str__(self) -> str:
        """What messages call it: without user and password."""
        called = "a query" if self.table is None else f"table {self.table}"
        return f"{called} of {self.public_address}"

    @property
    def public_address(self) -> str:
        """The address without its user.

        Raises
        ------
        DataError : for an address with a password.
        """
        if self.address.startswith(DUCKDB_PREFIX):
            return self.address
        return public_address(self.address)

    def at(self, home: Path) -> DatabaseTable:
        """The same with whole paths, those in it being relative to a folder."""
        address = self.address
        if address.startswith(DUCKDB_PREFIX):
            address = f"{DUCKDB_PREFIX}{home / address.removeprefix(DUCKDB_PREFIX)}"
        passfile = None if self.passfile is None else home / self.passfile
        return DatabaseTable(address, self.table, self.query, passfile)

    def settings(self) -> dict[str, str]:
        """The keys of a party's file that name it."""
        named = {"records": self.address, "table": self.table, "query": self.query}
        named["passfile"] = None if self.passfile is None else str(self.passfile)
        return {key: value for key, value in named.items() if value is not None}

    def read(self, score: str, label: str | None, name: str) -> Clients:
        """All records as one client, in memory, in the order of their scores and labels.

        A database may return rows in another order for every message of a run, and what a party
        remembers of its records is by their places. Equal records have equal places.

        Raises
        ------
        DataError : for a table that cannot be read, and records that cannot be used.
        """
        from tacit.data.engines.opening import from_database  # noqa: PLC0415 -- it imports Arrow

        stored = from_database(
            self.address, self.table, self.query, score, label, name=name, passfile=self.passfile
        )
        records = stored.in_memory() if isinstance(stored, StoredClients) else stored
        order = np.lexsort((records.labels, records.scores))
        return replace(records, scores=records.scores[order], labels=records.labels[order])

    def read_classes(
        self, scores: Sequence[str], label: str, names: Sequence[str], name: str
    ) -> Clients:
        """All records with their classes, as one client in memory; as ``classes_of_table``."""
        from tacit.data.engines.categories import classes_of_table  # noqa: PLC0415 -- Arrow

        engine, relation = self._opened(scores[0], None)
        read = classes_of_table(engine, relation, scores, label, names)
        return replace(read, names=(name,))

    def read_groups(
        self, group: str, names: Sequence[str], score: str, label: str, name: str
    ) -> Clients:
        """All records with their private groups, as one client in memory: ``groups_of_table``."""
        from tacit.data.engines.categories import groups_of_table  # noqa: PLC0415 -- Arrow

        engine, relation = self._opened(score, label)
        return replace(groups_of_table(engine, relation, group, names), names=(name,))

    def _opened(self, score: str, label: str | None) -> tuple[Engine, Relation]:
        from tacit.data.engines.opening import opened  # noqa: PLC0415 -- it imports Arrow

        return opened(self.address, self.table, self.query, score, label, passfile=self.passfile)
