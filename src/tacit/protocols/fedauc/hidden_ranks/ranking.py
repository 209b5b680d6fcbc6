"""Positions of scores among all parties' scores, computed on secret shares.

Every party sorts its own scores, so ascending blocks only have to be merged: a bitonic merging
network (Batcher 1968), whose exchanges depend on the sizes of the blocks alone. The way back
through the same exchanges carries each position to the index of its score, so that
every share of a position belongs to a known owner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.arrays import Integers
from tacit.protocol.mpc import Function

Undo = Callable[[Any], Any]

OWNER_BITS = 6
"""Number of a key's last bits, after the score's code, that give the owner of the score."""

OWNERS = 2**OWNER_BITS
"""The largest number of parties whose scores are ranked."""


def rank_keys(codes: Integers, owner: int) -> Integers:
    """Keys of one party's scores, ascending, in which equal scores are ordered by owner.

    Parameters
    ----------
    codes : the scores as integers from 0 to below ``2**56``, ascending.
    owner : the party's index.
    """
    return codes * OWNERS + owner


def mid_ranks_of(codes: Integers, positions: Integers) -> Integers:
    """Doubled mid-ranks from the two positions of each score, added up.

    Positions count once with ties among parties ordered upwards and once downwards. Of t equal
    scores at the positions ``f .. f + t - 1``, those of one party have positions that add up to
    ``2 f + t - 1`` on average, which is their doubled mid-rank.

    Parameters
    ----------
    codes : the party's codes, ascending, as in ``rank_keys``.
    positions : the sums of both positions, shape (n,).

    Examples
    --------
    >>> mid_ranks_of(np.array([3, 7, 7]), np.array([0, 5, 3])).tolist()
    [0, 4, 4]
    """
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    lengths = np.diff(np.append(starts, codes.size))
    return np.repeat(np.add.reduceat(positions, starts) // lengths, lengths)


def ranking(sizes: Sequence[int], arrays: Any) -> Function:
    """A program that gives the sum of every key's two positions, in the order of the input.

    Parameters
    ----------
    sizes : how many keys each party has; the program takes the keys of all parties, in the order of
        the parties.
    arrays : the module of array functions (``SharedRun.arrays``).

    Examples
    --------
    >>> ranking([2, 1], np)(np.array([64, 192, 129]))
    array([0, 4, 2])
    """
    ends = np.cumsum(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    turned = np.stack([0 * owners, OWNERS - 1 - 2 * owners])

    def program(keys: Any) -> Any:
        both = arrays.broadcast_to(keys, turned.shape) + turned
        blocks = [both[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]
        _, undo = _sorted(arrays, blocks)
        indices = np.arange(owners.size)
        positions = undo(arrays.asarray(np.stack([indices, indices])))
        return positions[0] + positions[1]

    return program


def _sorted(arrays: Any, blocks: list[Any]) -> tuple[Any, Undo]:
    """All blocks as one in ascending order, and the way back."""
    if len(blocks) == 1:
        return blocks[0], lambda positions: positions
    middle = len(blocks) // 2
    lower, undo_lower = _sorted(arrays, blocks[:middle])
    upper, undo_upper = _sorted(arrays, blocks[middle:])
    size = lower.shape[1]
    valley = arrays.concatenate([lower[:, ::-1], upper], axis=1)
    merged, undo_merge = _merged(arrays, valley)

    def undo(positions: Any) -> Any:
        back = undo_merge(positions)
        return arrays.concatenate(
            [undo_lower(back[:, :size][:, ::-1]), undo_upper(back[:, size:])], axis=1
        )

    return merged, undo


def _merged(arrays: Any, valley: Any) -> tuple[Any, Undo]:
    """Keys that first fall and then rise, in ascending order.

    The network is that of the next power of two, without the exchanges that reach beyond the end:
    the missing keys would be larger than all others, and no exchange would move them.
    """
    size = valley.shape[1]
    swaps: list[tuple[int, Any]] = []
    apart = 1 << max(size - 1, 1).bit_length() - 1
    while apart:
        low, high = _halves(arrays, valley, apart)
        swap = low > high
        smaller = arrays.where(swap, high, low)
        valley = _joined(arrays, valley, smaller, low + high - smaller, apart)
        swaps.append((apart, swap))
        apart //= 2

    def undo(positions: Any) -> Any:
        for apart, swap in reversed(swaps):
            low, high = _halves(arrays, positions, apart)
            first = arrays.where(swap, high, low)
            positions = _joined(arrays, positions, first, low + high - first, apart)
        return positions

    return valley, undo


def _halves(arrays: Any, row: Any, apart: int) -> tuple[Any, Any]:
    """Both sides of all exchanges: numbers at the distance ``apart``, in blocks of twice that."""
    count, size = row.shape
    full = size // (2 * apart) * 2 * apart
    blocks = row[:, :full].reshape(count, -1, 2, apart)
    rest = row[:, full:]
    extra = max(rest.shape[1] - apart, 0)
    low = arrays.concatenate([blocks[:, :, 0].reshape(count, -1), rest[:, :extra]], axis=1)
    high = arrays.concatenate(
        [blocks[:, :, 1].reshape(count, -1), rest[:, apart : apart + extra]], axis=1
    )
    return low, high


def _joined(arrays: Any, row: Any, low: Any, high: Any, apart: int) -> Any:
    """The row, with the exchanged numbers at their indices."""
    count, size = row.shape
    full = size // (2 * apart) * 2 * apart
    half = full // 2
    extra = low.shape[1] - half
    pairs = arrays.stack(
        [low[:, :half].reshape(count, -1, apart), high[:, :half].reshape(count, -1, apart)], axis=2
    )
    left = row[:, full + extra : full + apart] if extra else row[:, full:]
    parts = [pairs.reshape(count, full), low[:, half:], left, high[:, half:]]
    return arrays.concatenate(parts, axis=1)
