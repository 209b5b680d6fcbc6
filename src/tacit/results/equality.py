"""When two results are the same: all of their fields that count, to the last bit of every array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def is_same(one: Any, other: Any) -> bool:  # noqa: PLR0911 -- a case for each kind of value
    """Whether two values are the same; NaN is itself, and arrays have one type and shape.

    Examples
    --------
    >>> is_same((1.0, float("nan")), (1.0, float("nan")))
    True
    >>> is_same(np.zeros(2), np.zeros(2, dtype=np.int64))
    False
    """
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        exact = one.dtype == other.dtype and one.shape == other.shape
        return exact and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and _all_same((one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and _all_same(zip(one, other, strict=True))
    names = [item.name for item in fields(one) if item.compare] if is_dataclass(one) else []
    if names:
        return _all_same((getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other) or bool(one != one and other != other)  # noqa: PLR0124 -- NaN


def _all_same(pairs: Iterable[tuple[Any, Any]]) -> bool:
    return all(is_same(one, other) for one, other in pairs)
