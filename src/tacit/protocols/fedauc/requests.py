"""A client's checks of a query for rank sums: the server's numbers must not weaken the noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.batches.ranked import StoredRanks
from tacit.data.clients import Clients
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import Query
from tacit.protocols.fedauc.sums import check_sums, largest_distance
from tacit.protocols.shared.sums.rank_noise import RESPONSE, RankNoise

MAX_RECORDS = 2**40
"""Largest number of records of all clients together; the sums of their ranks have their own check
(``sums.check_sums``)."""

SLACK = 1 + 1e-9
"""Largest accepted ratio of the parts' sum to epsilon: rounding may change the last digits."""


@dataclass(frozen=True, eq=False)
class RankRequest:
    """A query for rank sums, checked.

    Parameters
    ----------
    mechanism : the noise, of the agreed kind and at most the agreed budget.
    ranks : doubled ranks of the clients' records, ascending within a client.
    pivot : doubled pivots, shape (K,), or (R, K) in replicates.
    fraction : the count's fraction of the budget, likewise.
    respond : which clients flip labels, likewise.
    sensitivity : the least sensitivity that the noise of a rank sum assumes.
    """

    mechanism: RankNoise
    ranks: Ragged[np.int64]
    pivot: Integers
    fraction: Floats
    respond: NDArray[np.bool_]
    sensitivity: int

    @classmethod
    def of(cls, clients: Clients, query: Query, noise: NoiseSource | None = None) -> RankRequest:
        """The checked query; given ``noise``, its number of replicates is checked too.

        Raises
        ------
        ValueError : for a value of another type, shape or range, or ranks whose sum would not be
            exact; the message names it.
        """
        ranks, columns = checked_ranks(clients, query), _Columns(clients, query, noise)
        pivot = columns.read("pivot", np.dtype(np.int64))
        if pivot.min() < 0 or pivot.max() > 2 * MAX_RECORDS:
            raise ValueError(f"doubled pivots must be from 0 to {2 * MAX_RECORDS}")
        fraction = columns.read("share", np.dtype(np.float64))
        respond = columns.read("respond", np.dtype(np.bool_))
        if not ((fraction > 0) & (fraction <= 1)).all():
            raise ValueError("the count's fraction of the budget must be above 0 and at most 1")
        distance, mechanism = largest_distance(ranks, pivot), agreed_noise(query)
        if mechanism.mechanism == RESPONSE and not respond.all():
            raise ValueError(f"with {RESPONSE} every client must flip its labels, as agreed")
        check_sums(ranks.sizes, distance, mechanism.largest_sum)
        if np.any(~respond & (fraction == 1) & (distance > 0)):
            raise ValueError("no budget is left for a rank sum that depends on the labels")
        return cls(mechanism, ranks, pivot, fraction, respond, _whole(query, "sensitivity"))


def agreed_noise(query: Query) -> RankNoise:
    """The mechanism of a query, which must be the agreed one, within the agreed budget.

    Raises
    ------
    ValueError : for another mechanism, or more budget.
    """
    noise, agreed = query.broadcast["noise"], query.protocol.rank_noise
    if not isinstance(noise, RankNoise) or noise.mechanism != agreed.mechanism:
        raise ValueError(f"mechanism must be {agreed.mechanism}, as agreed, got {noise!r:.80}")
    if noise.epsilon > agreed.epsilon * SLACK or noise.delta > agreed.delta * SLACK:
        raise ValueError(f"the agreed budget is {agreed.epsilon}, {agreed.delta}, got {noise}")
    return noise


def public_records(query: Query) -> int:
    """The number of all clients' records, as the server announces it.

    Raises
    ------
    ValueError : for a value that is not a number of records.
    """
    records = _whole(query, "records")
    if records < 1:
        raise ValueError(f"records must be at least 1, got {records}")
    return records


def count_fraction(query: Query, name: str = "share") -> float:
    """The count's fraction of a reply's budget, the same for every client.

    Raises
    ------
    ValueError : for a fraction that leaves no noise.
    """
    fraction = query.broadcast[name]
    if not (isinstance(fraction, float | int) and 0 < fraction < 1):
        raise ValueError(f"{name} must be above 0 and below 1, got {fraction!r:.40}")
    return float(fraction)


def _whole(query: Query, name: str) -> int:
    value = query.broadcast.get(name, 0)
    if not isinstance(value, int | np.integer) or not 0 <= value <= 2 * MAX_RECORDS:
        raise ValueError(
            f"{name} must be a whole number from 0 to {2 * MAX_RECORDS}, got {value!r:.40}"
        )
    return int(value)


def checked_ranks(clients: Clients, query: Query) -> Ragged[np.int64]:
    """The doubled ranks of a query, one for every record.

    Raises
    ------
    ValueError : for values of another type or shape, or out of range.
    """
    ranks = query.per_client["ranks"]
    if not isinstance(ranks, Ragged) or not _whole_numbers(ranks):
        raise ValueError("ranks must be ragged 64-bit integers")
    if not np.array_equal(ranks.offsets, clients.offsets):
        raise ValueError("there must be one rank for every record")
    if ranks.minimum().min() < 0 or ranks.maximum().max() > 2 * MAX_RECORDS:
        raise ValueError(f"doubled ranks must be from 0 to {2 * MAX_RECORDS}")
    return ranks


def _whole_numbers(ranks: Ragged[Any]) -> bool:
    """Whether ranks are one 64-bit integer a record; an engine's are, and no message holds them."""
    if isinstance(ranks, StoredRanks):
        return True
    return bool(ranks.values.dtype == np.int64 and ranks.values.ndim == 1)


@dataclass(frozen=True)
class _Columns:
    """Numbers for clients: every client receives one, or one for each replicate."""

    clients: Clients
    query: Query
    noise: NoiseSource | None

    def read(self, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
        column, shape = np.asarray(self.query.per_client[name]), (self.clients.count,)
        several = column.ndim == 2 if self.noise is None else column.shape == self._several
        if column.dtype != dtype or column.shape[-1:] != shape or not (several or column.ndim == 1):
            raise ValueError(
                f"{name} must hold one {dtype} a client, got {column.dtype} of {column.shape}"
            )
        return column

    @property
    def _several(self) -> tuple[int, ...]:
        return () if self.noise is None else self.noise.full_shape((self.clients.count,))
