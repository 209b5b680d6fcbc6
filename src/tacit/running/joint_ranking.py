"""Positions of scores among all parties' scores, computed on shares without opening anything.

Every party sorts its own scores, so ascending blocks only have to be merged: a bitonic merging
network (Batcher 1968), whose exchanges depend on the sizes of the blocks alone. The way back
through the same exchanges carries each position to the place where its score came from, so that
every share of a position belongs to a known owner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.running.joint_programs import Program, library

Integers = NDArray[np.int64]

Undo = Callable[[Any], Any]

OWNER_BITS = 6
"""Bits of a key that say whose score it is, below the score's own code."""

OWNERS = 2**OWNER_BITS
"""The largest number of parties whose scores are ranked."""


def rank_keys(codes: Integers, owner: int) -> Integers:
    """Keys of one party's scores, ascending, in which equal scores go by their owner.

    Parameters
    ----------
    codes : the scores as integers from 0 to below ``2**56``, ascending.
    owner : the party's place.
    """
    return codes * OWNERS + owner


def mid_ranks_of(codes: Integers, positions: Integers) -> Integers:
    """Doubled mid-ranks from the two positions of each score, added up.

    Positions count once with ties among parties ordered upwards and once downwards. Of t equal
    scores at the places ``f .. f + t - 1`` a party's own have, on the average, positions that add
    up to ``2 f + t - 1``, which is their doubled mid-rank.

    Parameters
    ----------
    codes : the party's own codes, ascending, as in ``rank_keys``.
    positions : the sums of both positions, shape (n,).

    Examples
    --------
    >>> mid_ranks_of(np.array([3, 7, 7]), np.array([0, 5, 3])).tolist()
    [0, 4, 4]
    """
    starts = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    lengths = np.diff(np.append(starts, codes.size))
    return np.repeat(np.add.reduceat(positions, starts) // lengths, lengths)


def ranking(sizes: Sequence[int], arrays: Any = None) -> Program:
    """A program that gives the sum of every key's two positions, in the order of the input.

    Parameters
    ----------
    sizes : how many keys each party has; the program takes all parties' keys, one party's after the
        other's.
    arrays : the module of array functions; JAX's by default, as SPU needs it.

    Examples
    --------
    >>> ranking([2, 1], np)(np.array([64, 192, 129]))
    array([0, 4, 2])
    """
    jnp = library("jax.numpy") if arrays is None else arrays
    ends = np.cumsum(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    turned = np.stack([0 * owners, OWNERS - 1 - 2 * owners])

    def program(keys: Any) -> Any:
        both = jnp.broadcast_to(keys, turned.shape) + turned
        blocks = [both[:, end - size : end] for size, end in zip(sizes, ends, strict=True)]
        _, undo = _sorted(jnp, blocks)
        places = np.arange(owners.size)
        positions = undo(jnp.asarray(np.stack([places, places])))
        return positions[0] + positions[1]

    return program


def _sorted(jnp: Any, blocks: list[Any]) -> tuple[Any, Undo]:
    """All blocks as one in ascending order, and the way back."""
    if len(blocks) == 1:
        return blocks[0], lambda places: places
    middle = len(blocks) // 2
    lower, undo_lower = _sorted(jnp, blocks[:middle])
    upper, undo_upper = _sorted(jnp, blocks[middle:])
    size = lower.shape[1]
    valley = jnp.concatenate([lower[:, ::-1], upper], axis=1)
    merged, undo_merge = _merged(jnp, valley)

    def undo(places: Any) -> Any:
        back = undo_merge(places)
        return jnp.concatenate(
            [undo_lower(back[:, :size][:, ::-1]), undo_upper(back[:, size:])], axis=1
        )

    return merged, undo


def _merged(jnp: Any, valley: Any) -> tuple[Any, Undo]:
    """Keys that first fall and then rise, in ascending order.

    Beyond their end one may think of endless keys, larger than all, which no exchange would move:
    so the network of the next power of two serves, less the exchanges that reach beyond the end.
    """
    size = valley.shape[1]
    swaps: list[tuple[int, Any]] = []
    apart = 1 << max(size - 1, 1).bit_length() - 1
    while apart:
        low, high = _halves(jnp, valley, apart)
        swap = low > high
        smaller = jnp.where(swap, high, low)
        valley = _joined(jnp, valley, smaller, low + high - smaller, apart)
        swaps.append((apart, swap))
        apart //= 2

    def undo(places: Any) -> Any:
        for apart, swap in reversed(swaps):
            low, high = _halves(jnp, places, apart)
            first = jnp.where(swap, high, low)
            places = _joined(jnp, places, first, low + high - first, apart)
        return places

    return valley, undo


def _halves(jnp: Any, row: Any, apart: int) -> tuple[Any, Any]:
    """What is exchanged with what: numbers so far apart, in blocks of twice that."""
    count, size = row.shape
    full = size // (2 * apart) * 2 * apart
    blocks = row[:, :full].reshape(count, -1, 2, apart)
    rest = row[:, full:]
    extra = max(rest.shape[1] - apart, 0)
    low = jnp.concatenate([blocks[:, :, 0].reshape(count, -1), rest[:, :extra]], axis=1)
    high = jnp.concatenate(
        [blocks[:, :, 1].reshape(count, -1), rest[:, apart : apart + extra]], axis=1
    )
    return low, high


def _joined(jnp: Any, row: Any, low: Any, high: Any, apart: int) -> Any:
    """The row with what was exchanged put back in its places."""
    count, size = row.shape
    full = size // (2 * apart) * 2 * apart
    half = full // 2
    extra = low.shape[1] - half
    pairs = jnp.stack(
        [low[:, :half].reshape(count, -1, apart), high[:, :half].reshape(count, -1, apart)], axis=2
    )
    left = row[:, full + extra : full + apart] if extra else row[:, full:]
    parts = [pairs.reshape(count, full), low[:, half:], left, high[:, half:]]
    return jnp.concatenate(parts, axis=1)
