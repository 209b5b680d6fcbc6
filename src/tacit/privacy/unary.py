"""Optimal unary encoding (Wang et al. 2017): a bit for every value, set at random.

``BitCounter`` counts how often each bit is set in many reports of packed bits, without unpacking.
Carry-save adders count in all bits of a word at once (Harley and Seal; Warren, Hacker's Delight,
section 5-1): three words of one weight become one of that weight and one of twice the weight. Long
rows of words are added, each of which fits into a processor's first cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Flags, Integers
from tacit.privacy.mechanisms import response
from tacit.privacy.noise import NoiseSource

SET_PROBABILITY = 0.5
"""Probability that the bit of the record's value is set."""

SET_BIT_VARIANCE = 1.0
"""Variance that a report adds to the count of its value, less the variance that it adds to another
count: ``(1/4 - q (1-q)) / (1/2 - q)^2``, which is 1 at every epsilon."""


def unary_bits(values: NDArray[np.int64], size: int, epsilon: float, noise: NoiseSource) -> Flags:
    """Every value as ``size`` bits, shape (n, size), after the replicate axis if there is one.

    Values are of shape (n,), or (R, n) where each replicate has its own.

    The bit of the value is set with probability 1/2, every other with ``q = 1 / (1 + e^epsilon)``.
    Two values differ in two bits. The report with the largest ratio has one set and the other not,
    and is ``(1/2) / q * (1 - q) / (1/2) = (1 - q) / q = e^epsilon`` times as likely under one value
    as under the other: epsilon for a value's replacement by any other. A ``q`` that is rounded
    towards 1/2, as the exact source does, only lowers that.

    Examples
    --------
    >>> import numpy as np
    >>> from tacit.privacy.noise import SimulatedNoise
    >>> unary_bits(np.array([2, 0]), 4, 1.0, SimulatedNoise(0)).shape
    (2, 4)
    """
    count = values.shape[-1]
    bits = noise.draw(response.RandomisedResponse(epsilon), (count, size))
    value_bits = ~noise.draw(response.Bits(1 - SET_PROBABILITY), (count,))
    places = np.broadcast_to(values, value_bits.shape)[..., np.newaxis]
    np.put_along_axis(bits, places, value_bits[..., np.newaxis], axis=-1)
    return bits


def simulated_unary_counts(
    held: NDArray[np.int64], epsilon: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """How many reports of so many records set each bit, shape (size,), in one draw.

    The bits of a report are independent, so the counts are too: binomial with 1/2 for those that
    hold the value, and with q for all others. For simulation.

    Parameters
    ----------
    held : how many records hold each value, shape (size,).
    epsilon : of one report.
    rng : draws.
    """
    true_bits = rng.binomial(held, SET_PROBABILITY)
    flipped_bits = rng.binomial(held.sum() - held, response.flip_probability(epsilon))
    return np.asarray(true_bits + flipped_bits, dtype=np.int64)


def unary_counts(
    reported: NDArray[np.int64], reports: NDArray[np.int64] | int, epsilon: float
) -> NDArray[np.float64]:
    """Unbiased numbers of records with every value, from the numbers of set bits.

    ``(count - n q) / (1/2 - q)`` (Wang et al. 2017, Eq. 2).
    """
    q = response.flip_probability(epsilon)
    return np.asarray((reported - reports * q) / (SET_PROBABILITY - q), dtype=np.float64)


def unary_variance(epsilon: float) -> float:
    """The variance that a report adds to the count of another value than its own.

    ``q (1-q) / (1/2 - q)^2 = 4 e^epsilon / (e^epsilon - 1)^2`` (Wang et al. 2017, Eq. 9).

    Examples
    --------
    >>> round(unary_variance(1.0), 4)
    3.6827
    """
    return 4 * response.response_variance(epsilon)


Words = NDArray[np.uint64]

WORD_BYTES = 8
ROW_WORDS = 2**11
"""Words of a row: the least time for 2**18 reports, between 2**10 and 2**13."""

AT_ONCE = 128
"""Bits that are summed as bytes, which hold numbers to 255."""


class BitCounter:
    """How often each bit is set in reports of a byte or more, in the order of ``np.unpackbits``.

    Parameters
    ----------
    size : bytes of a report, a power of two, and at most 2**14.

    Raises
    ------
    ValueError : for another number of bytes.

    Examples
    --------
    >>> counter = BitCounter(1)
    >>> for byte in (0b10000001, 0b10000000):
    ...     counter.add(np.array([[byte]], dtype=np.uint8))
    >>> counter.counts().tolist()
    [2, 0, 0, 0, 0, 0, 0, 1]
    """

    def __init__(self, size: int) -> None:
        if size & (size - 1) or not 0 < size <= ROW_WORDS * WORD_BYTES:
            raise ValueError(f"reports must have a power of two of bytes, got {size}")
        self.size = size
        # of each weight a sum, and a row that waits for a second one
        self._digits: list[list[Words]] = []
        # what does not fill a row yet
        self._rest = np.zeros(0, dtype=np.uint8)

    def add(self, packed: NDArray[np.uint8]) -> None:
        """Add reports, one a row, shape (n, size), which must not change afterwards."""
        flat, row = np.ascontiguousarray(packed).reshape(-1), ROW_WORDS * WORD_BYTES
        missing = -self._rest.size % row
        begun, flat = np.concatenate([self._rest, flat[:missing]]), flat[missing:]
        rests = []
        for part in (begun, flat):
            whole = part.size // row * row
            for words in part[:whole].view(np.uint64).reshape(-1, ROW_WORDS):
                self._add_row(words)
            rests.append(part[whole:])
        # a copy, which keeps no block in memory
        self._rest = np.concatenate(rests)

    def _add_row(self, carry: Words) -> None:
        for rows in self._digits:
            if len(rows) == 1:
                rows.append(carry)
                return
            carry = _full_adder(rows[0], rows.pop(), carry)
        self._digits.append([carry.copy()])

    def counts(self) -> Integers:
        """How often each bit is set in all of them, shape (8 size,)."""
        counts = _unpacked(self._rest, self.size)
        for weight, rows in enumerate(self._digits):
            for row in rows:
                counts += _unpacked(row.view(np.uint8), self.size) << weight
        return counts


def _full_adder(total: Words, first: Words, second: Words) -> Words:
    """Put the sum of three bits into the first of them; return the carry, their majority."""
    unlike, carry = first ^ second, first & second
    carry |= unlike & total
    total ^= unlike
    return carry


def _unpacked(flat: NDArray[np.uint8], size: int) -> Integers:
    """How often each bit of reports of so many bytes is set, shape (8 size,)."""
    bits = np.unpackbits(flat).reshape(-1, 8 * size)
    whole = bits.shape[0] // AT_ONCE * AT_ONCE
    # sums of bytes over long rows are fast
    blocks = bits[:whole].reshape(AT_ONCE, -1).sum(axis=0, dtype=np.uint8)
    rest = bits[whole:].sum(axis=0, dtype=np.int64)
    return np.asarray(blocks.reshape(-1, 8 * size).sum(axis=0, dtype=np.int64) + rest)
