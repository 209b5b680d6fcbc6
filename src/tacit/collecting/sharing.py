"""Batches shared by threads: each reads one while the others count."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def shared(
    items: Iterator[Item], work: Callable[[Iterator[Item]], Result], threads: int | None = None
) -> list[Result]:
    """What each thread makes of the items that it takes; no result of one that gets none.

    Parameters
    ----------
    items : made one at a time; each goes to one thread, which has no other item then.
    work : uses up the items that it is given, at least one. What it raises is raised here.
    threads : by default one for each processor, and two at least.

    Examples
    --------
    >>> sum(shared(iter([1, 2, 3]), sum))
    6
    """
    turns = _Turns(items)

    def worked() -> list[Result]:
        try:
            return [work(chain([first], turns)) for first in _one_of(turns)]
        except BaseException:
            turns.stop()
            raise

    count = max(os.cpu_count() or 1, 2) if threads is None else threads
    with ThreadPoolExecutor(count, "tacit-counting") as pool:
        try:
            made = [each.result() for each in [pool.submit(worked) for _ in range(count)]]
        finally:
            turns.stop()
    return [result for some in made for result in some]


class _Turns(Generic[Item]):
    """An iterator that several threads may use, each for its next item."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items, self._lock, self._stopped = items, Lock(), False

    def __iter__(self) -> _Turns[Item]:
        return self

    def __next__(self) -> Item:
        with self._lock:
            if self._stopped:
                raise StopIteration
            return next(self._items)

    def stop(self) -> None:
        """Let no thread take another item."""
        self._stopped = True


def _one_of(turns: _Turns[Item]) -> Iterator[Item]:
    """The next item, or none at the end."""
    for item in turns:
        yield item
        return
