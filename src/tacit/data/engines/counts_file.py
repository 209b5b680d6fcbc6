"""Counts by client, class and cell, as an engine returned them, and a CSV file of them."""

from __future__ import annotations

import hmac
import re
from pathlib import Path
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.engines.relations import CELL, CELLS, CLASS, CLIENT, INVALID, RECORDS, TOTAL
from tacit.data.engines.stored import Stored, StoredClients
from tacit.data.errors import DataError
from tacit.data.form import PLAIN
from tacit.data.tables import opened_table

COLUMNS = (CLIENT, CLASS, CELL, RECORDS, TOTAL, CELLS)

WHOLE = re.compile(r"[+-]?[0-9]{1,18}")

MOST_RECORDS = 1 << 53
"""So many records are an error, and their sums would not be exact."""


class CountedRecords(Stored):
    """Counts of records by client, class and cell, as an engine returned them.

    Parameters
    ----------
    edges : the inner edges of the cells, ascending, shape (B-1,).
    by_cell : positives and negatives by cell and client, shape (2, B, K), or (G, 2, B, K) where
        they were counted for each of G private groups.
    names : one name a client.
    ends : the least and the largest score there can be.
    groups : the names of the groups; empty for none.
    per_person : the most records of a person that were counted at a client; 0 where nothing is
        known of persons.

    Raises
    ------
    DataError : for counts of another shape, below 0, or of a client without records.
    """

    def __init__(
        self,
        edges: Floats,
        by_cell: Integers,
        names: tuple[str, ...] = (),
        ends: tuple[float, float] = (0.0, 1.0),
        groups: tuple[str, ...] = (),
        per_person: int = 0,
    ) -> None:
        by_cell = np.asarray(by_cell)
        shape = (*(len(groups),) * bool(groups), 2, edges.size + 1)
        if by_cell.shape[:-1] != shape or not by_cell.shape[-1]:
            listed = ", ".join(map(str, shape))
            raise DataError(f"counts must have shape ({listed}, K), got {by_cell.shape}")
        if by_cell.dtype.kind not in "iu" or np.any(by_cell < 0):
            raise DataError("counts must be whole numbers of at least 0")
        self.edges, self.by_cell = edges, by_cell.astype(np.int64)
        self.names, self.ends, self.groups = names, ends, groups
        self.per_person, self.knows_persons = per_person, per_person > 0
        by_class = self.by_cell.sum(axis=-2).reshape(-1, 2, by_cell.shape[-1]).sum(axis=0)
        self.sizes, self.positives = by_class.sum(axis=0), by_class[0]
        empty = np.flatnonzero(self.sizes == 0)
        if empty.size:
            name = names[empty[0]] if names else f"client {empty[0]}"
            raise DataError(f"{name} has no records")

    def counts(self, edges: Floats, by_group: bool = False) -> Integers:
        """The counts in cells that are made of counted cells.

        Raises
        ------
        DataError : for an edge inside a counted cell.
        """
        low, high = self.ends
        inner = (edges > low) & (edges <= high)
        places = np.searchsorted(self.edges, edges)
        known = np.append(self.edges, np.inf)[np.minimum(places, self.edges.size)] == edges
        if np.any(inner & ~known):
            wrong = edges[inner & ~known][0]
            raise DataError(
                f"the records were counted in cells without an edge at {wrong:.17g}, which this "
                "protocol needs: count them by the statement that tacit sql prints for the same "
                "settings"
            )
        # cells below the first edge, between neighbouring ones, and from the last one on
        starts = np.where(edges <= low, 0, np.where(edges > high, self.edges.size + 1, places + 1))
        counts = self.by_cell.reshape(-1, 2, *self.by_cell.shape[-2:])
        below = np.insert(np.cumsum(counts, axis=2), 0, 0, axis=2)
        bounds = np.concatenate(([0], starts, [self.edges.size + 1]))
        in_cells = np.diff(below[:, :, bounds], axis=2)
        return in_cells if by_group else in_cells.sum(axis=0)

    def _refused(self) -> Any:
        """No record is known.

        Raises
        ------
        DataError : always.
        """
        raise DataError(
            "only counts of these records are known, and this protocol needs the records: take "
            "one that counts once (tacit evaluate --counts says which), or the records themselves"
        )

    batches = ascending = pooled = _refused

    def counted(self, per_person: int, seed: bytes) -> Stored:
        """The same counts, of which it is not said again whose they are.

        Raises
        ------
        DataError : for another number of a person's records than was counted.
        """
        if per_person != self.per_person:
            raise DataError(f"per_person must be {self.per_person} as counted, got {per_person}")
        return CountedRecords(self.edges, self.by_cell, self.names, self.ends, self.groups)

    def marks(self, key: bytes) -> tuple[bytes, bytes]:
        """Digests of the counts, and of all that is known of them."""
        counts, edges = self.by_cell.tobytes(), self.edges.tobytes()
        shape = repr((self.by_cell.shape, self.ends, self.names, self.groups)).encode()
        whole = hmac.digest(key, shape + edges + counts, "sha256")
        return hmac.digest(key, b"counts" + counts, "sha256"), whole


