"""One pass over records in ascending order of their scores: totals of ranks, in bounded memory.

A part of a batch holds whole groups of equal scores. The last group of a part may go on in the next
one, so only its counts by client and label are remembered until another score comes.

What parts of ranked records add up to: moments of ranks, placements, ends of scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.ragged import Listed, Placements, Ranked, RankTotals, ScoreRanges, client_order
from tacit.data.scales import ROUNDING, WIDTH_FRACTIONS


class Moments:
    """Counts and sums of doubled ranks by client and label, and second moments by client.

    What is not by label follows from no label, to the last bit: from it the server chooses how it
    asks, and states errors.

    Parameters
    ----------
    clients : K.
    """

    def __init__(self, clients: int) -> None:
        self.counts = np.zeros(2 * clients, dtype=np.int64)
        self.sums = np.zeros(2 * clients, dtype=np.int64)
        self._squares = np.zeros(clients)
        self._least = np.full(clients, -1, dtype=np.int64)
        self._largest = np.zeros(clients, dtype=np.int64)

    def add(self, part: Part) -> None:
        """Add the records of a part."""
        size, codes, whose = self.counts.size, part.codes, part.codes >> 1
        # a part's ranks are below 2**17: sums of 2**16 squares are exact
        weighted = part.times * part.ranks
        counts = np.bincount(codes, part.times, size).astype(np.int64)
        sums = np.bincount(codes, weighted, size).astype(np.int64)
        squares = np.bincount(whose, weighted * part.ranks, self._squares.size)
        squares -= _of_client(sums).astype(np.float64) ** 2 / np.maximum(_of_client(counts), 1)
        sums += part.base * counts
        known = _of_client(self.counts), _of_client(self.sums)
        self._squares += squares + _moved(*known, _of_client(counts), _of_client(sums))
        self.counts, self.sums = self.counts + counts, self.sums + sums
        # ranks ascend: the least of clients without one yet, and the largest of all in the part
        ranks = part.base + part.ranks.astype(np.int64)
        _set_first(self._least, self._least < 0, whose, ranks)
        self._largest[whose] = ranks

    def totals(self) -> RankTotals:
        """The totals of each client's records of both classes."""
        # a squared distance of doubled ranks is 4 times that of ranks
        return RankTotals(_of_client(self.sums), self._least, self._largest, self._squares / 4)


def _of_client(by_code: Integers) -> Integers:
    """Sums over both labels, shape (K,)."""
    return np.asarray(by_code[::2] + by_code[1::2])


def _moved(counts: Integers, sums: Integers, more: Integers, more_sums: Integers) -> Floats:
    """What the distance of two groups' means adds to their squared distances.

    ``n m / (n + m) (a - b)^2`` for groups of n and m with means a and b (Chan et al. 1979).
    """
    distance = sums / np.maximum(counts, 1) - more_sums / np.maximum(more, 1)
    factor = counts.astype(np.float64) * more / np.maximum(counts + more, 1)
    return factor * distance**2


def _set_first(
    values: NDArray[np.generic], unset: NDArray[np.bool_], whose: Integers, observed: NDArray[Any]
) -> None:
    """Set values that are not set to each client's first one in ascending order."""
    if not unset.any():
        return
    first = values.copy()
    # of several assignments to one place the last counts
    first[whose[::-1]] = observed[::-1]
    values[unset] = first[unset]


