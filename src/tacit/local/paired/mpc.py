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

import tacit.protocol as tp
from tacit.arrays import Floats, Integers
from tacit.local.paired import kernels
from tacit.local.paired.noise import RESPONSE, PairNoise
from tacit.privacy.mechanisms.response import UniformIntegers
from tacit.protocol import mpc
from tacit.protocol.fields import ragged_of

SEED_BOUND = 2**62
"""Upper bound of the clients' random numbers."""

MAX_SEATS = 2**27
"""Largest number of seats in all matchings: 1 GiB, of which clients say how many there are."""


def believed_records(sizes: NDArray[Any], matchings: int) -> int:
    """The number of all records, of clients that say how many they have, before any has a seat.

    Raises
    ------
    DataError : for a number below 0, fewer than two records, or more than have seats.

    Examples
    --------
    >>> believed_records(np.array([3, 4]), matchings=2)
    7
    """
    if np.min(sizes) < 0:
        raise tp.DataError(f"numbers of records must be at least 0, got {np.min(sizes)}")
    records = int(sum(sizes.ravel().tolist()))  # exact, where 64 bits would overflow
    if records < 2:
        raise tp.DataError(f"pairs need at least two records, got {records}")
    if records * matchings > MAX_SEATS:
        raise tp.DataError(
            f"{matchings} matchings pair at most {MAX_SEATS // matchings} records, got {records}"
        )
    return records


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


@dataclass(frozen=True, eq=False)
class RecordPairs:
    """All pairs of records.

    Parameters
    ----------
    owners : the clients of every pair's first and second record, shape (2, pairs).
    indices : the records' indices among their clients' records, same shape.
    """

    owners: Integers
    indices: Integers

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
        >>> record_pairs.owners.tolist(), record_pairs.indices.tolist()
        ([[1], [0]], [[0], [1]])
        """
        records = np.stack([each.ravel() for each in seated_pairs(seats)])
        owners = np.searchsorted(offsets, records, side="right") - 1
        return cls(owners, records - offsets[owners])

    @property
    def clients(self) -> list[tuple[int, int]]:
        """The pairs of clients that have pairs of records, the lower first; also with itself."""
        client_pairs = np.unique(np.sort(self.owners, axis=0), axis=1)
        return [(int(lower), int(higher)) for lower, higher in client_pairs.T]

    def between(self, lower: int, higher: int) -> Integers:
        """The indices of the pairs of these two clients."""
        least, most = self.owners.min(axis=0), self.owners.max(axis=0)
        return np.flatnonzero((least == lower) & (most == higher))

    def of_client(self, client: int) -> NDArray[np.bool_]:
        """Which pairs have a record of this client."""
        return np.asarray((self.owners == client).any(axis=0))


CHUNK = 50_000
"""Number of pairs that two clients compute at once; it bounds their memory."""

COIN_SLACK = 1.0 + 2.0**-40
"""Factor on a coin's probability: it is rounded up, towards one half, which costs less epsilon."""


