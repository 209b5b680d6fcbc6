"""Progress on a terminal: how many records are done, how many a second, and how long it takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def progress_of(records: int, label: str) -> Iterator[Callable[[int], None]]:
    """A function that receives how many more records are done; silent where no terminal shows it.

    Parameters
    ----------
    records : all of them.
    label : what is done with them.
    """
    start = time.monotonic()

    def rate(done: int | None) -> str:
        return f"{(done or 0) / max(time.monotonic() - start, 1e-3):,.0f} rows/s"

    with click.progressbar(
        length=records,
        label=label,
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=rate,
        show_pos=True,
        update_min_steps=1,
    ) as bar:

        def advance(more: int) -> None:
            done = min(bar.pos + more, records)
            bar.update(done - bar.pos, done)

        yield advance
