"""Masks of field elements: those whose sum all parties know, and those that cancel in the sum.

A key stream gives a mask, an element a position (Catalano and Fiore 2015; Barbosa, Catalano and
Fiore 2017 call the position a label). Two kinds are added to what a party sends:

- **totals**, from the session's secret, which every party has: they hide the sum over parties from
  who only adds up. One party adds them.
- **pairs**, from a key that two parties share: one adds the mask, the other subtracts it, so that
  they cancel in the sum, and hide every party's values from all others.

With both, every party's words are uniform, and independent but for their sum, which is uniform too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacit.crypto.masking.field import Elements, Field, Limbs

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
    stream = _stream(key)
    elements = np.empty((0, field.limbs), dtype=np.uint32)
    while len(elements) < count:
        missing = count - len(elements)
        words = field.words_in(stream.update(bytes(missing * field.word_bytes)))
        if field.may_exceed(words):
            words = words[field.holds(words)]
        elements = np.concatenate([elements, words])
    return elements


def total_mask(key: bytes, count: int, field: Field) -> Elements:
    """The masks of the sums, from a key that every party derives, shape (count,)."""
    return field.elements_of(mask(key, count, field))


def summed_masks(keys: Sequence[bytes], count: int, field: Field) -> Elements:
    """The sum of the first ``count`` elements of each key's stream, shape (count,)."""
    zeros = bytes(count * field.word_bytes)
    words = field.words_in(b"".join(_stream(key).update(zeros) for key in keys))
    if field.may_exceed(words):
        words = np.concatenate([mask(key, count, field) for key in keys])
    shaped = words.reshape(len(keys), count, field.limbs)
    return field.elements_of(shaped.sum(axis=0, dtype=np.uint64))


def _stream(key: bytes) -> CipherContext:
    """The key's stream: what it makes of zeros."""
    return Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()


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
    return np.asarray(
        (field.elements_of(added) - field.elements_of(subtracted)) % field.prime, dtype=object
    )
