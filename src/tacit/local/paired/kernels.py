"""Kernels of single pairs of records: as choices, as integers, and as two clients compute them.

Both records of a pair come as two rows: the score or value, and below it the label or the second
value. A joint computation by cryptography has to give these integers exactly, on shares modulo
2**64; ``signed_codes`` turns numbers into integers that compare as they do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.data.errors import DataError
from tacit.metrics.cells.score_scale import signed_codes
from tacit.protocol import mpc
from tacit.protocol.settings import Between, Choice

GRIDS: dict[str, int] = {"auc": 1, "collision": 1, "kendall": 1, "gini": 2**12}
"""Every kernel's grid: the factor that makes its values integers."""

BOUNDS: dict[str, tuple[int, int]] = {
    "auc": (0, 1),
    "collision": (0, 1),
    "kendall": (-1, 1),
    "gini": (0, 2**12),
}
"""The smallest and the largest integer of every kernel, reached by some pair of records."""

TWO_VALUED = tuple(kernel for kernel, bounds in BOUNDS.items() if bounds == (0, 1))
"""The kernels whose values are 0 and 1."""

COIN_MODULUS = 2**30
"""Joint coins are drawn modulo this; a bit's probability is a multiple of its inverse."""

HALVINGS = 511
"""How often numbers that are only compared are divided by two. That keeps their order, and
differences of codes stay within 64 bits."""

LEAST, MOST = 2.0 ** (HALVINGS - 1022), 2.0 ** (HALVINGS + 1)
"""Numbers that are only compared are 0, or from ``LEAST`` to below ``MOST`` in magnitude."""


@dataclass(frozen=True)
class Area(Choice):
    """The AUC: whether the positive of a pair of both classes has the higher score."""

    word = "auc"


@dataclass(frozen=True)
class Collision(Choice):
    """Whether two values are equal."""

    word = "collision"


@dataclass(frozen=True)
class Kendall(Choice):
    """Whether two records compare alike by both of their values."""

    word = "kendall"


@dataclass(frozen=True)
class Gini(Between):
    """The distance of two values of a public range."""

    word = "gini"


def paired_values(kernel: str, first: Floats, second: Floats) -> Integers:
    """The kernel of every pair of records, times its grid.

    ``"auc"``: 1 for a pair of both classes whose positive has the higher score. Of equal scores the
    first record's counts as the higher: which record of a pair is the first is drawn at random, so
    a tie counts one half in the mean, and single values stay 0 or 1. ``"collision"``: 1 where the
    values are equal. ``"kendall"``: ``sign(x - x') sign(z - z')``, 0 for ties. ``"gini"``:
    ``|c - c'|`` with c the value times the grid, rounded to the nearest integer by its client
    (halves to even).

    Parameters
    ----------
    kernel : a name in ``GRIDS``.
    first, second : the pairs' first and second records, shape (2, ...): row 0 the score or value,
        row 1 the label (0 or 1) or second value, which two of the kernels do not read. For
        ``"gini"`` values in [0, 1].

    Returns
    -------
    Integers of shape (...), within ``BOUNDS``.

    Examples
    --------
    >>> first = np.array([[0.7, 0.4, 0.2], [1.0, 0.0, 1.0]])
    >>> second = np.array([[0.4, 0.4, 0.9], [0.0, 1.0, 1.0]])
    >>> paired_values("auc", first, second).tolist()
    [1, 0, 0]
    >>> paired_values("collision", first, second).tolist()
    [0, 1, 0]
    >>> paired_values("kendall", first, second).tolist()
    [1, 0, 0]
    >>> (paired_values("gini", first, second) / GRIDS["gini"]).round(4).tolist()
    [0.3, 0.0, 0.7]
    """
    # the second record is on the left, which wins by a higher score alone: ties are the first's
    sides: list[NDArray[Any]] = [second, first]
    if kernel == "gini":
        sides = [gini_codes(side[:1]) for side in sides]
    return np.asarray(_KERNELS[kernel](np, *sides), dtype=np.int64)


def gini_codes(values: Floats) -> Integers:
    """Values in [0, 1] on Gini's grid, 0 to ``2**12``.

    Examples
    --------
    >>> gini_codes(np.array([0.0, 0.25, 1.0])).tolist()
    [0, 1024, 4096]
    """
    return np.rint(values * GRIDS["gini"]).astype(np.int64)


def kernel_codes(kernel: str, rows: NDArray[np.float64], leading: NDArray[np.bool_]) -> Integers:
    """A party's own records as the integers that a kernel's program takes, shape (columns, n).

    Parameters
    ----------
    kernel : a name in ``GRIDS``.
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
        return np.stack([2 * signed_codes(rows[0]) + leading, rows[1].astype(np.int64)])
    return comparable_codes(rows if kernel == "kendall" else rows[:1])


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
    return signed_codes(np.ldexp(values, -HALVINGS))


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
"""Every kernel of a left and a right record, of arrays of numbers or of integers on shares."""


def noisy_kernel(kernel: str, arrays: Any) -> mpc.Function:
    """The kernel plus one noise term of either client; inputs of shape (columns + 1, n) each.

    ``arrays`` is the module of array functions (``SharedRun.arrays``).
    """

    return lambda left, right: _KERNELS[kernel](arrays, left, right) + left[-1] + right[-1]


def responding_kernel(kernel: str, threshold: int, arrays: Any) -> mpc.Function:
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
