"""Masks: uniform elements of a key's stream, and pairs that cancel over all parties only."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacit.crypto import masking
from tacit.crypto.masking import (
    REACH,
    SIZES,
    Field,
    mask,
    neighbours,
    pair_masks,
    total_mask,
)


def pairing(party: int, other: int) -> bytes:
    return sha256(b"%d %d" % (min(party, other), max(party, other))).digest()


@pytest.mark.parametrize("bits", SIZES)
def test_a_mask_is_its_stream(bits: int) -> None:
    field, key = Field(bits), bytes(range(32))
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    size = field.word_bytes
    drawn = stream.update(bytes(20 * size))
    expected = [
        int.from_bytes(drawn[start : start + size], "little") for start in range(0, 20 * size, size)
    ]
    assert total_mask(key, 20, field).tolist() == expected
    assert total_mask(key, 5, field).tolist() == expected[:5]


def test_words_from_the_modulus_on_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else small numbers came up twice as often. The stream's next words take their place."""
    words = [5, 2**64 - 59, 2**64 - 1, 7, 2**64 - 60]

    class Stream:
        def __init__(self) -> None:
            self.left = list(words)

        def encryptor(self) -> Stream:
            return self

        def update(self, zeros: bytes) -> bytes:
            taken = [self.left.pop(0) for _ in range(len(zeros) // 8)]
            return b"".join(word.to_bytes(8, "little") for word in taken)

    monkeypatch.setattr(masking, "Cipher", lambda algorithm, mode: Stream())
    assert total_mask(bytes(32), 3, Field(64)).tolist() == [5, 7, 2**64 - 60]


@pytest.mark.parametrize("parties", [2, 3, 8, 2 * REACH + 1, 130])
def test_pairs_cancel_over_all_parties(parties: int) -> None:
    field = Field(104)
    made = [pair_masks(party, parties, 4, field, pairing) for party in range(parties)]
    assert [total % field.prime for total in np.sum(made, axis=0)] == [0] * 4
    for left_out in (0, parties - 1):
        rest = np.sum([each for party, each in enumerate(made) if party != left_out], axis=0)
        assert all(total % field.prime != 0 for total in rest)


def test_fewer_than_all_neighbours_leave_the_rest_connected() -> None:
    """A ring with 50 neighbours on either side: 99 parties cannot cut it (they are too few)."""
    for party in (0, 17, 299):
        near = neighbours(party, 300)
        assert len(near) == 2 * REACH
        assert all(party in neighbours(other, 300) for other in near)
    assert neighbours(3, 5) == [0, 1, 2, 4]


def test_words_of_a_mask_are_spread_evenly() -> None:
    """Chi-square of the top 4 bits of 8,000 words: above 37.7 once in 1,000 keys (15 degrees)."""
    field = Field(128)
    tops = mask(bytes(31) + b"\1", 8000, field)[:, -1] >> np.uint32(28)
    counts = np.bincount(tops, minlength=16)
    assert counts.size == 16
    assert float(((counts - 500) ** 2 / 500).sum()) < 37.7
