"""Values of several clients in one flat array, cut by offsets, in memory or where they are stored.

The order of many records by client and by score, and among clients that they are dealt out to. Of
records that stay in files or a database an engine makes one pass in ascending order of scores, and
adds up what protocols need of ranks. So memory holds numbers of clients, and none of records.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.errors import DataError
from tacit.metrics.ranking import doubled_mid_ranks

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class Ragged(Generic[Scalar]):
    """Values of several clients in one array: client ``k`` holds ``offsets[k]:offsets[k+1]``.

    The client axis is the last one; an optional leading axis holds replicates.
    """

    values: NDArray[Scalar]
    offsets: NDArray[np.int64]

    @property
    def clients(self) -> int:
        """The number of clients."""
        return self.offsets.size - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of values of each client, shape (K,)."""
        return np.diff(self.offsets)

    @property
    def itemsize(self) -> int:
        """The bytes of a value."""
        return self.values.itemsize

    def sum(self) -> NDArray[Any]:
        """The sum of each client's values, shape (..., K)."""
        return np.add.reduceat(self.values, self.offsets[:-1], axis=-1)

    def minimum(self) -> NDArray[Scalar]:
        """The smallest value of each client, shape (..., K)."""
        return np.minimum.reduceat(self.values, self.offsets[:-1], axis=-1)

    def maximum(self) -> NDArray[Scalar]:
        """The largest value of each client, shape (..., K)."""
        return np.maximum.reduceat(self.values, self.offsets[:-1], axis=-1)

    def part(self, start: int, stop: int) -> Ragged[Scalar]:
        """The clients ``start`` to ``stop - 1``."""
        low, high = int(self.offsets[start]), int(self.offsets[stop])
        return Ragged(self.values[..., low:high], self.offsets[start : stop + 1] - low)


SHORT = 1 << 16
"""Fewer clients than this are sorted by digits, in linear time."""

PART = 1 << 18
"""About so many records are sorted at a time: in a thread, and in a processor's cache."""


def by_client(ids: NDArray[Any]) -> tuple[Integers, Integers, tuple[str, ...]]:
    """Indices of the records in order of their clients' ids, where clients start, and their names.

    Records keep their order within a client.

    Parameters
    ----------
    ids : shape (M,), integers or strings.

    Raises
    ------
    DataError : for integers among strings.
    """
    try:
        names, index = np.unique(ids, return_inverse=True)
    except TypeError:
        raise DataError("client ids must be all integers or all strings") from None
    return *by_place(index, names.size), tuple(str(name) for name in names)


def by_place(whose: Integers, clients: int) -> tuple[Integers, Integers]:
    """Indices of the records in order of their clients, and where clients start.

    Parameters
    ----------
    whose, clients : as for ``client_order``.
    """
    offsets = np.concatenate(([0], np.cumsum(np.bincount(whose, minlength=clients))))
    return client_order(whose, clients), offsets.astype(np.int64)


def client_order(whose: Integers, clients: int) -> Integers:
    """Indices of the records by client, those of a client in their own order, shape (M,).

    Parameters
    ----------
    whose : the index of each record's client, shape (M,).
    clients : K.
    """
    if clients == 1:
        return np.arange(whose.size, dtype=np.int64)
    short = whose.astype(np.uint16) if clients <= SHORT else whose
    return np.argsort(short, kind="stable")


def ascending_order(scores: Floats, sizes: Integers) -> Integers:
    """Indices of the records in ascending order of score within each client, shape (M,).

    Equal scores keep their order.

    Parameters
    ----------
    scores : by client, shape (M,).
    sizes : the records of each client, shape (K,).

    Examples
    --------
    >>> ascending_order(np.array([0.3, 0.1, 0.2, 0.0]), np.array([2, 2])).tolist()
    [1, 0, 3, 2]
    """
    if sizes.size == scores.size:
        return np.arange(scores.size, dtype=np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    if scores.size <= PART:
        return _order_of_clients(scores, sizes)
    # the first client of each part: parts end where clients end
    firsts = np.unique(np.searchsorted(offsets, np.arange(0, scores.size, PART), side="left"))
    bounds = np.append(firsts[firsts < sizes.size], sizes.size)
    order = np.empty(scores.size, dtype=np.int64)

    def fill(part: int) -> None:
        first, last = bounds[part], bounds[part + 1]
        start, stop = offsets[first], offsets[last]
        order[start:stop] = _order_of_clients(scores[start:stop], sizes[first:last]) + start

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(bounds.size - 1)))
    return order


def _order_of_clients(scores: Floats, sizes: Integers) -> Integers:
    order = np.argsort(scores, kind="stable")
    if sizes.size == 1:
        return order
    owners = np.repeat(np.arange(sizes.size, dtype=np.int64), sizes)
    return order[client_order(owners[order], sizes.size)]


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


@dataclass(frozen=True, eq=False)
class RankTotals:
    """Totals of every client's doubled mid-ranks (``doubled_mid_ranks``), of all its records.

    Parameters
    ----------
    sums : shape (K,).
    least, largest : shape (K,).
    scatter : the sum of squared distances of ranks, not doubled, to the client's mean, shape (K,).
    """

    sums: Integers
    least: Integers
    largest: Integers
    scatter: Floats


@dataclass(frozen=True, eq=False)
class Placements:
    """The AUC of all records, and its sampling variance by DeLong et al. 1988.

    Parameters
    ----------
    positives, negatives : the sizes of the classes.
    doubled_wins : twice the number of pairs whose positive has the higher score, a tie half.
    variance : NaN where a class has fewer than two records.
    """

    positives: int
    negatives: int
    doubled_wins: int
    variance: float


