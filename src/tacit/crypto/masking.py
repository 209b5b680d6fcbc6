"""Sums and products of sums on masked values: a prime field, and masks of its elements.

Prime fields for words of 8 to 25 bytes: words as bytes, and sums of many parties' words.

The modulus is the largest prime below ``2**bits``, so that a word has no unused bit. Elements are
Python's integers in arrays of objects, where products are taken; as bytes they are little-endian
words. Sums over parties are taken on numbers of 32 bits in NumPy.

Masks of field elements: those whose sum all parties know, and those that cancel in the sum.

A key stream gives a mask, an element a position (Catalano and Fiore 2015; Barbosa, Catalano and
Fiore 2017 call the position a label). Two kinds are added to what a party sends:

- **totals**, from the session's secret, which every party has: they hide the sum over parties from
  who only adds up. One party adds them.
- **pairs**, from a key that two parties share: one adds the mask, the other subtracts it, so that
  they cancel in the sum, and hide every party's values from all others.

With both, every party's words are uniform, and independent but for their sum, which is uniform too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

LIMB_BITS = 32
"""Words are added up in numbers of 32 bits, which leave room for 2^32 summands."""
SIZES = tuple(range(64, 201, 8))
"""Bits of a word."""
GAPS = (59, 93, 65, 299, 17, 17, 75, 119, 159, 113, 83, 17, 47, 257, 233, 33, 237, 75)
"""By how much the largest prime is below the power of 2, for each of these sizes."""
BELOW = dict(zip(SIZES, GAPS, strict=True))
"""The same by the bits of a word."""

Elements = NDArray[np.object_]
"""Elements of a field as Python's integers."""
Limbs = NDArray[np.uint32]
"""Words in numbers of 32 bits, least first, shape (..., limbs)."""


class MaskedValueError(ValueError):
    """Bytes that are not masked values, or that cannot be what honest parties send."""


