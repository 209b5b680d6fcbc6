"""Optimal unary encoding: exact likelihoods, counts estimated from bits, packed bits counted."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.privacy import unary
from tacit.privacy.noise import SimulatedNoise
from tests.privacy.reference import Scripted

ALARM = 5.0
"""Standard errors of a mean; a correct one exceeds them with probability 6e-7."""


def likelihoods(value: int, size: int, epsilon: float) -> dict[tuple[bool, ...], float]:
    """The probability of every answer, summed over all outcomes of the bits that were drawn."""
    values: dict[tuple[bool, ...], float] = {}
    for script in product((False, True), repeat=size + 1):
        noise = Scripted([], list(script))
        bits = unary.unary_bits(np.array([value]), size, epsilon, noise)
        assert not noise.bits
        answer = tuple(bits[0].tolist())
        values[answer] = values.get(answer, 0.0) + noise.chance
    return values


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_every_answer_costs_at_most_epsilon_and_one_costs_it(size: int, epsilon: float) -> None:
    """Exact, by enumeration of all answers and all pairs of values."""
    tables = [likelihoods(value, size, epsilon) for value in range(size)]
    for table in tables:
        assert math.fsum(table.values()) == pytest.approx(1.0, rel=1e-12)
        assert len(table) == 2**size
    worst = max(
        abs(math.log(first[answer] / second[answer]))
        for first in tables
        for second in tables
        for answer in first
    )
    assert worst == pytest.approx(epsilon, rel=1e-9)


def test_replicates_may_have_values_of_their_own() -> None:
    """Half of 350 values are reported, within 5 standard deviations of 0.027: below 1e-6."""
    values = np.random.default_rng(0).integers(0, 4, (50, 7))
    bits = unary.unary_bits(values, 4, 40.0, SimulatedNoise(3, replicates=50))
    assert bits.shape == (50, 7, 4)
    replicate, record, value = np.nonzero(bits)
    np.testing.assert_array_equal(values[replicate, record], value)
    assert abs(value.size / values.size - 0.5) < 0.135


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_counts_are_unbiased_and_as_wrong_as_said(epsilon: float) -> None:
    """4,000 draws: means within 5 of their errors, variances within 12 % (five of theirs)."""
    values = np.repeat([0, 1, 1, 3], [50, 100, 20, 130])
    bits = unary.unary_bits(values, 4, epsilon, SimulatedNoise(6, replicates=4000))
    assert bits.shape == (4000, 300, 4)
    counts = unary.unary_counts(bits.sum(axis=1), 300, epsilon)
    true_counts = np.bincount(values, minlength=4)
    expected = 300 * unary.unary_variance(epsilon) + true_counts * unary.SET_BIT_VARIANCE
    assert (np.abs(counts.mean(axis=0) - true_counts) < ALARM * np.sqrt(expected / 4000)).all()
    np.testing.assert_allclose(counts.var(axis=0), expected, rtol=0.12)


def test_no_reports_give_no_bits() -> None:
    empty = np.zeros(0, dtype=np.int64)
    assert unary.unary_bits(empty, 4, 1.0, SimulatedNoise(1, replicates=2)).shape == (2, 0, 4)


@given(
    sizes=st.lists(st.integers(0, 60), max_size=8),
    size=st.sampled_from([1, 2, 8, 32]),
    seed=st.integers(0, 99),
)
@example(sizes=[4321, 7], size=16, seed=0)
def test_counts_of_blocks_are_those_of_the_unpacked_bits(
    sizes: list[int], size: int, seed: int
) -> None:
    """Rows of few words, so that sums carry into higher digits."""
    rng = np.random.default_rng(seed)
    blocks = [rng.integers(0, 256, (rows, size), dtype=np.uint8) for rows in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unary, "ROW_WORDS", 8)
        counter = unary.BitCounter(size)
        for block in blocks:
            counter.add(block)
        packed = np.concatenate([*blocks, np.zeros((0, size), dtype=np.uint8)])
        assert np.array_equal(counter.counts(), np.unpackbits(packed, axis=-1).sum(axis=0))


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="power of two of bytes, got 3"):
        unary.BitCounter(3)
