"""What follows from clients' records in flat arrays: sizes, counts in cells, names in messages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ordering import ascending_order
from tacit.data.batches.ragged import Ragged, Scalar

if TYPE_CHECKING:
    from tacit.data.engines.sql.pieces import ClassFunctions


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
