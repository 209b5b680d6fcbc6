"""What batches of clients must be: lengths that agree, finite values, labels of 0 and 1.

Scores, labels and client ids as flat arrays of one type, or an error that names the value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Integers
from tacit.crypto.multisets import enciphered_sums, word_of
from tacit.data.errors import DataError
from tacit.data.units import ENDS_OF_LOG_ODDS, LOG_ODDS, RANGES, check_unit

SCORES = "scores"
"""What messages call scores."""

SECOND = "second values"
"""What messages call the second values of records."""

COLUMNS = ("scores", "labels", "second", "persons", "categories")
"""What is known of each record, as clients name it."""

ROUNDED = 2.0**53
"""Size from which float64 rounds whole numbers: different ones would tie; figures would be
wrong."""

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
        remedy = (
            "; of probabilities of both classes pass p[:, 1]" if scores.shape[1:] == (2,) else ""
        )
        raise DataError(f"{called} must have one axis, got shape {scores.shape}{remedy}")
    if raw.dtype.kind in "iu" and (rounded := np.abs(scores) >= ROUNDED).any():
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


def as_keys(values: ArrayLike, called: str) -> NDArray[Any]:
    """Ids or names as an array of shape (M,).

    Raises
    ------
    DataError : for another shape, and for values that are neither integers nor strings.
    """
    keys = np.asarray(values)
    if keys.ndim != 1 or keys.dtype.kind not in "iuUTO":
        raise DataError(
            f"{called} must be one axis of integers or strings, "
            f"got type {keys.dtype} of shape {keys.shape}"
        )
    return keys


WEIGHTED = (
    "weights on records are not supported: it is not defined by how much a record of a given "
    "weight may change a figure, and noise follows from that; leave weights out"
)


def validate_clients(clients: Any) -> None:
    """Refuse clients that cannot be (``Clients``)."""
    offsets, records = clients.offsets, clients.scores.size
    check_sizes(columns_of(clients))
    if offsets.size < 2:
        raise DataError("at least one client is needed, got none")
    if offsets[0] != 0 or offsets[-1] != records:
        raise DataError(f"offsets must run from 0 to {records}, got {offsets[0]} to {offsets[-1]}")
    if clients.left_out is not None and clients.left_out.shape != (2, offsets.size - 1):
        raise DataError(
            f"records left out must be of shape (2, {offsets.size - 1}), "
            f"got {clients.left_out.shape}"
        )
    empty = np.flatnonzero(np.diff(offsets) <= 0)
    if empty.size:
        raise DataError(f"{clients.name(int(empty[0]))} has no records")
    if clients.names and len(clients.names) != clients.count:
        raise DataError(f"{clients.count} clients but {len(clients.names)} names")
    for name, number in Counter(clients.names).items():
        if number > 1:
            raise DataError(f"client names must be unique, got {name!r} twice")
    infinite, labels = ~np.isfinite(clients.scores), clients.labels
    remedy = f"; {ENDS_OF_LOG_ODDS}" if clients.unit == LOG_ODDS else ""
    _refuse_first(clients, clients.scores, infinite, "scores must be finite", remedy)
    check_unit_of(clients.unit, clients.outlier)
    if clients.second is not None:
        infinite = ~np.isfinite(clients.second)
        _refuse_first(clients, clients.second, infinite, "second values must be finite")
    _refuse_first(clients, labels, (labels != 0) & (labels != 1), "labels must be 0 or 1")


def _refuse_first(
    clients: Any, values: NDArray[Any], wrong: NDArray[np.bool_], must: str, remedy: str = ""
) -> None:
    """Refuse the first wrong value, with its place."""
    if wrong.any():
        first = int(np.argmax(wrong))
        raise DataError(f"{must}, got {values[first]} in {clients.location(first)}{remedy}")


def columns_of(clients: Any) -> dict[str, Any]:
    """What clients say of each record, by name."""
    return {name: getattr(clients, name) for name in COLUMNS}


def record_sums(key: bytes, clients: Any) -> Integers:
    """``enciphered_sums`` of what records say, and of whose they are, too, shape (2, 5).

    Parameters
    ----------
    key : of the sums.
    clients : of which there is one, or a batch of all.
    """
    known = clients.categories
    # beside scores of every class, those of two classes read 0 in memory and not elsewhere
    by_class = None if known is None else known.scores
    said: list[NDArray[Any]] = [clients.scores, clients.labels] if by_class is None else []
    said += [] if clients.second is None else [clients.second]
    said += [] if known is None else [known.of_record]
    said += [] if by_class is None else [*by_class.T]
    whose = [] if clients.count == 1 else [word_of(clients.client_of_record)]
    if clients.persons is not None:
        whose += [*clients.persons.view("<u8").reshape(-1, clients.persons.itemsize // 8).T]
    return enciphered_sums(key, [*map(word_of, said)], whose)


def check_sizes(columns: dict[str, Any]) -> None:
    """Refuse another number of labels, second values, persons or categories than scores.

    Parameters
    ----------
    columns : of records, by their names; all but scores and labels may be None.
    """
    records = len(columns["scores"])
    for name, column in columns.items():
        if column is not None and len(column) != records:
            called = SECOND if name == "second" else name
            raise DataError(f"{records} scores but {len(column)} {called}")


def check_unit_of(
    unit: str | None, outlier: Callable[[float, float], tuple[float, str] | None]
) -> None:
    """Refuse a word that is no unit, and scores that cannot be of it.

    Parameters
    ----------
    unit : what the scores are said to be; None where nothing is.
    outlier : gives a score outside of two ends and where it is, or None.
    """
    if unit is None:
        return
    low, high = RANGES[check_unit(unit)]
    wrong = outlier(low, high)
    if wrong is not None:
        raise DataError(
            f"scores in {unit} must be from {low:g} to {high:g}, got {wrong[0]} in {wrong[1]}"
        )


def all_or_none(
    called: str, columns: Sequence[Any], joined: Callable[[Any], Any] = np.concatenate
) -> Any:
    """A column of all batches, which all have it, or none has."""
    known = [column for column in columns if column is not None]
    if known and len(known) < len(columns):
        raise DataError(f"{len(known)} of {len(columns)} batches have {called}: all must, or none")
    return joined(known) if known else None


def all_left_out(parts: Sequence[Any]) -> NDArray[np.int64] | None:
    """What was left out of all batches; of one that says nothing, no record was."""
    if all(part.left_out is None for part in parts):
        return None
    counts = [
        np.zeros((2, part.count), dtype=np.int64) if part.left_out is None else part.left_out
        for part in parts
    ]
    return np.concatenate(counts, axis=1)


def common_unit(parts: Sequence[Any]) -> str | None:
    """The unit of all batches; a batch of unknown unit fits no other."""
    units = sorted({part.unit or "no named unit" for part in parts})
    if len(units) > 1:
        raise DataError(f"batches of one unit can be put together, got {' and '.join(units)}")
    return parts[0].unit
