"""A client's checks of a comparison query: the server's numbers must not weaken the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.protocol.conversation import Query
from tacit.protocols.fedauc.comparing.noise import RankPairs, largest_by_client
from tacit.protocols.fedauc.requests import MAX_RECORDS
from tacit.protocols.fedauc.sums import check_sums


@dataclass(frozen=True, eq=False)
class DifferenceRequest:
    """A query for sums of ranks of two models, checked.

    Parameters
    ----------
    ranks : doubled ranks of the clients' records by both models.
    pivot : of every client's levels, shape (K,).
    responding : which records answer by randomised response, shape (M,).
    """

    ranks: RankPairs
    pivot: Integers
    responding: NDArray[np.bool_]

    @classmethod
    def of(cls, clients: Clients, query: Query) -> DifferenceRequest:
        """The checked query.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        first, second = (_record_values(clients, query, name, np.int64) for name in RANKS)
        for name, ranks in zip(RANKS, (first, second), strict=True):
            if ranks.values.min() < 0 or ranks.values.max() > 2 * MAX_RECORDS:
                raise ValueError(f"{name} ranks must be from 0 to {2 * MAX_RECORDS}, doubled")
        pivot = np.asarray(query.per_client["pivot"])
        if pivot.dtype != np.int64 or pivot.shape != (clients.count,):
            raise ValueError(
                f"pivot must hold one int64 a client, got {pivot.dtype} of shape {pivot.shape}"
            )
        if pivot.min() < 0 or pivot.max() > 4 * MAX_RECORDS:
            raise ValueError(f"pivots must be from 0 to {4 * MAX_RECORDS}")
        responding = _record_values(clients, query, "responding", np.bool_)
        request = cls(RankPairs(first, second), pivot, responding.values)
        every_record = np.ones(clients.records, dtype=np.bool_)
        for weights in (request.ranks.difference, request.centred):
            largest = largest_by_client(weights, every_record)
            check_sums(clients.sizes, largest, query.protocol.part_noise.level.largest_sum)
        return request

    @property
    def centred(self) -> Ragged[np.int64]:
        """Every record's level less its client's pivot, shape (M,)."""
        level = self.ranks.level
        return Ragged(level.values - np.repeat(self.pivot, level.sizes), level.offsets)

    @property
    def any_summed(self) -> NDArray[np.bool_]:
        """The clients with a record that enters noisy sums, shape (K,)."""
        return np.logical_or.reduceat(~self.responding, self.ranks.first.offsets[:-1])


RANKS = ("first", "second")


def _record_values(clients: Clients, query: Query, name: str, dtype: Any) -> Ragged[Any]:
    column = query.per_client[name]
    if not isinstance(column, Ragged) or column.values.dtype != dtype or column.values.ndim != 1:
        raise ValueError(f"{name} must be ragged values of type {np.dtype(dtype)}")
    if not np.array_equal(column.offsets, clients.offsets):
        raise ValueError(f"{name} must hold one value for every record")
    return column
