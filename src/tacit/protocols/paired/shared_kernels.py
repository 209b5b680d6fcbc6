"""What two clients compute on shares: kernels of pairs with noise.

All numbers are integers modulo 2**64, so that nothing is rounded and sums wrap around as shares do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Integers
from tacit.data.errors import DataError
from tacit.metrics.ranking import ordered_codes
from tacit.protocol.mpc import Function
from tacit.protocols.paired.kernels import gini_codes

COIN_MODULUS = 2**30
"""Joint coins are drawn modulo this; a bit's probability is a multiple of its inverse."""

HALVINGS = 511
"""How often numbers that are only compared are divided by two. That keeps their order, and
differences of codes stay within 64 bits."""

LEAST, MOST = 2.0 ** (HALVINGS - 1022), 2.0 ** (HALVINGS + 1)
"""Numbers that are only compared are 0, or from ``LEAST`` to below ``MOST`` in magnitude."""


def kernel_codes(kernel: str, rows: NDArray[np.float64], leading: NDArray[np.bool_]) -> Integers:
    """A party's own records as the integers that a kernel's program takes, shape (columns, n).

    Parameters
    ----------
    kernel : a name in ``COLUMNS``.
    rows : shape (2, n): the score or value, and the label or second value.
    leading : shape (n,), whether the record is the first of its pair: of equal scores it counts as
        the higher, so its code is one more than twice the score's, and the other's is twice.

    Raises
    ------
    DataError : for scores outside [0, 1] where the kernel is the AUC, and for numbers so large or
        so small that they could not be compared exactly.

    Examples
    --------
    >>> kernel_codes("gini", np.array([[0.25, 1.0], [0.0, 0.0]]), np.array([True, True])).tolist()
    [[1024, 4096]]
    """
    if kernel == "gini":
        return gini_codes(rows[:1])
    if kernel == "auc":
        _check_scores(rows[0])
        return np.stack([2 * ordered_codes(rows[0]) + leading, rows[1].astype(np.int64)])
    return comparable_codes(rows[: COLUMNS[kernel]])


def comparable_codes(values: NDArray[np.float64]) -> Integers:
    """Integers between ``-2**62`` and ``2**62`` that compare exactly as these numbers do.

    Raises
    ------
    DataError : for a number that is neither 0 nor from ``LEAST`` to below ``MOST`` in magnitude.

    Examples
    --------
    >>> codes = comparable_codes(np.array([-1e150, -5.0, 0.0, 1e-100, 4.0, 5.0]))
    >>> bool(np.all(np.diff(codes) > 0)), bool(abs(codes).max() < 2**62)
    (True, True)
    """
    size = np.abs(values)
    wrong = np.flatnonzero((size >= MOST) | ((size > 0) & (size < LEAST)))
    if wrong.size:
        raise DataError(
            f"numbers to compare must be 0, or from {LEAST:.3g} to {MOST:.3g} in magnitude, "
            f"got {values.ravel()[wrong[0]]}"
        )
    return ordered_codes(np.ldexp(values, -HALVINGS))


def _check_scores(scores: NDArray[np.float64]) -> None:
    wrong = np.flatnonzero((scores < 0) | (scores > 1))
    if wrong.size:
        raise DataError(
            f"scores to compare jointly must be in [0, 1], got {scores[wrong[0]]}; "
            "map them there by public bounds with rescale"
        )


def _auc(arrays: Any, left: Any, right: Any) -> Any:
    """``y (1 - z) g + z (1 - y) (1 - g)``, where g is 1 if the left score is the higher."""
    y, z = left[1], right[1]
    return arrays.where(left[0] > right[0], y - z, 0) + z - y * z


def _collision(arrays: Any, left: Any, right: Any) -> Any:
    return arrays.where(left[0] == right[0], 1, 0)


def _kendall(arrays: Any, left: Any, right: Any) -> Any:
    above = arrays.where(left[1] > right[1], 1, 0) - arrays.where(right[1] > left[1], 1, 0)
    return arrays.where(left[0] > right[0], above, 0) - arrays.where(right[0] > left[0], above, 0)


def _gini(arrays: Any, left: Any, right: Any) -> Any:
    apart = left[0] - right[0]
    return 2 * arrays.where(left[0] > right[0], apart, 0) - apart


_KERNELS = {"auc": _auc, "collision": _collision, "kendall": _kendall, "gini": _gini}

COLUMNS = {"auc": 2, "collision": 1, "kendall": 2, "gini": 1}
"""How many numbers of a record each kernel reads."""


def noisy_kernel(kernel: str, arrays: Any) -> Function:
    """The kernel plus one noise term of either client; inputs of shape (columns + 1, n) each.

    ``arrays`` is the module of array functions (``SharedRun.arrays``).
    """

    def function(left: Any, right: Any) -> Any:
        return _KERNELS[kernel](arrays, left, right) + left[-1] + right[-1]

    return function


def responding_kernel(kernel: str, threshold: int, arrays: Any) -> Function:
    """A 0/1 kernel whose value is flipped by a coin that neither party knows.

    Each party inputs a uniform number below ``2**30`` in its last row. Their sum modulo ``2**30``
    is uniform whatever one of the two does; the value is flipped where it is below ``threshold``.
    """

    def function(left: Any, right: Any) -> Any:
        value = _KERNELS[kernel](arrays, left, right)
        drawn = left[-1] + right[-1]
        coin = arrays.where(drawn < threshold, 1, 0)
        coin += arrays.where(drawn < COIN_MODULUS + threshold, 1, 0)
        coin -= arrays.where(drawn < COIN_MODULUS, 1, 0)
        return value + coin - 2 * value * coin

    return function
