"""Timing in pairs, so that a busy machine slows both sides alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def clock(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def paired(
    first: Callable[[], object], second: Callable[[], object], times: int
) -> tuple[float, float, float]:
    """Medians of both, run in turn, and the median of the ratios pair by pair."""
    first(), second()
    pairs = [(clock(first), clock(second)) for _ in range(times)]
    first_seconds, second_seconds = zip(*pairs, strict=True)
    ratios = [a / b for a, b in pairs]
    return (
        statistics.median(first_seconds),
        statistics.median(second_seconds),
        statistics.median(ratios),
    )


def row(name: str, seconds: float, note: str) -> str:
    return f"{name:42s} {seconds:8.3f}   {note}"
