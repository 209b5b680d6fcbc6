"""Scores, labels and client ids as flat arrays of one type, or an error that names the value."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.data.errors import DataError

SCORES = "scores"
"""What messages call scores."""

SECOND = "second values"
"""What messages call the second values of records."""

ROUNDED = 2.0**53
"""Size from which float64 rounds whole numbers: different ones would tie; figures would err."""

MUST_BE_EXACT = "that are whole numbers must be below 2**53 in size"


def as_scores(values: ArrayLike, called: str = SCORES) -> NDArray[np.float64]:
    """Scores as a flat float64 array; raises DataError when they are not numbers, or are whole
    numbers that float64 would round."""
    try:
        raw = np.asarray(values)
        scores = np.ascontiguousarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        # NumPy 2 writes np.str_('high') for 'high'
        reason = re.sub(r"np\.str_\((.*)\)$", r"\1", str(error))
        raise DataError(f"{called} must be numbers: {reason}") from None
    if scores.ndim != 1:
        raise DataError(f"{called} must have one axis, got shape {scores.shape}")
    rounded = np.abs(scores) >= ROUNDED
    if raw.dtype.kind in "iu" and rounded.any():
        first = int(np.argmax(rounded))
        raise DataError(f"{called} {MUST_BE_EXACT}, got {raw[first]} in row {first + 1}")
    return scores


def as_labels(values: ArrayLike) -> NDArray[np.int8]:
    """Labels as a flat int8 array; raises DataError naming the first that is not 0 or 1."""
    raw = np.asarray(values)
    if raw.ndim != 1:
        raise DataError(f"labels must have one axis, got shape {raw.shape}")
    if raw.dtype == np.bool_:
        return raw.astype(np.int8)
    if raw.dtype.kind not in "iuf":
        raise DataError(f"labels must be 0 or 1, got values of type {raw.dtype}")
    wrong = np.flatnonzero(~((raw == 0) | (raw == 1)))
    if wrong.size:
        raise DataError(f"labels must be 0 or 1, got {raw[wrong[0]]} in row {wrong[0] + 1}")
    return np.ascontiguousarray(raw, dtype=np.int8)


def as_ids(values: ArrayLike) -> NDArray[Any]:
    """Client ids as an array; raises DataError when they are neither integers nor strings."""
    ids = np.asarray(values)
    if ids.dtype.kind not in "iuUTO":
        raise DataError(f"client ids must be integers or strings, got values of type {ids.dtype}")
    return ids
