"""Records of clients in flat arrays: cut, put together, dealt out, and what follows from them.

What is known of each record, in parallel arrays. What follows from clients' records in flat arrays:
sizes, counts in cells, names in messages. Several batches of clients as one, in order. Which of
several simulated clients gets which record of one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data import checking
from tacit.data.batches.ragged import Ragged, Scalar, ascending_order
from tacit.data.categories import Categories
from tacit.data.errors import DataError
from tacit.data.persons import as_persons

if TYPE_CHECKING:
    from tacit.data.engines.sql.pieces import ClassFunctions


@dataclass(frozen=True, eq=False)
class RecordColumns:
    """The columns of records, named as the fields of ``Clients``; of one length where checked.

    Parameters
    ----------
    scores, labels : shape (M,).
    second, persons, categories : shape (M,), or None.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    second: NDArray[np.float64] | None = None
    persons: NDArray[np.bytes_] | None = None
    categories: Categories | None = None

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        second: ArrayLike | None,
        persons: ArrayLike | None,
        categories: Categories | None = None,
    ) -> RecordColumns:
        """The columns of values in any form.

        Raises
        ------
        DataError : for values that cannot be of a column.
        """
        return cls(
            checking.as_scores(scores),
            checking.as_labels(labels),
            None if second is None else checking.as_scores(second, checking.SECOND),
            None if persons is None else as_persons(persons),
            categories,
        )

    def taken(self, which: Any) -> RecordColumns:
        """The columns of some records, or of all in another order."""
        return RecordColumns(
            self.scores[which],
            self.labels[which],
            None if self.second is None else self.second[which],
            None if self.persons is None else self.persons[which],
            None if self.categories is None else self.categories.taken(which),
        )

    @property
    def by_name(self) -> dict[str, Any]:
        """The columns by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class FlatRecords:
    """Scores and labels of clients in one flat array each.

    Parameters
    ----------
    scores : shape (M,).
    labels : 0 or 1, shape (M,).
    offsets : client ``k`` holds records ``offsets[k]:offsets[k+1]``, shape (K+1,).
    names : one name a client, or empty.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.int8]
    offsets: NDArray[np.int64]
    names: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """K, the number of clients."""
        return self.offsets.size - 1

    @property
    def records(self) -> int:
        """M, the number of records of all clients."""
        return self.scores.size

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of records of each client, shape (K,)."""
        return np.diff(self.offsets)

    @property
    def positives(self) -> int:
        """P, the number of records with label 1."""
        return int(np.count_nonzero(self.labels))

    @cached_property
    def client_of_record(self) -> NDArray[np.int64]:
        """The index of the client that holds each record, shape (M,)."""
        return np.repeat(np.arange(self.count, dtype=np.int64), self.sizes)

    @cached_property
    def ascending(self) -> NDArray[np.int64]:
        """Indices of the records in ascending order of score within each client, shape (M,)."""
        return ascending_order(self.scores, self.sizes)

    @property
    def at_hand(self) -> bool:
        """Whether the records are in memory, not in files or a database (``engines.stored``)."""
        return True

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest score."""
        return float(self.scores.min()), float(self.scores.max())

    def counts_in(self, edges: NDArray[np.float64]) -> NDArray[np.int64]:
        """Positives and negatives by cell and client, shape (2, B, K).

        Parameters
        ----------
        edges : the inner edges of B cells, ascending, shape (B-1,); a record's cell is the number
            of edges that are at most its score.
        """
        cells = np.searchsorted(edges, self.scores, side="right")
        shape = (2, edges.size + 1, self.count)
        group = np.where(self.labels == 1, 0, shape[1]) + cells
        index = group * self.count + self.client_of_record
        return np.bincount(index, minlength=int(np.prod(shape))).reshape(shape).astype(np.int64)

    def summed(self, functions: ClassFunctions) -> NDArray[np.int64] | None:
        """Sums over records by a statement, shape (K,); None where records are read for it."""
        return None

    def ragged(self, values: NDArray[Scalar]) -> Ragged[Scalar]:
        """Values of shape (..., M), cut like these clients' records."""
        return Ragged(values, self.offsets)

    def name(self, index: int) -> str:
        """What to call a client in a message."""
        return self.names[index] if self.names else f"client {index}"

    def location(self, record: int) -> str:
        """Where a record stands, in a message: its client, and its row counted from 1."""
        client = int(np.searchsorted(self.offsets, record, side="right")) - 1
        return f"{self.name(client)}, row {record - int(self.offsets[client]) + 1}"


