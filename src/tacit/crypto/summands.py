"""Numbers cut into random summands modulo 2**64, and which client has which of them."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.secure_sum.masking import expand

Words = NDArray[np.uint64]

RING_BITS = 64
SEED_BYTES = 32


def known_summands(rank: int, parties: int) -> tuple[int, ...]:
    """The summands of a shared number that a client has: its own, and of three the next.

    Examples
    --------
    >>> known_summands(0, 2), known_summands(2, 3)
    ((0,), (2, 0))
    """
    return (rank,) if parties == 2 else (rank, (rank + 1) % parties)


def summands_of(values: NDArray[np.int64], parties: int) -> list[Words]:
    """Words that add up to the values modulo 2**64, all but the last of them uniform.

    Examples
    --------
    >>> parts = summands_of(np.array([5, -1]), 3)
    >>> sum(parts).view(np.int64).tolist()
    [5, -1]
    """
    random = [words_of(os.urandom(SEED_BYTES), values.shape) for _ in range(parties - 1)]
    whole = np.ascontiguousarray(values).view(np.uint64)
    return [*random, whole - sum(random, np.zeros(values.shape, dtype=np.uint64))]


def words_of(seed: bytes, shape: tuple[int, ...]) -> Words:
    """Uniform words of a seed."""
    return expand(seed, int(np.prod(shape)), RING_BITS).reshape(shape)
