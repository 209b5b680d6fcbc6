"""U-statistics of degree 2: means of a symmetric kernel over all pairs of records (Bell et al.
2020).

``U = 2 / (n (n - 1)) * sum over i < j of f(x_i, x_j)``. Exact values are computed from sorted data
or from counts on a finite domain; tables hold a kernel's values for every pair of cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

Counts = NDArray[Any]


def gini_mean_difference(values: Floats) -> float:
    """The mean of ``|x - x'|`` over all pairs (Bell et al. 2020, Eq. 4), in O(n log n).

    In ascending order the value of rank i, from 0, is subtracted in ``n - 1 - i`` pairs and added
    in i, so the sum is ``sum (2 i - n + 1) x_i``.

    Raises
    ------
    ValueError : for fewer than two values.

    Examples
    --------
    >>> import numpy as np
    >>> gini_mean_difference(np.array([0.0, 1.0, 3.0]))
    2.0
    """
    pairs = _pairs(values.size)
    centred = np.sort(values) - values.mean()
    coefficients = 2.0 * np.arange(values.size) - (values.size - 1)
    return float(np.sum(coefficients * centred)) / pairs


def max_gini_mean_difference(low: float, high: float, records: int) -> float:
    """The largest mean of ``|x - x'|`` over all pairs of so many values from ``low`` to ``high``.

    Half of the values lie at either end.

    Raises
    ------
    ValueError : for fewer than two values.

    Examples
    --------
    >>> max_gini_mean_difference(0.0, 1.0, 2), max_gini_mean_difference(0.0, 10.0, 5)
    (1.0, 6.0)
    """
    half = records // 2
    return (high - low) * half * (records - half) / _pairs(records)


def collision_probability(values: NDArray[Any]) -> float:
    """The fraction of pairs that are equal (Bell et al. 2020, Eq. 5).

    Renyi's 2-entropy is minus its logarithm.

    Raises
    ------
    ValueError : for fewer than two values.

    Examples
    --------
    >>> import numpy as np
    >>> collision_probability(np.array([1, 1, 2, 1]))
    0.5
    """
    return _tied_pairs(values) / _pairs(values.size)


def kendall_tau(first: Floats, second: Floats) -> float:
    """Concordant less discordant pairs, over all pairs (Bell et al. 2020, Eq. 6); ties count 0.

    SciPy's tau-b divides by the pairs that are not tied instead; its numerator is restored in
    integers.

    Raises
    ------
    ValueError : for fewer than two records.

    Examples
    --------
    >>> import numpy as np
    >>> kendall_tau(np.array([1.0, 2.0, 3.0, 3.0]), np.array([1.0, 3.0, 2.0, 4.0]))
    0.5
    """
    pairs = _pairs(first.size)
    apart = pairs - _tied_pairs(first), pairs - _tied_pairs(second)
    if min(apart) == 0:
        return 0.0
    from scipy.stats import kendalltau  # noqa: PLC0415 (half a second to import)

    tau_b = float(kendalltau(first, second).statistic)
    return round(tau_b * apart[0] ** 0.5 * apart[1] ** 0.5) / pairs


def pair_mean(table: Floats, counts: Counts) -> float:
    """The mean of a kernel over all pairs of records that were counted, in O(k^2).

    ``(c' A c - sum c_a A_aa) / (n (n - 1))``.

    Parameters
    ----------
    table : the kernel's values A, shape (k, k), symmetric.
    counts : the number of records c in each cell, shape (k,).

    Raises
    ------
    ValueError : for fewer than two records.

    Examples
    --------
    >>> import numpy as np
    >>> pair_mean(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([1, 2]))
    0.6666666666666666
    """
    twice = 2 * _pairs(int(counts.sum()))
    return float(counts @ table @ counts - counts @ np.diagonal(table)) / twice


def gini_table(middles: Floats, width: float = 0.0) -> Floats:
    """``|a - b|`` between the middles of cells, shape (k, k).

    Two values that are uniform in one cell are a third of its width apart on average.

    Examples
    --------
    >>> import numpy as np
    >>> gini_table(np.array([0.25, 0.75]), width=0.6)
    array([[0.2, 0.5],
           [0.5, 0.2]])
    """
    return np.abs(middles[:, np.newaxis] - middles) + np.eye(middles.size) * width / 3


def kendall_table(first: int, second: int) -> Floats:
    """``sign(y - y') sign(z - z')`` between the cells of a grid, shape (first * second,) twice.

    Cell ``(i, j)`` has the index ``i * second + j``; pairs in one row or column count 0.

    Examples
    --------
    >>> kendall_table(2, 2)[0].tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    return np.asarray(np.kron(_signs(first), _signs(second)) + 0.0, dtype=np.float64)


def auc_table(cells: int) -> Floats:
    """Which of two records wins, between cells of both classes, shape (2 * cells,) twice.

    Negatives' cells come first, then positives'. Pairs of one class count 0, a tie one half.

    Examples
    --------
    >>> auc_table(2)[2].tolist()
    [0.5, 0.0, 0.0, 0.0]
    """
    won = (_signs(cells) + 1) / 2
    beaten = np.kron([[0.0, 0.0], [1.0, 0.0]], won)
    return np.asarray(beaten + beaten.T, dtype=np.float64)


def class_table(cells: int) -> Floats:
    """1 between cells of different classes, ordered as in ``auc_table``.

    Examples
    --------
    >>> class_table(1).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.asarray(np.kron(1 - np.eye(2), np.ones((cells, cells))), dtype=np.float64)


def merged_table(table: Floats, sizes: Sequence[int], axes: Sequence[bool]) -> Floats:
    """The table with each pair of neighbouring cells replaced by their mean, in O(k^2).

    It is the kernel of cells of twice the width, an odd last cell left alone, repeated to the shape
    of the table.

    Parameters
    ----------
    table : shape (k, k), k the product of the sizes.
    sizes : the number of cells along each axis; the last axis runs fastest.
    axes : which axes to merge.

    Examples
    --------
    >>> merged_table(gini_table(np.array([1.0, 2.0, 3.0])), [3], [True]).tolist()
    [[0.5, 0.5, 1.5], [0.5, 0.5, 1.5], [1.5, 1.5, 0.0]]
    """
    merged = table.reshape(*sizes, *sizes)
    for axis, merges in enumerate(axes):
        if merges:
            merged = _paired_means(_paired_means(merged, axis), axis + len(sizes))
    return merged.reshape(table.shape)


def _paired_means(table: Floats, axis: int) -> Floats:
    cells = table.shape[axis]
    starts = np.arange(0, cells, 2)
    sizes = np.diff(np.append(starts, cells))
    shape = [1] * table.ndim
    shape[axis] = sizes.size
    means = np.add.reduceat(table, starts, axis=axis) / sizes.reshape(shape)
    return np.repeat(means, sizes, axis=axis)


def _signs(cells: int) -> Floats:
    """``sign(a - b)`` for indices a and b."""
    indices = np.arange(cells, dtype=np.float64)
    return np.sign(indices[:, np.newaxis] - indices)


def _tied_pairs(values: NDArray[Any]) -> int:
    _, sizes = np.unique(values, return_counts=True)
    return int(np.sum(sizes * (sizes - 1)) // 2)


def _pairs(records: int) -> int:
    if records < 2:
        raise ValueError(f"pairs need at least two records, got {records}")
    return records * (records - 1) // 2
