"""The error of records that cannot be evaluated."""

from __future__ import annotations

from collections.abc import Sequence

MAX_LISTED = 20
"""Names of columns that an error lists."""


class DataError(ValueError):
    """Records that cannot be evaluated; the message names the location and the value."""


class ProblemError(DataError):
    """The first problem of records where others may follow, which a check lists all at once."""


class DataWarning(UserWarning):
    """Doubts about records, for their owner's screen."""


def check_classes(positives: int, negatives: int) -> None:
    """Refuse records of one class, of which an exact figure is undefined.

    Raises
    ------
    DataError : with both classes' sizes.
    """
    if positives == 0 or negatives == 0:
        raise DataError(
            "the AUC is undefined without both classes, "
            f"got {positives} positive and {negatives} negative records"
        )


def no_column(name: str, header: Sequence[str]) -> str:
    """What a source has in place of a column: none of its name, and columns of other names.

    Examples
    --------
    >>> no_column("score", ["risk", "label"])
    "no column 'score', its columns are 'risk', 'label'"
    """
    shown = [f"{each!r:.60}" for each in header[:MAX_LISTED]]
    more = [f"{len(header) - MAX_LISTED} more"] if len(header) > MAX_LISTED else []
    listed = ", ".join([*shown, *more]) or "none"
    return f"no column {name!r}, its columns are {listed}"
