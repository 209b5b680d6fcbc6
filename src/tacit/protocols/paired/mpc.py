"""How real clients compute the noisy values of pairs of their records, two clients at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.privacy.sampling.noise import NoiseSource
from tacit.protocol.conversation import ClientState, Query, Reply
from tacit.protocol.mpc import MPCError, MPCProgram, Peers
from tacit.protocols.paired.matching import check_seats, seated_pairs
from tacit.protocols.paired.noise import RESPONSE
from tacit.protocols.paired.work import PairWork, Terms

if TYPE_CHECKING:
    from tacit.protocols.paired.protocol import PairedUStatistic


CHUNK = 50_000
"""Number of pairs that two clients compute at once; it bounds their memory."""


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


@dataclass(frozen=True)
class PairsProgram(MPCProgram):
    """The noisy values of all pairs, as ``compute_pairs`` gives them.

    A client computes the pairs of its records alone, and those with each other client in one
    session of the two. It sends the server its share of every pair that has one of its records.

    Parameters
    ----------
    chunk : how many pairs two clients compute at once.
    """

    chunk: int = CHUNK

    def offer(self, clients: Clients, query: Query) -> Mapping[str, Any]:
        """The number of records, which is public."""
        return {"records": clients.records}

    def compute(
        self, clients: Clients, query: Query, noise: NoiseSource, state: ClientState, peers: Peers
    ) -> Reply:
        """Shares of the values of this client's pairs, in the order of the pairs.

        Raises
        ------
        MPCError : when the others do not do their part, or the numbers of seats are not those of
            the records.
        DataError : for seats by which a record would be in more pairs than agreed.
        """
        settings: PairedUStatistic = query.protocol
        seats = _seats(query)
        record_pairs = RecordPairs.of(_offsets(peers, seats.values.shape[-1]), *_paired(seats))
        pair_noise = settings.pair_noise(float(query.broadcast["epsilon"]))
        terms = Terms(settings.kernel, pair_noise, settings.pairs_a_record, noise)
        work, index = PairWork(terms, settings.rows(clients)), peers.index
        values = np.zeros(record_pairs.first_client.size, dtype=np.int64)
        for lower, higher in record_pairs.clients:
            pairs = record_pairs.between(lower, higher)
            if index == lower == higher:
                first, second = record_pairs.first_index[pairs], record_pairs.second_index[pairs]
                values[pairs] = work.alone(first, second)
            elif index in (lower, higher):
                indices, leading = record_pairs.side(pairs, index)
                with peers.link((lower, higher), pairs.size) as run:
                    parts = list(work.shares(run, indices, leading, self.chunk))
                values[pairs] = np.concatenate(parts).view(np.int64)
        return {"values": values[record_pairs.of_client(index)]}

    def combined(self, query: Query, replies: Sequence[Reply]) -> Reply:
        """The values that the shares add up to.

        Raises
        ------
        ValueError : for another number of shares, or values that cannot be.
        """
        settings: PairedUStatistic = query.protocol
        seats = _seats(query)
        first, second = _paired(seats)
        record_pairs = RecordPairs.of(seats.offsets, first, second)
        values = np.zeros(first.size, dtype=np.int64)
        for client, reply in enumerate(replies):
            shares, pairs = reply.get("values"), record_pairs.of_client(client)
            expected = (int(pairs.sum()),)
            if not isinstance(shares, np.ndarray) or shares.dtype != np.int64:
                raise ValueError(f"party {client} sent no shares of its pairs")
            if shares.shape != expected:
                raise ValueError(f"party {client} sent {shares.shape} shares, not {expected[0]}")
            values[pairs] += shares
        if settings.kind == RESPONSE:
            if np.any((values != 0) & (values != 1)):
                raise ValueError("the parties' shares do not add up to bits")
            values = values.astype(np.uint8)
        return {"values": values.reshape(settings.pairs_a_record, -1)}


def _seats(query: Query) -> Ragged[np.int64]:
    seats = query.per_client["seats"]
    if not isinstance(seats, Ragged):
        raise TypeError("seats must be ragged")
    check_seats(seats.values, query.protocol.pairs_a_record)
    return seats


def _offsets(peers: Peers, records: int) -> Integers:
    """Where each client's records begin and end, from the numbers that they announced.

    A message keeps no offsets between clients.

    Raises
    ------
    MPCError : for what are no numbers of records, or another number than that of the seats.
    """
    sizes: list[Any] = [offer.get("records") for offer in peers.offers]
    if not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) != records:
        raise MPCError(f"{records} records have seats, and the parties announced {sizes!r:.60}")
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _paired(seats: Ragged[np.int64]) -> tuple[Integers, Integers]:
    """The first and the second record of every pair, counting all clients' records."""
    first, second = seated_pairs(seats.values)
    return first.ravel(), second.ravel()
