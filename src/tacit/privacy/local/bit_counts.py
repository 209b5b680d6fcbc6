"""How often each bit is set in many reports of packed bits, without unpacking them.

Carry-save adders count in all bits of a word at once (Harley and Seal; Warren, Hacker's Delight,
section 5-1): three words of one weight become one of that weight and one of twice the weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers

Words = NDArray[np.uint64]

WORD_BYTES = 8
WORDS_AT_ONCE = 2**18
"""Words that are added up at a time: few enough for the processor's cache."""

FEW = 64
"""Words of one weight that are unpacked instead of added up."""

FEW_BYTES = 2
"""So many bytes are counted by their 256 values."""

BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=-1).astype(int)
"""The bits of every byte, shape (256, 8)."""


def bit_counts(packed: NDArray[np.uint8]) -> Integers:
    """How often each bit is set, shape (8 bytes,), in the order of ``np.unpackbits``.

    Parameters
    ----------
    packed : one report a row, shape (n, bytes); bytes is a power of two.

    Raises
    ------
    ValueError : for another number of bytes.

    Examples
    --------
    >>> bit_counts(np.array([[0b10000001], [0b10000000]], dtype=np.uint8)).tolist()
    [2, 0, 0, 0, 0, 0, 0, 1]
    """
    rows, size = packed.shape
    if size & (size - 1) or not size:
        raise ValueError(f"reports must have a power of two of bytes, got {size}")
    if size <= FEW_BYTES:
        patterns = [np.bincount(column, minlength=256) for column in packed.T]
        return np.asarray(np.stack(patterns) @ BITS_OF_BYTE).ravel()
    width = max(size, WORD_BYTES)
    flat = np.ascontiguousarray(packed).reshape(-1)
    whole = flat.size // width * width
    words = flat[:whole].view(np.uint64).reshape(-1, width // WORD_BYTES)
    counts = np.zeros(8 * width, dtype=np.int64)
    step = max(WORDS_AT_ONCE // words.shape[1], 1)
    for start in range(0, words.shape[0], step):
        counts += _added(words[start : start + step])
    rest = np.unpackbits(flat[whole:].reshape(-1, size), axis=0 if not rows else -1)
    # a word holds several short reports
    return counts.reshape(-1, 8 * size).sum(axis=0) + rest.reshape(-1, 8 * size).sum(
        axis=0, dtype=np.int64
    )


def _added(words: Words) -> Integers:
    """How often each bit is set in words, shape (n, w): the result has shape (64 w,)."""
    counts = np.zeros(64 * words.shape[1], dtype=np.int64)
    carries, weight = [words], 1
    while carries:
        same, carries = np.concatenate(carries), []
        while same.shape[0] > FEW:
            third = same.shape[0] // 3
            first, second, other = (
                same[:third],
                same[third : 2 * third],
                same[2 * third : 3 * third],
            )
            # a full adder in every bit: the sum, and the majority as the carry
            unlike = first ^ second
            carries.append((first & second) | (unlike & other))
            unlike ^= other
            same = np.concatenate([unlike, same[3 * third :]])
        bits = np.unpackbits(np.ascontiguousarray(same).view(np.uint8), axis=-1)
        counts += weight * bits.sum(axis=0, dtype=np.int64)
        weight *= 2
    return counts