def concatenated(parts: Sequence[Any]) -> dict[str, Any]:
    """The fields of all clients of several batches, in order.

    Parameters
    ----------
    parts : batches of clients (``Clients``).

    Raises
    ------
    DataError : for no batch at all, where only some of them have second values, or where their
        units differ.
    """
    if not parts:
        raise DataError("no clients were given")
    ends = np.cumsum([part.records for part in parts])
    shifted = [part.offsets[1:] + end - part.records for part, end in zip(parts, ends, strict=True)]
    return {
        "scores": np.concatenate([part.scores for part in parts]),
        "labels": np.concatenate([part.labels for part in parts]),
        "offsets": np.concatenate([np.zeros(1, dtype=np.int64), *shifted]),
        "names": tuple(name for part in parts for name in part.names),
        "simulated": any(part.simulated for part in parts),
        "second": _all_or_none(checking.SECOND, [part.second for part in parts]),
        "unit": _common_unit(parts),
        "persons": _all_or_none("persons", [part.persons for part in parts]),
        "categories": Categories.concatenate([part.categories for part in parts]),
        "left_out": _all_left_out(parts),
    }


def _all_or_none(called: str, columns: Sequence[Any]) -> NDArray[Any] | None:
    """A column of all batches, which all have it, or none has."""
    known = [column for column in columns if column is not None]
    if known and len(known) < len(columns):
        raise DataError(f"{len(known)} of {len(columns)} batches have {called}: all must, or none")
    return np.concatenate(known) if known else None


def _all_left_out(parts: Sequence[Any]) -> NDArray[np.int64] | None:
    """What was left out of all batches; of one that says nothing, no record was."""
    if all(part.left_out is None for part in parts):
        return None
    counts = [
        np.zeros((2, part.count), dtype=np.int64) if part.left_out is None else part.left_out
        for part in parts
    ]
    return np.concatenate(counts, axis=1)


def _common_unit(parts: Sequence[Any]) -> str | None:
    """The unit of all batches; a batch of unknown unit fits no other."""
    units = sorted({part.unit or "no named unit" for part in parts})
    if len(units) > 1:
        raise DataError(f"batches of one unit can be put together, got {' and '.join(units)}")
    return parts[0].unit


def dealt(
    scores: NDArray[np.float64],
    clients: int,
    by: Literal["uniform", "score"] = "uniform",
    seed: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order of records client by client, shape (M,), and the clients' offsets, shape (K+1,).

    Client ``k`` gets the records ``order[offsets[k]:offsets[k+1]]``; sizes differ by at most one.

    Parameters
    ----------
    scores : the records' scores, shape (M,).
    clients : K, from 1 to M.
    by : ``"uniform"`` deals records out at random, ``"score"`` in ascending order of score.
    seed : of the random order.

    Raises
    ------
    DataError : when there are fewer records than clients, or ``by`` is unknown.

    Examples
    --------
    >>> dealt(np.array([0.3, 0.1, 0.2]), 2, "score")
    (array([1, 2, 0]), array([0, 1, 3]))
    """
    records = scores.size
    if not 1 <= clients <= records:
        raise DataError(f"the number of clients must be between 1 and {records}, got {clients}")
    if by == "uniform":
        order = np.random.default_rng(seed).permutation(records)
    elif by == "score":
        order = np.argsort(scores, kind="stable")
    else:
        raise DataError(f"records are split by 'uniform' or 'score', got {by!r}")
    return order, (np.arange(clients + 1, dtype=np.int64) * records) // clients
