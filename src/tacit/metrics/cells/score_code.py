"""An order-preserving code of scores, whose short codes are the edges of cells.

An AUC does not change under an increasing map of the scores, so the cells that scores are counted
in need no bounds of the data: they follow from the unit of the scores alone. All edges are doubles
with few significant bits; a client compares scores with them and takes no logarithm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats, Integers

HALF_CODE = 0x3FE0_0000_0000_0000
"""The bits of the double 1/2."""


def signed_codes(values: ArrayLike) -> Integers:
    """A 64-bit integer for every number, in the same order: the bits of its size, with its sign.

    Zero and negative zero have the same code. Numbers in [0, 1] have codes from 0 to below
    ``2**62``, so that differences of codes, and of codes doubled, stay within 64 bits.

    Parameters
    ----------
    values : float64, any shape, not NaN.

    Examples
    --------
    >>> codes = signed_codes([-np.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, np.inf])
    >>> bool(np.all(np.diff(codes) >= 0)), codes[2:5].tolist()
    (True, [0, 0, 1])
    """
    numbers = np.asarray(values, dtype=np.float64)
    sizes = np.abs(numbers).view(np.int64)
    return np.where(numbers < 0, -sizes, sizes)


def signed_scores(codes: ArrayLike) -> Floats:
    """The numbers of codes by ``signed_codes``."""
    integers = np.asarray(codes, dtype=np.int64)
    sizes = np.abs(integers).view(np.float64)
    return np.where(integers < 0, -sizes, sizes)


def probability_codes(scores: ArrayLike) -> Integers:
    """A 63-bit integer for every probability, in the same order, as fine at 1 as at 0.

    Below 1/2 it is the bits of the double p; from 1/2 on it is the reflected bits of ``1 - p``,
    which is exact there (Sterbenz 1974): ``code(p) + code(1 - p)`` is the same for both.

    Parameters
    ----------
    scores : float64, any shape, from 0 to 1.

    Examples
    --------
    >>> codes = probability_codes([0.0, 0.25, 0.5, 0.75, 1.0])
    >>> bool(np.all(np.diff(codes) > 0)), int(codes[1] + codes[3]) == 2 * HALF_CODE
    (True, True)
    """
    numbers = np.asarray(scores, dtype=np.float64)
    upper = numbers >= 0.5
    # + 0.0 turns -0.0 into 0.0, whose bits are 0
    bits = (np.where(upper, 1.0 - numbers, numbers) + 0.0).view(np.int64)
    return np.where(upper, 2 * HALF_CODE - bits, bits)


def probability_scores(codes: ArrayLike) -> Floats:
    """The probabilities of codes by ``probability_codes``; from 1/2 on ``1 - q``, rounded once.

    A code from 1/2 on whose ``1 - q`` is no double has no score of its own: it gives the nearest.
    """
    integers = np.asarray(codes, dtype=np.int64)
    upper = integers >= HALF_CODE
    sizes = np.where(upper, 2 * HALF_CODE - integers, integers).view(np.float64)
    return np.where(upper, 1.0 - sizes, sizes)


def truncated(codes: ArrayLike, bits: int) -> Integers:
    """Codes with all but the first ``bits`` bits of the significand cleared, towards zero.

    For a cleared code c, ``code(s) >= c`` is the same as ``s >= score(c)``.

    Raises
    ------
    ValueError : for bits outside 0 to 52.
    """
    if not 0 <= bits <= 52:
        raise ValueError(f"bits must be from 0 to 52, got {bits}")
    integers = np.asarray(codes, dtype=np.int64)
    mask = np.int64(-1) << np.int64(52 - bits)
    return np.where(integers < 0, -(-integers & mask), integers & mask)


def cells_of(scores: ArrayLike, edges: Floats) -> NDArray[np.int64]:
    """The cell of every score, from 0: how many edges are at most the score."""
    return np.searchsorted(edges, np.asarray(scores, dtype=np.float64), side="right")
