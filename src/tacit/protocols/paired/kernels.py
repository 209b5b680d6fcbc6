"""Kernels of single pairs of records, in the integers that a joint computation gives.

Both records of a pair come as two rows: the score or value, and below it the label or the second
value. A joint computation by cryptography has to give these integers exactly; ``ordered_codes``
turns numbers into integers that compare as they do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers

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

    Raises
    ------
    ValueError : for a kernel that has no name here.

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
    if kernel not in _RULES:
        raise ValueError(f"kernel must be one of {tuple(_RULES)}, got {kernel!r}")
    return np.asarray(_RULES[kernel](first, second), dtype=np.int64)


def gini_codes(values: Floats) -> Integers:
    """Values in [0, 1] on Gini's grid, 0 to ``2**12``.

    Examples
    --------
    >>> gini_codes(np.array([0.0, 0.25, 1.0])).tolist()
    [0, 1024, 4096]
    """
    return np.rint(values * GRIDS["gini"]).astype(np.int64)


def _auc(first: Floats, second: Floats) -> NDArray[np.bool_]:
    first_wins = (first[0] >= second[0]) & (first[1] > second[1])
    return np.asarray(first_wins | ((second[0] > first[0]) & (second[1] > first[1])))


def _collision(first: Floats, second: Floats) -> NDArray[np.bool_]:
    return np.asarray(first[0] == second[0])


def _kendall(first: Floats, second: Floats) -> Integers:
    signs = (first > second).astype(np.int64) - (first < second)
    return np.asarray(signs[0] * signs[1])


def _gini(first: Floats, second: Floats) -> Integers:
    return np.abs(gini_codes(first[0]) - gini_codes(second[0]))


_RULES: dict[str, Callable[[Floats, Floats], NDArray[np.int64] | NDArray[np.bool_]]] = {
    "auc": _auc,
    "collision": _collision,
    "kendall": _kendall,
    "gini": _gini,
}
