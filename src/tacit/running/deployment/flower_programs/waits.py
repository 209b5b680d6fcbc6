"""How long Flower's programs wait before they look for work again.

Flower waits for the same time after every look that finds nothing: a node 3 seconds, half a second
for a reply. Here the wait is a twentieth of the time since something last happened, at least 0.05
and at most as long as Flower's own. What comes while a run goes on is seen at once, and any longer
wait grows by a twentieth at most; a node that has been idle for a minute looks every 3 seconds, as
before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MIN_WAIT = 0.05
"""Seconds between two looks while something happens."""
IDLE_FRACTION = 1 / 20
"""The wait as a fraction of the time since something last happened."""


def wait_after(idle: float, longest: float) -> float:
    """Seconds to wait when nothing has happened for so long.

    Examples
    --------
    >>> [wait_after(idle, longest=3.0) for idle in (0.0, 10.0, 120.0)]
    [0.05, 0.5, 3.0]
    """
    return min(max(MIN_WAIT, idle * IDLE_FRACTION), longest)


class Waits:
    """Stands in for the module ``time`` in one of Flower's modules.

    Parameters
    ----------
    sleep, now : the functions that wait, and that give the time; tests pass others.
    """

    def __init__(
        self,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sleep, self._now = sleep, now
        self._since = self._looked = now()

    def __getattr__(self, name: str) -> Any:
        """What else the module has."""
        return getattr(time, name)

    def sleep(self, longest: float) -> None:
        """Wait, for no longer than Flower asks for, counted from the beginning of the last look."""
        now = self._now()
        self._sleep(max(wait_after(now - self._since, longest) - (now - self._looked), 0.0))
        self._looked = self._now()

    def noting(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function: beginning and end of each call count as something that happened."""

        def noted(*args: Any, **options: Any) -> Any:
            self._since = self._now()
            try:
                return work(*args, **options)
            finally:
                self._since = self._now()

        return noted
