"""The sums of honest vectors that a server's view determines.

A masked vector is ``y_i = x_i + s_i + sum_j +-p_ij`` over the partners j of client i, modulo 2^b
(Bonawitz et al. 2017, section 4). A self mask s_i occurs in y_i only, and a pair mask p_ij in y_i
and y_j only, with opposite signs; what was not opened is uniform and independent of the rest. A
combination ``sum_i c_i y_i`` therefore says something of the vectors alone exactly if ``c_i = 0``
where s_i is closed, and ``c_i = c_j`` for each closed p_ij, where c counts as 0 for a client that
did not add p_ij. So the determined combinations are spanned by the sums over those connected
parts, in the graph of closed pair masks, that have no closed pair mask to anybody else. This holds
in every ring, and attempts have fresh masks: over several, spans are added.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tacit.crypto.secure_sum.graph import Indices
from tacit_studies.secure_sums.setting import Bools

NOWHERE = -1
"""The label of a client whose vector is in no determined sum."""


def determined_sums(partners: Bools, readable: Bools, keys: Bools) -> Indices:
    """Which sums of honest vectors are determined.

    Parameters
    ----------
    partners : shape (..., K, K), row i is whose pair masks honest client i added; empty rows for
        colluders and for those who sent no masked vector.
    readable : shape (..., K), the honest clients that sent one and whose seed is known.
    keys : shape (..., K), whose mask key is known; colluders are among them.

    Returns
    -------
    int64, shape (..., K): clients with the same label are summed together; ``NOWHERE`` for a
    client that is in no determined sum.

    Examples
    --------
    The masks of three clients cancel in their sum; then the key of client 2 is opened too.

    >>> everyone = ~np.eye(3, dtype=bool)
    >>> determined_sums(everyone, np.ones(3, bool), np.zeros(3, bool))
    array([0, 0, 0])
    >>> determined_sums(everyone, np.array([True, True, False]), np.array([False, False, True]))
    array([ 0,  0, -1])
    """
    clients = readable.shape[-1]
    closed = partners & ~keys[..., None, :] & ~keys[..., :, None]
    linked = closed & closed.swapaxes(-1, -2)
    linked &= readable[..., None, :] & readable[..., :, None]
    loose = (closed & ~linked).any(-1)
    labels = np.where(readable & ~loose, np.arange(clients), NOWHERE)
    while True:
        # a label of NOWHERE spreads over its whole part, as the least one does
        around = np.where(linked, labels[..., None, :], clients).min(-1)
        lowered = np.minimum(labels, around)
        if np.array_equal(lowered, labels):
            return labels
        labels = lowered


def least_sum(labels: Indices) -> Indices:
    """The number of vectors in the smallest determined sum, shape (...); 0 where there is none."""
    clients = labels.shape[-1]
    sizes = (labels[..., None] == np.arange(clients)).sum(-2)
    least = np.where(sizes > 0, sizes, clients + 1).min(-1)
    return np.where(least > clients, 0, least)


def sums_of(labels: Indices) -> list[frozenset[int]]:
    """The determined sums of one view, each as the set of its clients."""
    return [
        frozenset(np.flatnonzero(labels == label).tolist())
        for label in np.unique(labels[labels != NOWHERE])
    ]


def least_combination(sums: Iterable[frozenset[int]]) -> int:
    """The fewest vectors that a combination of sums holds, whatever its coefficients modulo 2^b.

    Multiplication by a power of two turns every combination into ``2^(b-1)`` times a combination
    over {0, 1}, of no more vectors. These are the span modulo 2 of the sums' lattice, made
    primitive at 2: elimination takes the pivot of least 2-adic value first, and divides its row by
    that power of two.

    Returns
    -------
    The least number of vectors; 0 without sums.

    Raises
    ------
    ValueError : when more than 16 independent sums are given.

    Examples
    --------
    >>> least_combination([frozenset({0, 1, 2, 3}), frozenset({0, 1, 2})])
    1
    >>> least_combination([frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})])
    1
    """
    rows = _primitive([dict.fromkeys(vector, 1) for vector in set(sums)])
    if len(rows) > 16:
        raise ValueError(f"at most 16 independent sums can be combined, got {len(rows)}")
    masks = [sum(1 << k for k, value in row.items() if value % 2) for row in rows]
    spanned = [0]
    for mask in masks:
        spanned += [vector ^ mask for vector in spanned]
    return min((vector.bit_count() for vector in spanned[1:]), default=0)


def _primitive(rows: list[dict[int, int]]) -> list[dict[int, int]]:
    """Rows independent modulo 2 that span the same vectors up to odd and even multiples."""
    done: list[dict[int, int]] = []
    rows = [row for row in rows if row]
    while rows:
        chosen, column = min(
            ((i, k) for i, row in enumerate(rows) for k in row),
            key=lambda at: (_valuation(rows[at[0]][at[1]]), at),
        )
        power = 1 << _valuation(rows[chosen][column])
        # every other entry has at least this 2-adic value, so the divisions below are exact
        pivot = {k: value // power for k, value in rows.pop(chosen).items()}
        rows = [_eliminated(row, pivot, column) for row in rows]
        rows = [row for row in rows if row]
        done.append(pivot)
    return done


def _eliminated(row: dict[int, int], pivot: dict[int, int], column: int) -> dict[int, int]:
    """The row without its entry in a column where the pivot is odd; an odd factor is harmless."""
    factor, leading = row.get(column, 0), pivot[column]
    mixed = {
        k: leading * row.get(k, 0) - factor * pivot.get(k, 0) for k in row.keys() | pivot.keys()
    }
    return {k: value for k, value in mixed.items() if value}


def _valuation(number: int) -> int:
    """The power of two in a number other than 0."""
    return (number & -number).bit_length() - 1
