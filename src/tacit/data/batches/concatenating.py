"""Several batches of clients as one, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.categories import Categories
from tacit.data.errors import DataError


def concatenated(parts: Sequence[Any]) -> dict[str, Any]:
    """The fields of all clients of several batches, in order.

    Parameters
    ----------
    parts : batches of clients (``Clients``).

    Raises
    ------
    DataError : for no batch at all, where only some of them have second values, or where their
        units differ.
    """
    if not parts:
        raise DataError("no clients were given")
    seconds = [part.second for part in parts if part.second is not None]
    if seconds and len(seconds) < len(parts):
        raise DataError(
            f"{len(seconds)} of {len(parts)} batches have second values: all must, or none"
        )
    ends = np.cumsum([part.records for part in parts])
    shifted = [part.offsets[1:] + end - part.records for part, end in zip(parts, ends, strict=True)]
    return {
        "scores": np.concatenate([part.scores for part in parts]),
        "labels": np.concatenate([part.labels for part in parts]),
        "offsets": np.concatenate([np.zeros(1, dtype=np.int64), *shifted]),
        "names": tuple(name for part in parts for name in part.names),
        "simulated": any(part.simulated for part in parts),
        "second": np.concatenate(seconds) if seconds else None,
        "unit": _common_unit(parts),
        "persons": _all_persons(parts),
        "categories": Categories.concatenate([part.categories for part in parts]),
        "left_out": _all_left_out(parts),
    }


def _all_persons(parts: Sequence[Any]) -> NDArray[np.bytes_] | None:
    """The persons of all batches, which all have them, or none has."""
    known = [part.persons for part in parts if part.persons is not None]
    if known and len(known) < len(parts):
        raise DataError(f"{len(known)} of {len(parts)} batches have persons: all must, or none")
    return np.concatenate(known) if known else None


def _all_left_out(parts: Sequence[Any]) -> NDArray[np.int64] | None:
    """What was left out of all batches; of one that says nothing, no record was."""
    if all(part.left_out is None for part in parts):
        return None
    counts = [
        np.zeros((2, part.count), dtype=np.int64) if part.left_out is None else part.left_out
        for part in parts
    ]
    return np.concatenate(counts, axis=1)


def _common_unit(parts: Sequence[Any]) -> str | None:
    """The unit of all batches; a batch of unknown unit fits no other."""
    units = sorted({part.unit or "no named unit" for part in parts})
    if len(units) > 1:
        raise DataError(f"batches of one unit can be put together, got {' and '.join(units)}")
    return parts[0].unit
