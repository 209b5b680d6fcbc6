"""Which records are paired: random perfect matchings of all records (Bell et al. 2020, section 5).

A matching gives every record a seat. Seats ``2 p`` and ``2 p + 1`` are the first and the second of
pair p. Of an odd number of records the one with the last seat is in no pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.errors import DataError

SEED_BOUND = 2**62
"""Upper bound of the clients' random numbers."""


def drawn_seats(numbers: NDArray[Any], matchings: int, records: int) -> Integers:
    """The seats of all records in so many independent matchings.

    The clients' random numbers are combined by exclusive or, so that one number that the
    other clients did not know makes the matchings random. The matchings need not be secret: a
    guarantee about pairs holds for every matching.

    Parameters
    ----------
    numbers : one a client, from 0 to below ``SEED_BOUND``, shape (..., K).
    matchings : Q.
    records : n.

    Returns
    -------
    Seats of shape (..., Q, n), each row a permutation of ``0 .. n - 1``.

    Examples
    --------
    >>> seats = drawn_seats(np.array([5, 9]), matchings=2, records=7)
    >>> seats.shape, np.sort(seats).tolist()[0]
    ((2, 7), [0, 1, 2, 3, 4, 5, 6])
    """
    seeds = np.bitwise_xor.reduce(numbers, axis=-1)
    rows = np.broadcast_to(np.arange(records, dtype=np.int64), (matchings, records))
    drawn = [np.random.default_rng(int(seed)).permuted(rows, axis=-1) for seed in seeds.flat]
    return np.stack(drawn).reshape(*seeds.shape, matchings, records)


def seated_pairs(seats: Integers) -> tuple[Integers, Integers]:
    """The indices of the first and of the second record of every pair, each (..., Q, n // 2).

    Examples
    --------
    >>> first, second = seated_pairs(np.array([[3, 4, 0, 1, 2]]))
    >>> first.tolist(), second.tolist()
    ([[2, 4]], [[3, 0]])
    """
    order = np.empty_like(seats)
    indices = np.broadcast_to(np.arange(seats.shape[-1], dtype=np.int64), seats.shape)
    np.put_along_axis(order, seats, indices, axis=-1)
    end = seats.shape[-1] // 2 * 2
    return order[..., 0:end:2], order[..., 1:end:2]


def check_seats(seats: Integers, matchings: int) -> None:
    """Refuse seats by which a record would be in more pairs than were agreed.

    Raises
    ------
    DataError : for another number of matchings, or a seat that is taken twice or does not exist.
    """
    if seats.ndim < 2 or seats.shape[-2] != matchings:
        raise DataError(f"records take part in {matchings} matchings, got seats of {seats.shape}")
    if not np.array_equal(
        np.sort(seats, axis=-1), np.broadcast_to(np.arange(seats.shape[-1]), seats.shape)
    ):
        raise DataError("in every matching each record has one seat, and each seat one record")


@dataclass(frozen=True, eq=False)
class RecordPairs:
    """All pairs of records: their clients, and their indices among each client's records.

    Every array has shape (pairs,).
    """

    first_client: Integers
    second_client: Integers
    first_index: Integers
    second_index: Integers

    @classmethod
    def of(cls, offsets: Integers, first: Integers, second: Integers) -> RecordPairs:
        """The pairs of the records ``first`` and ``second``, which count all clients' records.

        Parameters
        ----------
        offsets : where each client's records begin and end, shape (K+1,).

        Examples
        --------
        >>> record_pairs = RecordPairs.of(np.array([0, 2, 3]), np.array([2]), np.array([1]))
        >>> record_pairs.first_client.tolist(), record_pairs.second_index.tolist()
        ([1], [1])
        """
        first_client, second_client = (
            np.searchsorted(offsets, records, side="right") - 1 for records in (first, second)
        )
        return cls(
            first_client,
            second_client,
            first - offsets[first_client],
            second - offsets[second_client],
        )

    @property
    def clients(self) -> list[tuple[int, int]]:
        """The pairs of clients that have pairs of records, the lower first; also with itself."""
        low = np.minimum(self.first_client, self.second_client)
        high = np.maximum(self.first_client, self.second_client)
        client_pairs = np.unique(np.stack([low, high]), axis=1)
        return [(int(lower), int(higher)) for lower, higher in client_pairs.T]

    def between(self, client: int, other: int) -> Integers:
        """The indices of the pairs of these two clients."""
        straight = (self.first_client == client) & (self.second_client == other)
        crossed = (self.first_client == other) & (self.second_client == client)
        return np.flatnonzero(straight | crossed)

    def side(self, pairs: Integers, client: int) -> tuple[Integers, NDArray[np.bool_]]:
        """One client's records in pairs with another client, and whether each is the first."""
        leading = self.first_client[pairs] == client
        indices = np.where(leading, self.first_index[pairs], self.second_index[pairs])
        return indices, leading

    def of_client(self, client: int) -> NDArray[np.bool_]:
        """Which pairs have a record of this client."""
        return (self.first_client == client) | (self.second_client == client)
