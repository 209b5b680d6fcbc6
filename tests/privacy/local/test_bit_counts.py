"""Counting packed bits, against unpacking them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.privacy import unary as module
from tacit.privacy.unary import BitCounter


def bit_counts(packed: NDArray[np.uint8]) -> Integers:
    counter = BitCounter(packed.shape[1])
    counter.add(packed)
    return counter.counts()


@given(
    rows=st.integers(0, 700), size=st.sampled_from([1, 2, 4, 8, 16, 32]), seed=st.integers(0, 99)
)
def test_counts_are_those_of_the_unpacked_bits(rows: int, size: int, seed: int) -> None:
    packed = np.random.default_rng(seed).integers(0, 256, (rows, size), dtype=np.uint8)
    assert np.array_equal(bit_counts(packed), np.unpackbits(packed, axis=-1).sum(axis=0))


def test_many_rows_of_words_carry_into_higher_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROW_WORDS", 16)
    packed = np.full((1001, 16), 255, dtype=np.uint8)
    assert bit_counts(packed).tolist() == [1001] * 128


@pytest.mark.parametrize("size", [4, 8, 16, 32])
def test_rows_of_words_are_counted_as_unpacked_bits_are(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROW_WORDS", 8)
    packed = np.random.default_rng(size).integers(0, 256, (4321, size), dtype=np.uint8)
    assert np.array_equal(bit_counts(packed), np.unpackbits(packed, axis=-1).sum(axis=0))


@given(
    sizes=st.lists(st.integers(0, 60), max_size=8),
    size=st.sampled_from([1, 2, 8]),
    seed=st.integers(0, 99),
)
def test_blocks_are_counted_as_one(sizes: list[int], size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    blocks = [rng.integers(0, 256, (rows, size), dtype=np.uint8) for rows in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROW_WORDS", 8)
        counter = BitCounter(size)
        for block in blocks:
            counter.add(block)
        packed = np.concatenate([*blocks, np.zeros((0, size), dtype=np.uint8)])
        assert np.array_equal(counter.counts(), np.unpackbits(packed, axis=-1).sum(axis=0))


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two of bytes, got 3"):
        bit_counts(np.zeros((2, 3), dtype=np.uint8))
