"""The Walsh-Hadamard matrix and its transform against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from tacit.privacy.symbols import hadamard_bits, walsh_hadamard


@pytest.mark.parametrize("exponent", range(9))
def test_the_transform_is_the_product_with_the_matrix(exponent: int) -> None:
    values = np.random.default_rng(exponent).normal(size=(3, 2, 2**exponent))
    expected = values @ hadamard(2**exponent).astype(np.float64)
    np.testing.assert_allclose(walsh_hadamard(values), expected, rtol=1e-12, atol=1e-12)


@given(row=st.integers(0, 2**32 - 1), column=st.integers(0, 2**32 - 1))
def test_a_bit_is_the_parity_of_the_common_bits(row: int, column: int) -> None:
    bits = hadamard_bits(np.array([row]), np.array([column]))
    assert bool(bits[0]) == bool((row & column).bit_count() % 2)


@pytest.mark.parametrize("size", [0, 3, 12])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=f"power of two of entries, got {size}"):
        walsh_hadamard(np.zeros((2, size)))
