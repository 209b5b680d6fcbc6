"""Statements of an engine that Ctrl-C ends within a moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Answer = TypeVar("Answer")

AGAIN_SECONDS = 0.05


def interruptible(work: Callable[[], Answer], interrupt: Callable[[], object]) -> Answer:
    """What a statement returns; it runs in a thread, so that Ctrl-C reaches this one meanwhile.

    Parameters
    ----------
    work : runs the statement.
    interrupt : makes the engine end it; called until it has, as it may not have begun.

    Raises
    ------
    KeyboardInterrupt : where it was interrupted, when the statement has ended.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():
                interrupt()
                wait([future], AGAIN_SECONDS)
            raise
        finally:
            # an error that it holds has this frame in its traceback, and would keep the engine
            del future