@dataclass(frozen=True, eq=False)
class PairWork:
    """A party's records in pairs, and the agreed settings under which it admits them.

    Parameters
    ----------
    kernel : the kernel that is computed: a name in ``kernels.GRIDS``.
    pair_noise : the noise of a pair.
    source : where the client's noise comes from. ``NoNoise()`` checks the arithmetic and is never
        for a release.
    rows : this party's records, shape (2, n), as ``paired_values`` takes them.
    """

    kernel: str
    pair_noise: PairNoise
    source: tp.NoiseSource
    rows: Floats

    @property
    def threshold(self) -> int:
        """A joint coin flips a value when it falls below this, of ``2**30``."""
        if isinstance(self.source, tp.NoNoise):
            return 0
        threshold = math.ceil(
            self.pair_noise.response.probability * kernels.COIN_MODULUS * COIN_SLACK
        )
        return min(threshold, kernels.COIN_MODULUS // 2)

    def shares(
        self, run: mpc.SharedRun, indices: Integers, leading: NDArray[np.bool_], chunk: int = CHUNK
    ) -> Iterator[mpc.Words]:
        """This party's shares of noisy values of pairs with another party's records, in chunks.

        Parameters
        ----------
        run : the computation of the two parties.
        indices : which of this party's records is in each pair, shape (m,).
        leading : whether it is the first of the pair, shape (m,).
        chunk : how many pairs are computed at once.
        """
        if self.pair_noise.responds:
            function = kernels.responding_kernel(self.kernel, self.threshold, run.arrays)
        else:
            function = kernels.noisy_kernel(self.kernel, run.arrays)
        name = (self.kernel, self.pair_noise.kind, self.threshold)
        for start in range(0, indices.size, chunk):
            part = slice(start, start + chunk)
            codes = kernels.kernel_codes(self.kernel, self.rows[:, indices[part]], leading[part])
            inputs = np.vstack([codes, self._noise(codes.shape[1])])
            yield run.shares(name, function, inputs, [inputs.shape] * 2)

    def alone(self, first: Integers, second: Integers) -> Integers:
        """Noisy values of pairs of this party's records, shape (m,)."""
        values = kernels.paired_values(self.kernel, self.rows[:, first], self.rows[:, second])
        inside = np.zeros((1, values.size), dtype=np.bool_)
        noisy = self.pair_noise.applied(values[np.newaxis], inside, self.source)
        return np.asarray(noisy[0], dtype=np.int64)

    def _noise(self, pairs: int) -> Integers:
        """This party's random row: half of a coin, or a draw or half a draw of noise."""
        if self.pair_noise.responds:
            return self.source.draw(UniformIntegers(kernels.COIN_MODULUS), (pairs,))
        return self.source.draw(self.pair_noise.part, (pairs,))


class PairsProgram(tp.MPCProgram):
    """The noisy values of all pairs, as ``compute_pairs`` gives them.

    A client computes the pairs of its records alone, and those with each other client in one
    session of the two. It sends the server its share of every pair that has one of its records.
    """

    def offer(self, clients: tp.Clients, query: tp.Query) -> Mapping[str, Any]:
        """The number of records, which is public."""
        return {"records": clients.records}

    def compute(
        self,
        clients: tp.Clients,
        query: tp.Query,
        noise: tp.NoiseSource,
        state: tp.ClientState,
        peers: tp.Peers,
    ) -> tp.Reply:
        """Shares of the values of this client's pairs, in the order of the pairs.

        Raises
        ------
        MPCError : when the others do not do their part, or the numbers of seats are not those of
            the records.
        DataError : for seats by which a record would be in more pairs than agreed.
        """
        settings, index = query.protocol, peers.index
        seats = checked_seats(query).values
        offsets = _offsets(peers, clients.records, seats.shape[-1])
        record_pairs = RecordPairs.of(offsets, seats)
        pair_noise = settings.pair_noise(float(query.broadcast["epsilon"]))
        work = PairWork(settings.function, pair_noise, noise, settings.rows(clients))
        values = np.zeros(record_pairs.owners.shape[1], dtype=np.int64)
        for lower, higher in record_pairs.clients:
            pairs = record_pairs.between(lower, higher)
            first, second = record_pairs.indices[:, pairs]
            if index == lower == higher:
                values[pairs] = work.alone(first, second)
            elif index in (lower, higher):
                leading = record_pairs.owners[0, pairs] == index
                with peers.link((lower, higher), pairs.size) as run:
                    parts = list(work.shares(run, np.where(leading, first, second), leading))
                values[pairs] = np.concatenate(parts).view(np.int64)
        return {"values": values[record_pairs.of_client(index)]}

    def combined(self, query: tp.Query, replies: Sequence[tp.Reply]) -> tp.Reply:
        """The values that the shares add up to.

        Raises
        ------
        ValueError : for another number of shares, or values that cannot be.
        """
        settings = query.protocol
        seats = checked_seats(query)
        record_pairs = RecordPairs.of(seats.offsets, seats.values)
        values = np.zeros(record_pairs.owners.shape[1], dtype=np.int64)
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


def checked_seats(query: tp.Query) -> tp.Ragged[np.int64]:
    """The seats of a query, as many permutations of the records as were agreed.

    Raises
    ------
    DataError : for another number of matchings, or a seat that is taken twice or does not exist.
    """
    ragged, matchings = ragged_of(query.per_client["seats"], "seats"), query.protocol.pairs_a_record
    seats = ragged.values
    if seats.ndim < 2 or seats.shape[-2] != matchings:
        raise tp.DataError(
            f"records take part in {matchings} matchings, got seats of {seats.shape}"
        )
    every = np.broadcast_to(np.arange(seats.shape[-1]), seats.shape)
    if not np.array_equal(np.sort(seats, axis=-1), every):
        raise tp.DataError("in every matching each record has one seat, and each seat one record")
    return ragged


def _offsets(peers: tp.Peers, own: int, records: int) -> Integers:
    """Where each client's records begin and end, from the numbers that they announced.

    A message keeps no offsets between clients. Each record of this client has a seat of its own in
    every matching then, and so one pair at most.

    Parameters
    ----------
    peers : the clients, with what they announced.
    own : this client's number of records.
    records : the number of seats.

    Raises
    ------
    MPCError : for what are no numbers of records, another number than that of the seats, or another
        than this client's own.
    """
    sizes: list[Any] = [offer.get("records") for offer in peers.offers]
    counts = all(type(size) is int and size >= 0 for size in sizes)
    if not (counts and sum(sizes) == records and sizes[peers.index] == own):
        raise mpc.MPCError(f"{records} records have seats, and the parties announced {sizes!r:.60}")
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
