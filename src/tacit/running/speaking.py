"""What a program says to who runs it, and from time to time what it waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tacit.results.text import escaped

FIRST_SECONDS = 4.0
"""Seconds of a wait before anything is said."""
NEXT_SECONDS = 15.0
"""Seconds until it is said again."""


def tell_owner(sentence: str) -> None:
    """Tell who runs this program, in its log; the sentence may quote what another machine sent."""
    print(f"tacit: {escaped(sentence)}", file=sys.stderr, flush=True)


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