class PlacementSums:
    """Sums of each record's placement: the records of the other class below it, a tie one half."""

    def __init__(self) -> None:
        # negatives and positives: sizes, sums of doubled placements, their squared distances
        self._sizes = [0, 0]
        self._sums = [0, 0]
        self._squares = [0.0, 0.0]

    def add(self, sizes: Floats, positives: Floats) -> None:
        """Add groups of equal scores, ascending.

        Parameters
        ----------
        sizes, positives : how many records are in each group, and positives among them, (G,).
        """
        before, by_label = list(self._sizes), (sizes - positives, positives)
        for label, weights in enumerate(by_label):
            # twice those of the other class below, and those in its group
            others = by_label[1 - label]
            placement = 2 * np.cumsum(others) - others
            size = int(weights.sum())
            if size:
                self._merge(label, size, weights, placement, 2 * before[1 - label])

    def _merge(
        self, label: int, size: int, weights: Floats, placements: Floats, start: int
    ) -> None:
        """Add records of one class: sums are exact as doubles, or of one group."""
        if placements.size == 1:
            total, squares = size * int(placements[0]), 0.0
        else:
            total = int(weights @ placements)
            placements -= total / size
            placements *= placements
            squares = float(weights @ placements)
        total += start * size
        known = self._sizes[label]
        if known:
            # as in _moved
            gap = self._sums[label] / known - total / size
            squares += known * size / (known + size) * gap * gap
        self._squares[label] += squares
        self._sizes[label] += size
        self._sums[label] += total

    def concluded(self) -> Placements:
        """The AUC, and the variances of placements as shares of the other class, over the sizes."""
        negatives, positives = self._sizes
        variance = np.nan
        if min(negatives, positives) >= 2:
            variance = sum(
                self._squares[label] / (size - 1) / (2 * other) ** 2 / size
                for label, size, other in ((0, negatives, positives), (1, positives, negatives))
            )
        return Placements(positives, negatives, self._sums[1], variance)


class ScoreEnds:
    """Where every client's scores lie.

    Parameters
    ----------
    sizes : the records of every client, shape (K,).
    """

    def __init__(self, sizes: Integers) -> None:
        self._seen = np.zeros_like(sizes)
        self._outside = np.zeros_like(sizes)
        self._least, self._largest = np.full(sizes.size, np.nan), np.full(sizes.size, np.nan)
        # as `scales` has them: from the 5th to the 95th percentile
        self._targets = [(part * (sizes - 1)).astype(np.int64) for part in WIDTH_FRACTIONS]
        self._percentiles = [np.full(sizes.size, np.nan) for _ in WIDTH_FRACTIONS]

    def add(self, part: Part) -> None:
        """Add the records of a part."""
        scores, whose, size = part.scores, part.codes >> 1, self._seen.size
        counts = np.bincount(whose, part.times, size).astype(np.int64)
        if scores[0] < -ROUNDING or scores[-1] > 1 + ROUNDING:
            wrong = (scores < -ROUNDING) | (scores > 1 + ROUNDING)
            self._outside += np.bincount(whose, part.times * wrong, size).astype(np.int64)
        _set_first(self._least, np.isnan(self._least), whose, scores)
        self._largest[whose] = scores
        for target, percentile in zip(self._targets, self._percentiles, strict=True):
            here = (self._seen <= target) & (target < self._seen + counts)
            if here.any():
                percentile[here] = self._at(scores, whose, counts, (target - self._seen), here)
        self._seen += counts

    @staticmethod
    def _at(
        scores: Floats, whose: Integers, counts: Integers, places: Integers, here: NDArray[np.bool_]
    ) -> Floats:
        """The scores at some clients' places among their records of the part."""
        if scores[0] == scores[-1]:
            return scores[:1]
        firsts = np.cumsum(counts) - counts
        order = client_order(whose, counts.size)
        return scores[order[(firsts + places)[here]]]

    def ranges(self) -> ScoreRanges:
        """The ranges of all clients."""
        low, high = self._percentiles
        return ScoreRanges(self._outside, self._least, self._largest, high - low)


PART = 2**16
"""Records that are ranked at a time: sums of their squared ranks are exact as doubles."""

