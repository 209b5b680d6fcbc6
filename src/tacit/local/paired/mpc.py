"""How real clients compute the noisy values of pairs of their records, two clients at a time.

Which records are paired: random perfect matchings of all records (Bell et al. 2020, section 5).

A matching gives every record a seat. Seats ``2 p`` and ``2 p + 1`` are the first and the second of
pair p. Of an odd number of records the one with the last seat is in no pair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.batches.ragged import Ragged
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.local.paired import kernels
from tacit.local.paired.noise import RESPONSE, PairNoise
from tacit.privacy.mechanisms.response import UniformIntegers
from tacit.privacy.sampling.noise import NoiseSource, NoNoise
from tacit.protocol.conversation import ClientState, Query, Reply
from tacit.protocol.fields import ragged_of
from tacit.protocol.mpc import Function, MPCError, MPCProgram, Peers, SharedRun, Words

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
    def of(cls, offsets: Integers, seats: Integers) -> RecordPairs:
        """The pairs of all matchings, of records that count all clients' records.

        Parameters
        ----------
        offsets : where each client's records begin and end, shape (K+1,).
        seats : of all records, shape (Q, n).

        Examples
        --------
        >>> record_pairs = RecordPairs.of(np.array([0, 2, 3]), np.array([[2, 1, 0]]))
        >>> record_pairs.first_client.tolist(), record_pairs.second_index.tolist()
        ([1], [1])
        """
        first, second = (each.ravel() for each in seated_pairs(seats))
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


CHUNK = 50_000
"""Number of pairs that two clients compute at once; it bounds their memory."""

COIN_SLACK = 1.0 + 2.0**-40
"""Factor on a coin's probability: it is rounded up, towards one half, which costs less epsilon."""


@dataclass(frozen=True)
class Terms:
    """The agreed settings under which a party admits its records to pairs.

    Parameters
    ----------
    kernel : the kernel that is computed: a name in ``kernels.COLUMNS``.
    pair_noise : the noise of a pair.
    matchings : the largest number of pairs of a record.
    source : where the client's noise comes from. ``NoNoise()`` checks the arithmetic and is never
        for a release.
    """

    kernel: str
    pair_noise: PairNoise
    matchings: int
    source: NoiseSource

    @property
    def threshold(self) -> int:
        """A joint coin flips a value when it falls below this, of ``2**30``."""
        if isinstance(self.source, NoNoise):
            return 0
        threshold = math.ceil(self.pair_noise.flip * kernels.COIN_MODULUS * COIN_SLACK)
        return min(threshold, kernels.COIN_MODULUS // 2)


class PairWork:
    """A party's records in pairs: it admits no record to more pairs than agreed.

    Parameters
    ----------
    terms : what was agreed.
    rows : this party's records, shape (2, n), as ``paired_values`` takes them.
    """

    def __init__(self, terms: Terms, rows: NDArray[Any]) -> None:
        if rows.ndim != 2 or rows.shape[0] != 2:
            raise ValueError(f"records have two rows, got an array of shape {rows.shape}")
        self._terms = terms
        self._rows = np.ascontiguousarray(rows, dtype=np.float64)
        self._pairs_by_record = np.zeros(rows.shape[1], dtype=np.int64)

    def shares(
        self,
        run: SharedRun,
        indices: NDArray[Any],
        leading: NDArray[Any],
        chunk: int,
    ) -> Iterator[Words]:
        """This party's shares of noisy values of pairs with another party's records, in chunks.

        Parameters
        ----------
        run : the computation of the two parties.
        indices : which of this party's records is in each pair, shape (m,).
        leading : whether it is the first of the pair, shape (m,).
        chunk : how many pairs are computed at once.
        """
        if indices.shape != leading.shape or chunk < 1:
            raise ValueError(f"{indices.size} indices, {leading.size} orders, chunks of {chunk}")
        self._admit(indices)
        agreed = self._terms
        function = self._function(run.arrays)
        name = (agreed.kernel, agreed.pair_noise.kind, agreed.threshold)
        for start in range(0, indices.size, chunk):
            part = slice(start, start + chunk)
            records = self._rows[:, indices[part]]
            codes = kernels.kernel_codes(agreed.kernel, records, leading[part])
            inputs = np.vstack([codes, self._noise(records.shape[1])])
            yield run.shares(name, function, inputs, [inputs.shape] * 2)

    def alone(self, first: NDArray[Any], second: NDArray[Any]) -> Integers:
        """Noisy values of pairs of this party's records, shape (m,)."""
        if first.shape != second.shape:
            raise ValueError(f"{first.size} first records and {second.size} second ones")
        self._admit(np.concatenate([first, second]))
        agreed = self._terms
        values = kernels.paired_values(agreed.kernel, self._rows[:, first], self._rows[:, second])
        inside = np.zeros((1, values.size), dtype=np.bool_)
        noisy = agreed.pair_noise.applied(values[np.newaxis], inside, agreed.source)
        return np.asarray(noisy[0], dtype=np.int64)

    def _admit(self, indices: NDArray[Any]) -> None:
        """Count the pairs of every record, and refuse more than were agreed."""
        size = self._pairs_by_record.size
        if indices.dtype != np.int64 or np.any((indices < 0) | (indices >= size)):
            raise ValueError(f"indices of records must be from 0 to {size - 1}")
        pairs_by_record = self._pairs_by_record + np.bincount(indices, minlength=size)
        if pairs_by_record.max(initial=0) > self._terms.matchings:
            raise ValueError(
                f"a record may be in {self._terms.matchings} pairs, got {pairs_by_record.max()}"
            )
        self._pairs_by_record = pairs_by_record

    def _function(self, arrays: Any) -> Function:
        agreed = self._terms
        if agreed.pair_noise.kind == RESPONSE:
            return kernels.responding_kernel(agreed.kernel, agreed.threshold, arrays)
        return kernels.noisy_kernel(agreed.kernel, arrays)

    def _noise(self, pairs: int) -> Integers:
        """This party's random row: half of a coin, or a draw or half a draw of noise."""
        agreed, source = self._terms, self._terms.source
        if agreed.pair_noise.kind == RESPONSE:
            return source.draw(UniformIntegers(kernels.COIN_MODULUS), (pairs,))
        return source.draw(agreed.pair_noise.part, (pairs,))


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
        settings = query.protocol
        seats = checked_seats(query)
        offsets = _offsets(peers, seats.values.shape[-1])
        record_pairs = RecordPairs.of(offsets, seats.values)
        pair_noise = settings.pair_noise(float(query.broadcast["epsilon"]))
        terms = Terms(settings.function, pair_noise, settings.pairs_a_record, noise)
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
        settings = query.protocol
        seats = checked_seats(query)
        record_pairs = RecordPairs.of(seats.offsets, seats.values)
        values = np.zeros(record_pairs.first_client.size, dtype=np.int64)
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


def checked_seats(query: Query) -> Ragged[np.int64]:
    """The seats of a query, as many permutations of the records as were agreed."""
    seats = ragged_of(query.per_client["seats"], "seats")
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
