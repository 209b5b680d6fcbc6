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

from collections.abc import Callable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacit.crypto.masking.field import Elements, Field, Limbs

REACH = 50
"""How many parties on either side a party shares masks with; with all of them up to 101 parties."""

Pairing = Callable[[int, int], bytes]
"""The 32-byte key that two parties share for one session, by their indices: own, other.

Where both are one party, it is a key that this party alone has."""


def mask(key: bytes, count: int, field: Field) -> Limbs:
    """The first ``count`` elements of a key's stream, shape (count, limbs).

    The stream is ChaCha20's (RFC 8439), nonce zero: a key is used once. Of each word the bits above
    the field's are cleared, and a word that is the modulus is left out, so elements are uniform.

    Examples
    --------
    >>> mask(bytes(32), 1, Field(61)).tolist()  # RFC 8439, appendix A.1, test vector 1
    [[2917185654, 272495008]]
    """
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    elements, top = np.empty((0, field.limbs), dtype=np.uint32), field.modulus[-1]
    while len(elements) < count:
        missing = count - len(elements)
        words = field.words_in(stream.update(bytes(missing * field.word_bytes))).copy()
        words[:, -1] &= top
        if words[:, -1].max(initial=0) == top:
            words = words[field.holds(words)]
        elements = np.concatenate([elements, words])
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
    total = np.zeros((count, field.limbs), dtype=np.uint64)
    for other in neighbours(party, parties):
        shared = mask(pairing(party, other), count, field)
        # of a pair the first adds the mask, the second q less it; all bits of q are set: no borrow
        total += shared if party < other else field.modulus - shared
    return field.elements_of(total)
