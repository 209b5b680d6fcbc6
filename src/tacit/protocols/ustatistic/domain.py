"""The public domain of UStatistic's values: a range, or finitely many values."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tacit.protocols.shared.reports.symbols import Axis, Column

UNIT = (0.0, 1.0)
"""The range of values where none is given."""


def uncut_axis(column: Column, domain: tuple[float, float], grid: Any) -> Axis:
    """An axis that is not cut yet; a grid is for the unit range only."""
    if grid is not None:
        if tuple(domain) != UNIT:
            raise ValueError(f"{column} have a range or a finite domain, not both, got {domain}")
        return Axis(column, grid=grid)
    low, high = (float(end) for end in domain)
    if not (math.isfinite(high - low) and low < high):
        raise ValueError(f"a domain must run from a lower to a higher end, got {domain}")
    return Axis(column, low=low, high=high)


def second_uncut_axis(first: Axis, domain: tuple[float, float] | None, grid: Any) -> Axis:
    """The axis of second values, by default as for the first."""
    if domain is None and grid is None:
        return replace(first, column="second values")
    return uncut_axis("second values", UNIT if domain is None else domain, grid)


def finite_domain(name: str, values: Any) -> tuple[float, ...] | None:
    """A finite domain as ascending floats."""
    if values is None:
        return None
    grid = tuple(float(value) for value in values)
    if not all(map(math.isfinite, grid)):
        raise ValueError(f"{name} must be finite, got {grid}")
    for low, high in pairwise(grid):
        if not low < high:
            raise ValueError(f"{name} must ascend, got {high:g} after {low:g}")
    return grid
