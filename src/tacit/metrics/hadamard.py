"""The Walsh-Hadamard matrix ``H[j, v] = (-1)**popcount(j & v)``: its entries and its transform."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

Integers = NDArray[np.integer[Any]]
Bits = NDArray[np.bool_]


def hadamard_bits(rows: Integers, columns: Integers) -> Bits:
    """Where the entries ``H[row, column]`` are -1: the parity of the bits that both have.

    Parameters
    ----------
    rows, columns : integers from 0 to 2**32 - 1, of shapes that broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> hadamard_bits(np.array([0, 1, 2, 3]), np.array([3])).tolist()
    [False, True, True, False]
    """
    folded = rows & columns
    for shift in (16, 8, 4, 2, 1):
        folded = folded ^ (folded >> shift)
    return np.asarray(folded & 1, dtype=np.bool_)


def walsh_hadamard(values: Floats) -> Floats:
    """The product with the Walsh-Hadamard matrix along the last axis, in ``O(d log d)``.

    Each of ``log2(d)`` passes adds and subtracts the two halves and interleaves the results, which
    rotates the bits of the index by one; after all passes they are in natural order again.

    Parameters
    ----------
    values : float64, shape (..., d), d a power of two.

    Returns
    -------
    float64, shape (..., d): entry v is the sum over j of ``H[j, v] values[j]``.

    Raises
    ------
    ValueError : when d is not a power of two.

    Examples
    --------
    >>> import numpy as np
    >>> walsh_hadamard(np.array([1.0, 2.0, 3.0, 4.0])).tolist()
    [10.0, -2.0, -4.0, 0.0]
    """
    size = values.shape[-1]
    if size < 1 or size & (size - 1):
        raise ValueError(f"the last axis must have a power of two of entries, got {size}")
    half, passes = size // 2, size.bit_length() - 1
    source = np.array(values, dtype=np.float64, order="C")
    target = np.empty_like(source)
    for _ in range(passes):
        np.add(source[..., :half], source[..., half:], out=target[..., 0::2])
        np.subtract(source[..., :half], source[..., half:], out=target[..., 1::2])
        source, target = target, source
    return source
