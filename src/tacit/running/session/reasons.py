"""Text that another machine sent or a file holds, before a terminal or a result shows it."""

from __future__ import annotations

from tacit.results.text import escaped

MAX_REASON = 200
"""Characters of a reason that everyone may read."""

UNFIT = "its records do not fit the protocol"
"""The only text that others read about unusable records: no value, and no index of a record."""


def checked_reason(reason: str) -> str:
    """A reason for declining, as it may be published: short, and safe to print.

    Raises
    ------
    ValueError : for a text that is empty, longer than ``MAX_REASON``, or holds a character that
        is not printable: control, formatting and separating ones, other than the blank.

    Examples
    --------
    >>> checked_reason("declined: the privacy budget does not allow it")
    'declined: the privacy budget does not allow it'
    """
    if not (0 < len(reason) <= MAX_REASON and reason.isprintable()):
        raise ValueError(
            f"a reason must have 1 to {MAX_REASON} printable characters, "
            f"got {len(reason)}: {reason[:20]!r}"
        )
    return reason


def printable(text: str) -> str:
    """The first ``MAX_REASON`` characters of a text, with unprintable characters escaped.

    Examples
    --------
    >>> printable("no \x1b[31m")
    'no \\\\x1b[31m'
    """
    return escaped(text[:MAX_REASON])
