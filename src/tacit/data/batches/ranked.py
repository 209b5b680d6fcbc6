"""What is known of the ranks of records that stay where they are stored.

An engine gives the records in ascending order of their scores, and one pass over them in batches
adds up what protocols need of ranks. So memory holds numbers of clients, and none of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.batches.ragged import Ragged
from tacit.metrics.ranking import doubled_mid_ranks


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
        """Nobody needs the bits beside the placements.

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