Ascending = tuple[Floats, NDArray[np.int64]]
"""Ascending scores, and for each ``2 * client + label``; shape (m,) each."""


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive records in order of their scores, or one group of equal scores.

    Parameters
    ----------
    base : what is added to ranks: twice the number of records before, for a group its rank.
    scores : ascending, shape (m,).
    codes : ``2 * client + label`` of each record, or of a group each that occurs, shape (m,).
    times : how often each occurs: 1 for a record, shape (m,).
    ranks : the doubled mid-ranks less ``base``, shape (m,); 0 for a group.
    """

    base: int
    scores: Floats
    codes: Integers
    times: Floats
    ranks: Floats

    def by_group(self) -> tuple[Floats, Floats]:
        """Records and positives of each group of equal scores, shape (G,) each."""
        first = np.flatnonzero(np.append(True, self.scores[1:] != self.scores[:-1]))
        positives = np.add.reduceat(self.times * (self.codes & 1), first)
        return np.add.reduceat(self.times, first), positives


def ranked(batches: Iterable[Ascending], clients: int, sizes: Integers) -> Ranked:
    """The totals of all records.

    Parameters
    ----------
    batches : ascending within and over all of them.
    clients : K.
    sizes : the records of every client, shape (K,).
    """
    moments, placements, ends = Moments(clients), PlacementSums(), ScoreEnds(sizes)
    for part in parts(batches, clients):
        moments.add(part)
        placements.add(*part.by_group())
        ends.add(part)
    positives = slice(1, None, 2)
    return Ranked(
        moments.totals(),
        moments.counts[positives],
        moments.sums[positives],
        placements.concluded(),
        ends.ranges(),
    )


def listed(batches: Iterable[Ascending], clients: int) -> Iterator[Listed]:
    """All records, at most ``PART`` at a time.

    Parameters
    ----------
    batches : ascending within and over all of them; equal scores in any order.
    clients : K.
    """
    place = 0
    for part in parts(batches, clients):
        codes, ends = _by_code(part, clients), np.cumsum(part.times).astype(np.int64)
        ranks = part.base + part.ranks.astype(np.int64)
        for first in range(0, int(ends[-1]), PART):
            places = np.arange(first, min(first + PART, int(ends[-1])))
            rows = np.searchsorted(ends, places, side="right")
            labels = (codes[rows] & 1).astype(np.int8)
            yield Listed(place, part.scores[rows], codes[rows] >> 1, labels, ranks[rows])
            place += places.size


def _by_code(part: Part, clients: int) -> Integers:
    """The codes of a part's records, ascending among records of one score."""
    new = part.scores[1:] != part.scores[:-1]
    if new.all():
        return part.codes
    groups = np.concatenate(([0], np.cumsum(new)))
    return np.sort(groups * (2 * clients) + part.codes) % (2 * clients)


def parts(batches: Iterable[Ascending], clients: int) -> Iterator[Part]:
    """The records in parts of whole groups of equal scores."""
    start, score, counts = 0, np.nan, np.zeros(2 * clients, dtype=np.int64)
    for scores, codes in _cut(batches):
        # what belongs to the group that is not over
        same = int(np.searchsorted(scores, score, side="right")) if scores[0] == score else 0
        counts += np.bincount(codes[:same], minlength=counts.size)
        if same == scores.size:
            continue
        if counts.any():
            yield _group(start, score, counts)
        start += int(counts.sum())
        last = int(np.searchsorted(scores, scores[-1], side="left"))
        if last > same:
            yield _whole(start, scores[same:last], codes[same:last])
            start += last - same
        score, counts = scores[-1], np.bincount(codes[last:], minlength=counts.size)
    yield _group(start, score, counts)


def _cut(batches: Iterable[Ascending]) -> Iterator[Ascending]:
    for scores, codes in batches:
        for first in range(0, scores.size, PART):
            yield scores[first : first + PART], codes[first : first + PART]


def _group(start: int, score: float, counts: Integers) -> Part:
    """Records of one score, of which only the numbers by code are known."""
    codes = np.flatnonzero(counts)
    # mid-rank of n equal scores: (n - 1) / 2
    base = 2 * start + int(counts.sum()) - 1
    times = counts[codes].astype(np.float64)
    return Part(base, np.full(codes.size, score), codes, times, np.zeros(codes.size))


def _whole(start: int, scores: Floats, codes: Integers) -> Part:
    first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
    sizes = np.diff(np.append(first, scores.size))
    ranks = np.repeat(2.0 * first + sizes - 1, sizes)
    return Part(2 * start, scores, codes, np.ones(scores.size), ranks)
