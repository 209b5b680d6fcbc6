"""What a program says to who runs it, also of what another machine sent or a file holds."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tacit.results.text import escaped

LOG_PREFIX = "tacit: "
"""Beginning of every line that this package's programs write into a log."""
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


FIRST_SECONDS = 4.0
"""Seconds of a wait before anything is said."""
NEXT_SECONDS = 15.0
"""Seconds until it is said again."""


def tell_owner(sentence: str) -> None:
    """Tell who runs this program, in its log; the sentence may quote what another machine sent."""
    print(f"{LOG_PREFIX}{escaped(sentence)}", file=sys.stderr, flush=True)


class Speaker:
    """Reports what is waited for: soon after a wait has begun, and then now and again.

    Parameters
    ----------
    tell : takes a line.
    now : the time at which the wait begins, in seconds.

    Examples
    --------
    >>> speaker = Speaker(print, now=100.0)
    >>> for second in range(100, 131):
    ...     speaker.wait(second, lambda: f"waiting for north, {220 - second} s left")
    waiting for north, 116 s left
    waiting for north, 101 s left
    """

    def __init__(self, tell: Callable[[str], None], now: float) -> None:
        self._tell, self._next = tell, now + FIRST_SECONDS

    def wait(self, now: float, words: Callable[[], str]) -> None:
        """Say the words if it is time."""
        if now >= self._next:
            self._tell(words())
            self._next = now + NEXT_SECONDS