@dataclass(frozen=True, eq=False)
class ScoreRanges:
    """Where every client's scores lie, shape (K,) each.

    Parameters
    ----------
    outside : the number of scores beyond [0, 1] by more than rounding.
    least, largest : the ends.
    widths : from the 5th to the 95th percentile.
    """

    outside: Integers
    least: Floats
    largest: Floats
    widths: Floats


@dataclass(frozen=True, eq=False)
class Ranked:
    """What one pass over the records in order of their scores adds up.

    Parameters
    ----------
    ranks : of all records.
    positives, positive_sums : every client's positives, and the sum of their doubled ranks, (K,).
    placements : of all clients together.
    ranges : of the scores.
    """

    ranks: RankTotals
    positives: Integers
    positive_sums: Integers
    placements: Placements
    ranges: ScoreRanges


@dataclass(frozen=True, eq=False)
class Listed:
    """Consecutive records in ascending order of their scores, among those of all clients.

    Of records with one score those of a client follow each other, its negatives first. So the order
    is the same in every pass, but for records that are alike.

    Parameters
    ----------
    place : how many records are before them.
    scores : shape (m,).
    whose : the index of each record's client, shape (m,).
    labels : shape (m,).
    ranks : doubled mid-ranks, shape (m,).
    """

    place: int
    scores: Floats
    whose: Integers
    labels: NDArray[np.int8]
    ranks: Integers


@dataclass(frozen=True, eq=False)
class Ranking:
    """Passes over records in order of their scores, where these are stored.

    Parameters
    ----------
    ranked : the totals of all records; the pass is made once.
    listed : the records themselves, a few at a time, by another pass.
    """

    ranked: Callable[[], Ranked]
    listed: Callable[[], Iterator[Listed]]


class StoredScores(Ragged[np.float64]):
    """The scores of records that stay where they are stored; ``values`` reads them into memory.

    Parameters
    ----------
    offsets : shape (K+1,).
    ranked : makes the pass at its first use.
    load : reads all scores, in ascending order within each client.
    """

    def __init__(
        self, offsets: Integers, ranked: Callable[[], Ranked], load: Callable[[], Floats]
    ) -> None:
        vars(self).update(offsets=offsets, _ranked=ranked, _load=load)

    itemsize = np.dtype(np.float64).itemsize
    _ranked: Callable[[], Ranked]
    _load: Callable[[], Floats]

    @cached_property
    def values(self) -> Floats:
        """All scores, read into memory, shape (M,)."""
        return self._load()

    @property
    def ranks(self) -> StoredRanks:
        """The doubled ranks of these scores among those of all clients."""
        return StoredRanks(self.offsets, self._ranked().ranks, self)

    @property
    def ranges(self) -> ScoreRanges:
        """Where the scores lie."""
        return self._ranked().ranges

    def minimum(self) -> Floats:
        """The least score of each client, shape (K,)."""
        return self.ranges.least

    def maximum(self) -> Floats:
        """The largest score of each client, shape (K,)."""
        return self.ranges.largest


class StoredRanks(Ragged[np.int64]):
    """Doubled ranks of which totals are known; ``values`` ranks the records in memory.

    Parameters
    ----------
    offsets : shape (K+1,).
    totals : of every client.
    scores : what is ranked.
    """

    def __init__(self, offsets: Integers, totals: RankTotals, scores: StoredScores) -> None:
        vars(self).update(offsets=offsets, totals=totals, _scores=scores)

    itemsize = np.dtype(np.int64).itemsize
    totals: RankTotals
    _scores: StoredScores

    @cached_property
    def values(self) -> Integers:
        """The ranks of all records, in memory, shape (M,)."""
        return doubled_mid_ranks(self._scores.values)

    def sum(self) -> Integers:
        """The sum of each client's ranks, shape (K,)."""
        return self.totals.sums

    def minimum(self) -> Integers:
        """The least rank of each client, shape (K,)."""
        return self.totals.least

    def maximum(self) -> Integers:
        """The largest rank of each client, shape (K,)."""
        return self.totals.largest


class StoredLabels(Ragged[np.uint8]):
    """Packed labels of records that stay where they are stored.

    Parameters
    ----------
    offsets : of each client's bytes, shape (K+1,).
    ranked : makes the pass at its first use.
    """

    def __init__(self, offsets: Integers, ranked: Callable[[], Ranked]) -> None:
        vars(self).update(offsets=offsets, _ranked=ranked)

    itemsize = np.dtype(np.uint8).itemsize
    _ranked: Callable[[], Ranked]

    @property
    def values(self) -> NDArray[np.uint8]:
        """No one needs the bits besides the placements.

        Raises
        ------
        TypeError : always.
        """
        raise TypeError("labels of stored records are known by their placements only")

    @property
    def placements(self) -> Placements:
        """The AUC with these labels."""
        return self._ranked().placements


def doubled_ranks(scores: Ragged[np.float64]) -> Ragged[np.int64]:
    """Twice the mid-rank of every score among those of all clients.

    Examples
    --------
    >>> doubled_ranks(Ragged(np.array([0.2, 0.9, 0.2]), np.array([0, 2, 3]))).values
    array([1, 4, 1])
    """
    if isinstance(scores, StoredScores):
        return scores.ranks
    return Ragged(doubled_mid_ranks(scores.values), scores.offsets)


def rank_scatter(ranks: Ragged[np.int64]) -> Floats:
    """The sum of squared distances of each client's ranks, not doubled, to their mean, (K,)."""
    if isinstance(ranks, StoredRanks):
        return ranks.totals.scatter
    # in place: there may be many ranks
    centred = ranks.values / 2
    centred -= np.repeat(ranks.sum() / (2 * ranks.sizes.astype(np.float64)), ranks.sizes)
    centred *= centred
    return np.asarray(np.add.reduceat(centred, ranks.offsets[:-1]))
