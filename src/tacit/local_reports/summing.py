"""Sums over blocks: in this process, or in several."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import Protocol as Interface

from tacit.arrays import Integers

WAITING = 4
"""Number of blocks a worker for which results are awaited: all other numbers are not sent yet."""

Progress = Callable[[int], None]
"""It is called with the number of blocks that were added."""


class Summing(Interface):
    """Adds up a function of the numbers of blocks."""

    def __call__(
        self, function: Callable[[int], Integers], blocks: int, progress: Progress
    ) -> Integers:
        """The sum of ``function(0)`` to ``function(blocks - 1)``.

        Parameters
        ----------
        function : from a block's number to counts; it can be pickled.
        blocks : at least 1.
        progress : receives how many were added.
        """


def unheard(blocks: int) -> None:
    """No progress is shown."""


def in_one_process(
    function: Callable[[int], Integers], blocks: int, progress: Progress
) -> Integers:
    """The sum of all blocks, one after another, in this process."""
    return _added(map(function, range(blocks)), progress)


def in_processes(workers: int) -> Summing:
    """A sum by several processes of this machine.

    They are new interpreters: a program that is run as a file calls this below
    ``if __name__ == "__main__"``.

    Parameters
    ----------
    workers : how many, at least 1.
    """

    def summed(function: Callable[[int], Integers], blocks: int, progress: Progress) -> Integers:
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers, blocks), context, initializer=_leave_interrupts)
        try:
            return _added(_results(pool, function, iter(range(blocks)), workers), progress)
        finally:
            # after an error the blocks that are being drawn end, and no other begins
            pool.shutdown(cancel_futures=True)

    return summed


def _results(
    pool: ProcessPoolExecutor,
    function: Callable[[int], Integers],
    numbers: Iterator[int],
    workers: int,
) -> Iterator[Integers]:
    waiting: list[Future[Integers]] = [
        pool.submit(function, number) for number in islice(numbers, WAITING * workers)
    ]
    while waiting:
        yield waiting.pop(0).result()
        waiting += [pool.submit(function, number) for number in islice(numbers, 1)]


def _added(counts: Iterable[Integers], progress: Progress) -> Integers:
    each = iter(counts)
    total = next(each)
    progress(1)
    for more in each:
        total = total + more
        progress(1)
    return total


def _leave_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal: the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
