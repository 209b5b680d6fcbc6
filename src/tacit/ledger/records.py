"""Records as bytes, from which a ledger makes a fingerprint under its key."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def canonical_records(*columns: NDArray[Any]) -> bytes:
    """Records as bytes that depend on their values and numbers, not on order or dtype.

    Parameters
    ----------
    columns : each shape (M,), of finite numbers.

    Raises
    ------
    ValueError : for no columns, columns of different lengths, or numbers that are not finite.

    Examples
    --------
    >>> one = canonical_records(np.array([0.2, 0.7]), np.array([0, 1]))
    >>> one == canonical_records(np.array([0.7, 0.2]), np.array([1, 0]))
    True
    """
    if not columns:
        raise ValueError("a fingerprint needs at least one column, got none")
    sizes = [np.asarray(column).shape for column in columns]
    if any(len(size) != 1 or size != sizes[0] for size in sizes):
        raise ValueError(f"columns must have one length, got shapes {sizes}")
    table = np.array([np.asarray(column, dtype=np.float64) for column in columns])
    if not np.isfinite(table).all():
        raise ValueError("a fingerprint needs finite numbers")
    ordered = table[:, np.lexsort(table[::-1])] + 0.0
    return f"{len(columns)} {ordered.shape[1]} ".encode() + ordered.astype("<f8").tobytes()