@dataclass(frozen=True)
class Field:
    """The integers modulo the largest prime below ``2**bits``.

    Parameters
    ----------
    bits : of a word; a multiple of 8 from 64 to 200.

    Raises
    ------
    ValueError : for another number of bits.

    Examples
    --------
    >>> field = Field(64)
    >>> field.elements([1, -1]).tolist() == [1, field.prime - 1]
    True
    >>> field.from_bytes(field.to_bytes(field.elements([5, -1])), 2).tolist() == [5, 2**64 - 60]
    True
    """

    bits: int

    def __post_init__(self) -> None:
        if self.bits not in SIZES:
            raise ValueError(f"bits must be one of {SIZES}, got {self.bits}")

    @classmethod
    def above(cls, largest: int) -> Field:
        """The least field in which numbers up to ``largest`` differ.

        Raises
        ------
        ValueError : where there is none.

        Examples
        --------
        >>> Field.above(2**64 - 60), Field.above(2**64 - 59)
        (Field(bits=64), Field(bits=72))
        """
        for bits, below in BELOW.items():
            if largest < 2**bits - below:
                return cls(bits)
        raise ValueError(
            f"numbers must be below 2**{SIZES[-1]} - {BELOW[SIZES[-1]]}, got {largest}"
        )

    @property
    def prime(self) -> int:
        """The modulus q."""
        return int(2**self.bits - BELOW[self.bits])

    @property
    def limbs(self) -> int:
        """Numbers of 32 bits in a word."""
        return -(-self.bits // LIMB_BITS)

    @property
    def word_bytes(self) -> int:
        """Bytes of a word."""
        return self.bits // 8

    @property
    def modulus(self) -> Limbs:
        """The modulus in numbers of 32 bits; all but the least are the largest of a word."""
        parts = [self.prime >> LIMB_BITS * limb for limb in range(self.limbs)]
        return np.array([part % 2**LIMB_BITS for part in parts], dtype=np.uint32)

    def elements(self, values: Iterable[int]) -> Elements:
        """Integers as elements of the field."""
        prime = self.prime
        listed = [int(value) % prime for value in values]
        made = np.empty(len(listed), dtype=object)
        made[:] = listed
        return made

    def to_bytes(self, values: Elements) -> bytes:
        """Elements as words."""
        size = self.word_bytes
        return b"".join(int(value).to_bytes(size, "little") for value in values)

    def from_bytes(self, message: bytes, count: int) -> Elements:
        """The elements in a message.

        Raises
        ------
        MaskedValueError : for another number of bytes than ``count`` words have, or a word that
            is no element.
        """
        return self.elements_of(self.limbs_of([message], count)[0])

    def limbs_of(self, messages: Sequence[bytes], count: int) -> Limbs:
        """The words of messages, shape (messages, count, limbs).

        Raises
        ------
        MaskedValueError : as for ``from_bytes``.
        """
        size = count * self.word_bytes
        for message in messages:
            if len(message) != size:
                raise MaskedValueError(
                    f"{count} masked values have {size} bytes, got {len(message)}"
                )
        words = self.words_in(b"".join(messages)).reshape(len(messages), count, self.limbs)
        if not self.holds(words).all():
            raise MaskedValueError("a masked value is not below the modulus")
        return words

    def words_in(self, raw: bytes) -> Limbs:
        """Words of bytes, whether or not below the modulus, shape (words, limbs)."""
        parts = np.frombuffer(raw, dtype=np.uint8).reshape(-1, self.word_bytes)
        padded = np.zeros((len(parts), 4 * self.limbs), dtype=np.uint8)
        padded[:, : self.word_bytes] = parts
        return padded.view("<u4").astype(np.uint32, copy=False)

    def holds(self, words: Limbs) -> NDArray[np.bool_]:
        """Which words are below the modulus, shape (...) from (..., limbs).

        A word that is not has the modulus's second number. Of uniform words one in 2^32 has it, so
        that few are looked at closely.
        """
        modulus = self.modulus
        held = np.asarray(words[..., 1] != modulus[1])
        close = words[~held]
        held[~held] = (close[:, 1:] != modulus[1:]).any(axis=-1) | (close[:, 0] < modulus[0])
        return held

    def elements_of(self, limbs: NDArray[Any]) -> Elements:
        """Words, or sums of words, as elements, shape (count,) from (count, limbs)."""
        numbers = limbs[:, -1].astype(object)
        for limb in range(self.limbs - 2, -1, -1):
            numbers = (numbers << LIMB_BITS) + limbs[:, limb].astype(object)
        return np.asarray(numbers % self.prime, dtype=object)

    def summed(self, messages: Sequence[bytes], count: int) -> Elements:
        """The sum over parties of their words, in the field, shape (count,).

        Raises
        ------
        MaskedValueError : as for ``from_bytes``.

        Examples
        --------
        >>> field = Field(88)
        >>> sent = [field.to_bytes(field.elements(values)) for values in ([1, -1], [2, 3])]
        >>> field.summed(sent, 2).tolist()
        [3, 2]
        """
        return self.elements_of(self.limbs_of(messages, count).sum(axis=0, dtype=np.uint64))


def log_uniform(least_bits: int, bits: int) -> int:
    """A secret integer whose logarithm is uniform over ``bits`` octaves from ``2**least_bits``.

    An octave is drawn, a number of it, and the number n is accepted with probability ``2^e / n``,
    ``2^e`` the least of its octave: the density is proportional to ``1 / n`` (rejection, exact).

    Examples
    --------
    >>> 2**8 <= log_uniform(8, 3) < 2**11
    True
    """
    while True:
        least = 1 << (least_bits + secrets.randbelow(bits))
        number = least + secrets.randbelow(least)
        if secrets.randbelow(number) < least:
            return number


REACH = 50
"""How many parties on either side a party shares masks with; with all of them up to 101 parties."""

Pairing = Callable[[int, int], bytes]
"""The 32-byte key that two parties share for one session, by their indices: own, other.

Where both are one party, it is a key that this party alone has."""


def mask(key: bytes, count: int, field: Field) -> Limbs:
    """The first ``count`` elements of a key's stream, shape (count, limbs).

    The stream is ChaCha20's (RFC 8439), nonce zero: a key is used once. A word that is not below
    the modulus is left out, so elements are uniform.

    Examples
    --------
    >>> mask(bytes(32), 1, Field(64)).tolist()  # RFC 8439, appendix A.1, test vector 1
    [[2917185654, 2419978656]]
    """
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    elements = np.empty((0, field.limbs), dtype=np.uint32)
    while len(elements) < count:
        missing = count - len(elements)
        words = field.words_in(stream.update(bytes(missing * field.word_bytes)))
        held = field.holds(words)
        elements = np.concatenate([elements, words if held.all() else words[held]])
    return elements


def total_mask(key: bytes, count: int, field: Field) -> Elements:
    """The masks of the sums, from a key that every party derives, shape (count,)."""
    return field.elements_of(mask(key, count, field))


def neighbours(party: int, parties: int) -> list[int]:
    """With whom a party shares masks: the ``REACH`` nearest on either side of the ring of parties.

    Examples
    --------
    >>> neighbours(0, 4), len(neighbours(7, 1000))
    ([1, 2, 3], 100)
    """
    near = {(party + step) % parties for step in range(-REACH, REACH + 1)} - {party}
    return sorted(near)


def pair_masks(party: int, parties: int, count: int, field: Field, pairing: Pairing) -> Elements:
    """What a party adds, which cancels in the sum over all parties, shape (count,).

    Parameters
    ----------
    party, parties : its index, and how many there are.
    count : the number of words.
    field : their field.
    pairing : the key shared with each neighbour; the two ends of a pair have the same.
    """
    added, subtracted = np.zeros((2, count, field.limbs), dtype=np.uint64)
    for other in neighbours(party, parties):
        # of a pair the first adds the mask, the second subtracts it
        total = added if party < other else subtracted
        total += mask(pairing(party, other), count, field)
    left = field.elements_of(added) - field.elements_of(subtracted)
    return np.asarray(left % field.prime, dtype=object)
