"""Reading ahead: the next batch is read by another thread while one is counted."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def ahead(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """The same items, of which at most one is held beside the one that is used.

    Parameters
    ----------
    items : made by one other thread; what it raises is raised here.

    Examples
    --------
    >>> with ahead(iter([1, 2, 3])) as numbers:
    ...     print(list(numbers))
    [1, 2, 3]
    """
    with ThreadPoolExecutor(1, "tacit-reading") as reader:
        yield _taken(items, reader)


def _taken(items: Iterator[Item], reader: ThreadPoolExecutor) -> Iterator[Item]:
    waiting = reader.submit(_some, items)
    while some := waiting.result():
        waiting = reader.submit(_some, items)
        yield from some


def _some(items: Iterator[Item]) -> list[Item]:
    """The next item, or none at the end."""
    return list(islice(items, 1))
