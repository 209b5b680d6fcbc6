"""Text that another machine sent, before a terminal or a result shows it."""

from __future__ import annotations

LONGEST_REASON = 200
"""Characters of a reason that everyone may read."""


def checked_reason(reason: str) -> str:
    """A reason for declining, as it may be published: short, and safe to print.

    Raises
    ------
    ValueError : for a text that is empty, longer than ``LONGEST_REASON``, or holds a character that
        is not printable: control, formatting and separating ones, other than the blank.

    Examples
    --------
    >>> checked_reason("declined: the privacy budget does not allow it")
    'declined: the privacy budget does not allow it'
    """
    if not (0 < len(reason) <= LONGEST_REASON and reason.isprintable()):
        raise ValueError(
            f"a reason must have 1 to {LONGEST_REASON} printable characters, "
            f"got {len(reason)}: {reason[:20]!r}"
        )
    return reason


def printable(text: str) -> str:
    """The first ``LONGEST_REASON`` characters of a text; what is not printable stands escaped.

    Examples
    --------
    >>> printable("no \x1b[31m")
    'no \\\\x1b[31m'
    """
    start = text[:LONGEST_REASON]
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in start
    )