def read_counts(
    path: str,
    edges: Floats,
    mark: str,
    ends: tuple[float, float] = (0.0, 1.0),
    unit: str | None = None,
    groups: tuple[str, ...] = (),
    per_person: int = 0,
) -> StoredClients:
    """Clients of which a file of counts is known.

    Parameters
    ----------
    path : a CSV file with the columns client, class, cell, records, total and cells.
    edges : the inner edges of the B cells, shape (B-1,).
    mark : the word for these cells, which every row repeats.
    ends : the least and the largest score there can be.
    unit : what the scores are.
    groups : the private groups each of which was counted separately, whose classes follow each
        other.
    per_person : the most records of a person that were counted at a client; 0 for all records.

    Raises
    ------
    DataError : for a file of another form, counts in other cells, rows that do not add up to the
        total that each of them states, a count that is given twice, and records that have no valid
        label or score, or no client where others have one.
    """
    rows = _rows(path)
    names = sorted({row[CLIENT] for row in rows})
    if len(names) > 1 and not names[0]:
        raise DataError(f"{path} has records of no client together with those of {names[1]!r}")
    index = {name: place for place, name in enumerate(names)}
    strata = max(len(groups), 1)
    counts = np.zeros((strata, 2, edges.size + 1, len(names)), dtype=np.int64)
    bounds = 2 * strata, edges.size + 1
    total = 0
    for number, row in enumerate(rows, 1):
        found, cell, records = _checked(row, mark, bounds, f"{path}, row {number}")
        stratum, label = divmod(found, 2)
        place = stratum, 1 - label, cell, index[row[CLIENT]]
        if counts[place]:
            raise DataError(f"{path}, row {number} counts a cell that another row counted")
        counts[place] = records
        total += records
    if total >= MOST_RECORDS:
        raise DataError(f"{path} must count fewer than {MOST_RECORDS} records, got {total}")
    _check_total(path, rows, total)
    called = tuple(names) if names != [""] else (Path(path).stem,)
    by_cell = counts if groups else counts[0]
    return StoredClients(CountedRecords(edges, by_cell, called, ends, groups, per_person), unit)


def _rows(path: str) -> list[dict[str, str]]:
    """The rows of a file by the names of its columns, with an empty text for no value."""
    with opened_table(path, PLAIN, (), extension=".csv") as table:
        # engines such as Snowflake write names of columns in capitals
        by_name = {name.lower(): name for name in table.header}
        names = [name.lower() for name in table.header]
        rows: list[dict[str, Any]] = []
        for name in COLUMNS if names else ():
            if names.count(name) != 1:
                raise DataError(
                    f"{path} must have one column {name!r}, got {names.count(name)}: counts have "
                    f"the columns {', '.join(COLUMNS)}"
                )
        for batch in table.batches([by_name[name] for name in COLUMNS if names]):
            rows += batch.rename_columns(list(COLUMNS)).to_pylist()
    if not rows:
        raise DataError(f"{path} has no counts")
    return [{name: value or "" for name, value in row.items()} for row in rows]


def _check_total(path: str, rows: list[dict[str, str]], counted: int) -> None:
    """Refuse rows that are not all rows of one answer."""
    for number, row in enumerate(rows, 1):
        # a sum over a window may be of a type that a program writes with a point
        if row[TOTAL].strip().removesuffix(".0") != str(counted):
            raise DataError(
                f"{path} counts {counted} records and row {number} states "
                f"{row[TOTAL]!r} for all rows: rows are missing or were changed, so run "
                "the statement again"
            )


def _checked(
    row: dict[str, str], mark: str, bounds: tuple[int, int], where: str
) -> tuple[int, int, int]:
    """Class, cell and number of records of a row, of so many classes and cells."""
    classes, cells = bounds
    if row[CELLS] != mark:
        raise DataError(
            f"{where} has counts in the cells {row[CELLS]!r}, and these settings need "
            f"{mark!r}: give the settings with which tacit sql printed the statement"
        )
    texts = [row[name].strip() for name in (CLASS, CELL, RECORDS)]
    # int() also takes underscores and digits of other scripts, which no engine writes
    if not all(WHOLE.fullmatch(text) for text in texts):
        raise DataError(f"{where} must have whole numbers as class, cell and records")
    label, cell, records = map(int, texts)
    if label == INVALID:
        raise DataError(
            f"labels must be 0 or 1: {where} counts {records} records with another label or none"
            f"{', or of another group' if classes > 2 else ''}"
        )
    if cell == INVALID:
        raise DataError(
            f"scores must be finite and in their range: {where} counts {records} records whose "
            "score is not, or is missing"
        )
    if not 0 <= label < classes or not 0 <= cell < cells or records <= 0 or records >= MOST_RECORDS:
        raise DataError(
            f"{where} must have a class from 0 to {classes - 1}, a cell from 0 to {cells - 1} and "
            f"records above 0, got {label}, {cell} and {records}"
        )
    return label, cell, records
