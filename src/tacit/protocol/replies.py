"""Replies to a query: named fields of a batch of clients, cut, stacked and added up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.batches.ragged import Ragged

Field = NDArray[Any] | Ragged[Any]
Reply = Mapping[str, Field]
"""Named fields. Arrays have the client axis last; ragged fields hold several values a client."""


def field_part(value: Field, start: int, stop: int) -> Field:
    """The clients ``start`` to ``stop - 1`` of a field."""
    if isinstance(value, Ragged):
        return value.part(start, stop)
    return value[..., start:stop]


def stack(replies: list[Reply]) -> Reply:
    """Replies of consecutive batches as one reply."""
    return {name: _join([reply[name] for reply in replies]) for name in replies[0]}


def _join(parts: list[Field]) -> Field:
    if len(parts) == 1:
        return parts[0]
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if not ragged:
        return np.concatenate([part for part in parts if not isinstance(part, Ragged)], axis=-1)
    sizes = np.concatenate([part.sizes for part in ragged])
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Ragged(np.concatenate([part.values for part in ragged], axis=-1), offsets)


def total(replies: list[Reply]) -> Reply:
    """The sum of several batches' sums, as ``View.SUM`` shows it."""
    return {name: _sum_field(name, [reply[name] for reply in replies]) for name in replies[0]}


def _sum_field(name: str, parts: list[Field]) -> NDArray[Any]:
    summed = np.zeros((), dtype=np.int64)
    for part in parts:
        if isinstance(part, Ragged) or part.dtype != np.int64:
            raise TypeError(f"field {name!r} must be an array of 64-bit integers to be summed")
        summed = summed + part
    return summed
