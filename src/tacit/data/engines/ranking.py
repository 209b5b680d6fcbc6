"""One pass over records in ascending order of their scores: totals of ranks, in bounded memory.

A part of a batch holds whole groups of equal scores. The last group of a part may go on in the next
one, so only its counts by client and label are remembered until another score comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.batches.ranked import Listed, Ranked
from tacit.data.engines.rank_sums import Moments, PlacementSums, ScoreEnds

PART = 2**16
"""Records that are ranked at a time: sums of their squared ranks are exact as doubles."""

Ascending = tuple[Floats, NDArray[np.int64]]
"""Ascending scores, and for each ``2 * client + label``; shape (m,) each."""


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive records in order of their scores, or one group of equal scores.

    Parameters
    ----------
    start : how many records are before them.
    scores : shape (m,); (1,) for a group.
    codes : ``2 * client + label`` of each record, shape (m,); of a group each that occurs.
    times : how often each code occurs: 1 where each record is listed, shape (), else (m,).
    ranks : the doubled mid-ranks less ``2 start``, shape (m,); () for a group.
    """

    start: int
    scores: Floats
    codes: Integers
    times: Integers
    ranks: Integers

    def by_group(self) -> tuple[Floats, Floats, Floats]:
        """Records, positives and rank of each group of equal scores, shape (G,) each."""
        positives = (self.times * (self.codes & 1)).astype(np.float64)
        sizes = np.broadcast_to(self.times, self.codes.shape).astype(np.float64)
        ranks = np.broadcast_to(self.ranks, self.codes.shape).astype(np.float64)
        new = np.flatnonzero(self.scores[1:] != self.scores[:-1]) + 1
        if new.size + 1 < self.codes.size:
            first = np.concatenate(([0], new))
            positives, sizes = np.add.reduceat(positives, first), np.add.reduceat(sizes, first)
            ranks = ranks[first]
        return sizes, positives, ranks


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
        moments.add(part.start, part.codes, part.times, part.ranks)
        placements.add(*part.by_group())
        ends.add(part.scores, part.codes >> 1, part.times)
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
    for part in parts(batches, clients):
        before = 2 * part.start
        if part.ranks.ndim:
            yield _records(part.start, part.scores, _by_code(part, clients), part.ranks + before)
            continue
        ends = np.cumsum(part.times)
        for first in range(0, int(ends[-1]), PART):
            places = np.arange(first, min(first + PART, int(ends[-1])))
            codes = part.codes[np.searchsorted(ends, places, side="right")]
            same = np.broadcast_to(part.scores, codes.shape)
            ranks = np.broadcast_to(part.ranks + before, codes.shape)
            yield _records(part.start + first, same, codes, ranks)


def _by_code(part: Part, clients: int) -> Integers:
    """The codes of a part's records, ascending among records of one score."""
    new = part.scores[1:] != part.scores[:-1]
    if new.all():
        return part.codes
    groups = np.concatenate(([0], np.cumsum(new)))
    return np.sort(groups * (2 * clients) + part.codes) % (2 * clients)


def _records(start: int, scores: Floats, codes: Integers, ranks: Integers) -> Listed:
    return Listed(start, scores, codes >> 1, (codes & 1).astype(np.int8), ranks)


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
    rank = np.array(int(counts.sum()) - 1)
    return Part(start, np.array([score]), codes, counts[codes], rank)


def _whole(start: int, scores: Floats, codes: Integers) -> Part:
    ranks = np.arange(0, 2 * scores.size, 2, dtype=np.int64)
    new = scores[1:] != scores[:-1]
    if not new.all():
        first = np.concatenate(([0], np.flatnonzero(new) + 1))
        sizes = np.diff(np.append(first, scores.size))
        ranks = np.repeat(2 * first + sizes - 1, sizes)
    return Part(start, scores, codes, np.array(1), ranks)
