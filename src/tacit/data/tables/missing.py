"""Records without a score or a label: refused, or left out and counted.

Leaving a record out looks at this record alone. So records that differ in one before it differ in
at most one after it, and what is released about the rest keeps its guarantee. Where numbers of
records are public (labels or replaced records are protected), so is the number that is complete.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit.data.errors import DataError
from tacit.data.files.form import MISSING_WORDS
from tacit.data.tables.columns import is_text

Rule = Literal["refuse", "drop"]
"""What is done with an incomplete record: an error that names it, or it is left out."""
RULES: tuple[str, ...] = get_args(Rule)

COMPLETE, NO_SCORE, NO_LABEL = 0, 1, 2
"""A record is complete; it has no score or no second value; or it has these and no label."""

BLANKS = pa.array(sorted(MISSING_WORDS))
"""Texts that stand for a missing value, in any case and between blanks."""


class MissingWarning(UserWarning):
    """Clients without any complete record, which take no part."""


def check_rule(rule: str) -> bool:
    """Whether incomplete records are left out.

    Raises
    ------
    ValueError : for another word.

    Examples
    --------
    >>> check_rule("drop"), check_rule("refuse")
    (True, False)
    """
    if rule not in RULES:
        raise ValueError(f"missing must be one of {RULES}, got {rule!r}")
    return rule == "drop"


def incompleteness(values: Sequence[Any], labels: Any) -> NDArray[np.int8]:
    """Of every record of a batch ``COMPLETE``, ``NO_SCORE`` or ``NO_LABEL``, shape (rows,).

    Parameters
    ----------
    values : the columns of scores and, where there is one, of second values.
    labels : the column of labels; None where records need none.

    Examples
    --------
    >>> incompleteness([pa.array([0.5, None, 0.7])], pa.array(["1", "0", " NA "])).tolist()
    [0, 1, 2]
    """
    unscored = np.logical_or.reduce([absent(column) for column in values])
    kinds = np.where(unscored, NO_SCORE, COMPLETE)
    if labels is not None:
        kinds[~unscored & absent(labels)] = NO_LABEL
    return kinds.astype(np.int8)


def absent(column: Any) -> NDArray[np.bool_]:
    """Which values of a column are absent, or are words that stand for an absent one."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    nothing = column.is_null(nan_is_null=True)
    if is_text(column.type):
        word = pc.ascii_lower(pc.ascii_trim_whitespace(column))
        nothing = pc.or_(nothing, pc.fill_null(pc.is_in(word, BLANKS.cast(word.type)), False))
    mask: NDArray[np.bool_] = nothing.to_numpy(zero_copy_only=False)
    return mask


def left_out_of(
    kinds: NDArray[np.int8], names: Sequence[Any], clients: Sequence[str], source: str
) -> NDArray[np.int64]:
    """The records of each client without a score and without a label only, shape (2, K).

    Parameters
    ----------
    kinds : of the records that were left out, shape (D,).
    names : the client of each, shape (D,).
    clients : the clients that take part, shape (K,).
    source : the file or table.

    Raises
    ------
    DataError : where the client of a record is missing.

    Warns
    -----
    MissingWarning : for clients none of whose records is complete.

    Examples
    --------
    >>> kinds = np.array([1, 2, 2], dtype=np.int8)
    >>> left_out_of(kinds, ["a", "b", "b"], ["a", "b"], "all.csv").tolist()
    [[1, 0], [0, 2]]
    """
    texts = ["" if name is None else str(name) for name in names]
    if "" in texts:
        raise DataError(f"a record without a score or label has no client in {source}")
    place = {name: index for index, name in enumerate(clients)}
    owners = np.array([place.get(name, -1) for name in texts], dtype=np.int64)
    absent = {name for name, owner in zip(texts, owners, strict=True) if owner < 0}
    if absent:
        warnings.warn(
            f"{len(absent):,} client{'s' * (len(absent) > 1)} of {source} with no complete record, "
            f"{np.count_nonzero(owners < 0):,} incomplete in all, take no part and are not counted",
            MissingWarning,
            stacklevel=5,
        )
    counts = np.zeros((2, len(clients)), dtype=np.int64)
    known = owners >= 0
    np.add.at(counts, (kinds[known] - NO_SCORE, owners[known]), 1)
    return counts


def dealt_out(left_out: NDArray[np.int64] | None, clients: int) -> NDArray[np.int64] | None:
    """Records that were left out, dealt to simulated clients as evenly as can be, shape (2, K).

    Examples
    --------
    >>> dealt_out(np.array([[5], [1]]), 2).tolist()
    [[3, 2], [1, 0]]
    """
    if left_out is None:
        return None
    totals = left_out.sum(axis=-1, keepdims=True)
    made: NDArray[np.int64] = totals // clients + (np.arange(clients) < totals % clients)
    return made
