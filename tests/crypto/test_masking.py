"""Fields of masked values, and the masks that cancel in a sum."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest
from Crypto.Util.number import isPrime
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tacit.crypto import masking
from tacit.crypto.masking import REACH, SIZES, Field, MaskedValueError, total_mask


@given(bits=st.sampled_from(SIZES), data=st.data())
def test_sums_are_those_of_integers(bits: int, data: st.DataObject) -> None:
    field = Field(bits)
    number = st.one_of(st.integers(0, field.prime - 1), st.just(field.prime - 1), st.just(0))
    rows = data.draw(st.lists(st.lists(number, min_size=3, max_size=3), min_size=1, max_size=5))
    messages = [field.to_bytes(field.elements(row)) for row in rows]
    expected = [sum(column) % field.prime for column in zip(*rows, strict=True)]
    assert field.summed(messages, 3).tolist() == expected
    assert field.from_bytes(messages[0], 3).tolist() == rows[0]


@pytest.mark.parametrize("bits", SIZES)
def test_words_of_a_field(bits: int) -> None:
    field = Field(bits)
    assert field.word_bytes == bits // 8
    assert isPrime(field.prime)
    assert not any(map(isPrime, range(field.prime + 2, 2**bits, 2)))
    assert field.elements_of(field.modulus[np.newaxis]).tolist() == [0]
    for wrong in (field.prime, field.prime + 1, 2 ** (8 * field.word_bytes) - 1):
        message = wrong.to_bytes(field.word_bytes, "little")
        with pytest.raises(MaskedValueError, match="not below the modulus"):
            field.from_bytes(message, 1)
    with pytest.raises(MaskedValueError, match="2 masked values have"):
        field.from_bytes(bytes(field.word_bytes), 2)


def test_a_field_holds_what_it_must() -> None:
    assert [Field.above(Field(bits).prime - 1).bits for bits in SIZES] == list(SIZES)
    assert [Field.above(Field(bits).prime).bits for bits in SIZES[:-1]] == list(SIZES[1:])
    with pytest.raises(ValueError, match=r"must be below 2\*\*200 - 75"):
        Field.above(2**200)
    with pytest.raises(ValueError, match="bits must be one of"):
        Field(61)


def test_the_logarithm_of_a_multiplier_is_uniform() -> None:
    """Kolmogorov and Smirnov's test at 4,000 draws; false alarm 1e-3.

    Uniform numbers in an octave, with steps instead of 1/n, are rejected: they are off by 0.086 in
    an octave.
    """

    def is_uniform(logarithms: NDArray[np.float64]) -> bool:
        return bool(stats.kstest(logarithms, "uniform").pvalue > 1e-3)

    for low, octaves in ((20, 1), (12, 10)):
        drawn = np.log2([float(masking.log_uniform(low, octaves)) for _ in range(4000)])
        assert is_uniform((drawn - low) / octaves)
    assert not is_uniform(np.log2(1.0 + np.random.default_rng(0).random(4000)))


def pairing(party: int, other: int) -> bytes:
    return sha256(b"%d %d" % (min(party, other), max(party, other))).digest()


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
    made = [masking.pair_masks(party, parties, 4, field, pairing) for party in range(parties)]
    assert [total % field.prime for total in np.sum(made, axis=0)] == [0] * 4
    for left_out in (0, parties - 1):
        rest = np.sum([each for party, each in enumerate(made) if party != left_out], axis=0)
        assert all(total % field.prime != 0 for total in rest)
