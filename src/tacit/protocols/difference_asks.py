"""What a client checks of an ask to compare: the server's numbers must not weaken the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import Clients, Ragged
from tacit.protocols.conversation import Ask
from tacit.protocols.rank_asks import MOST_RECORDS
from tacit.protocols.rank_differences import RankPairs, largest_by_client
from tacit.protocols.rank_sums import check_sums

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DifferenceAsk:
    """An ask for sums of ranks of two models, checked.

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
    def of(cls, clients: Clients, ask: Ask) -> DifferenceAsk:
        """The checked ask.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        first, second = (_record_values(clients, ask, name, np.int64) for name in RANKS)
        for name, own in zip(RANKS, (first, second), strict=True):
            if own.values.min() < 0 or own.values.max() > 2 * MOST_RECORDS:
                raise ValueError(f"{name} ranks must be from 0 to {2 * MOST_RECORDS}, doubled")
        pivot = np.asarray(ask.each["pivot"])
        if pivot.dtype != np.int64 or pivot.shape != (clients.count,):
            raise ValueError(
                f"pivot must hold one int64 a client, got {pivot.dtype} of shape {pivot.shape}"
            )
        if pivot.min() < 0 or pivot.max() > 4 * MOST_RECORDS:
            raise ValueError(f"pivots must be from 0 to {4 * MOST_RECORDS}")
        responding = _record_values(clients, ask, "responding", np.bool_)
        asked = cls(RankPairs(first, second), pivot, responding.values)
        everybody = np.ones(clients.records, dtype=np.bool_)
        for weights in (asked.ranks.difference, asked.centred):
            largest = largest_by_client(weights, everybody)
            check_sums(clients.sizes, largest, ask.settings.part_noise.level.largest_sum)
        return asked

    @property
    def centred(self) -> Ragged[np.int64]:
        """Every record's level less its client's pivot, shape (M,)."""
        level = self.ranks.level
        return Ragged(level.values - np.repeat(self.pivot, level.sizes), level.offsets)

    @property
    def somebody_summed(self) -> NDArray[np.bool_]:
        """The clients some of whose records go into noisy sums, shape (K,)."""
        return np.logical_or.reduceat(~self.responding, self.ranks.first.offsets[:-1])


RANKS = ("first", "second")


def _record_values(clients: Clients, ask: Ask, name: str, dtype: Any) -> Ragged[Any]:
    found = ask.each[name]
    if not isinstance(found, Ragged) or found.values.dtype != dtype or found.values.ndim != 1:
        raise ValueError(f"{name} must be ragged values of type {np.dtype(dtype)}")
    if not np.array_equal(found.offsets, clients.offsets):
        raise ValueError(f"{name} must hold one value for every record")
    return found
