"""A keyed digest of records whatever their order: sums of enciphered records.

Records are words of 64 bits, two of which are a block of AES-256. A record's outcome is the last
block of CBC (a record's next block is added to its outcome so far by exclusive or, and enciphered
again). The four quarters of all outcomes are summed modulo 2^64, with the number of records M, so
that sums of parts of the records add up to those of all.

What sums guarantee: other records have other sums, but for a chance of 1/(2^128 - 2M) and, where a
record has l > 1 blocks, one of about (l M)^2/2^128. Outcomes are those of a random function of
whole records (CBC-MAC of messages of one length, Bellare, Kilian and Rogaway 2000), as records of
another number of words have another key of AES, and so has each group of words. Take two tables
that were chosen without the key, a record that is not in both equally often, and d the difference
of how often. Whatever all other records become, this one becomes any of 2^128 - 2M values alike.
The sums agree only where d times each of its quarters is a given number: for one value, or, of M
above 2^32 records, for (M/2^32)^4 at most. Who writes records into the table learns from a run only
whether it was declined, and so has one guess a run. Who knows the key can make records with equal
sums: it must stay where the ledger is.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Integers

Words = NDArray[np.uint64]


def word_of(numbers: ArrayLike) -> Words:
    """Numbers as words of 64 bits, in which both zeros are one number and dtypes do not matter."""
    return (np.asarray(numbers, dtype="<f8") + 0.0).view("<u8")


def enciphered_sums(key: bytes, *groups: Sequence[Words]) -> Integers:
    """The sums of the quarters of records' outcomes, and M, after each group, shape (G, 5).

    Parameters
    ----------
    key : secret, of at least 16 random bytes.
    groups : the words of all records, each shape (M,), in the order of their blocks. A group may
        be empty, but for the first one.

    Examples
    --------
    >>> scores, labels = word_of([0.2, 0.7, -0.0]), word_of([0, 1, 1])
    >>> sums = enciphered_sums(bytes(32), (scores, labels))
    >>> bool(np.all(sums == enciphered_sums(bytes(32), (scores[::-1], labels[::-1]))))
    True
    """
    records = groups[0][0].size
    # zeros after the last outcome make whole rows of 256, which are added up faster
    made = np.zeros((records // 256 + 1, 1024), dtype="<u4")
    outcome = made.ravel()[: 4 * records].view("<u8").reshape(-1, 2)
    room, sums = made.view(np.uint8).ravel().data, []
    for number, words in enumerate(groups):
        secret = hmac.digest(key, f"group {number} of {len(words)} words".encode(), "sha256")
        # block by block, as equal records need equal outcomes; these never leave this function
        encryptor = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()  # noqa: S305
        for start in range(0, len(words), 2):
            for half, word in enumerate(words[start : start + 2]):
                outcome[:, half] ^= word
            encryptor.update_into(outcome.tobytes(), room)
        quarters = made.sum(axis=0, dtype=np.int64).reshape(-1, 4).sum(axis=0)
        sums.append([*quarters, records])
    return np.array(sums, dtype=np.int64)


def digests_of(key: bytes, sums: Integers) -> tuple[bytes, bytes]:
    """Keyed digests of the sums after the first group, and of all, of 32 bytes.

    Parameters
    ----------
    key : secret.
    sums : as ``enciphered_sums`` has them.
    """
    first, every = b"first" + sums[:1].tobytes(), b"every" + sums.tobytes()
    return hmac.digest(key, first, "sha256"), hmac.digest(key, every, "sha256")
