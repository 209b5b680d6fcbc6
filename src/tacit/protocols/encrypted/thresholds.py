"""How many thresholds an evaluation has, by the interval that is wanted, and agreed ones."""

from __future__ import annotations

import math
from itertools import pairwise

from tacit.metrics.cells.score_scale import EVEN

SPREADS = {EVEN: 0.5}
"""The certain half-range times the number of thresholds, by scale: of 458,407 scores of
advertisements 0.49 with even thresholds, and 2.35 with those of the log-odds."""
SPREAD = 2.5
"""The same on every other scale."""
LEAST_HALF_RANGE, MOST_HALF_RANGE = 1e-5, 0.1


def thresholds_for(half_range: float, scale: str) -> int:
    """The number of thresholds with which the half-range of spread scores comes out so wide.

    It follows from public numbers alone. ``sum p n / (2 P N)`` falls as the cells narrow, but where
    scores are tied.

    Parameters
    ----------
    half_range : the wanted half-range.
    scale : the name of the scale.

    Raises
    ------
    ValueError : for a half-range outside its range.

    Examples
    --------
    >>> thresholds_for(0.005, "even"), thresholds_for(0.0025, "probability")
    (100, 1000)
    """
    if not LEAST_HALF_RANGE <= half_range <= MOST_HALF_RANGE:
        raise ValueError(
            f"half_range must be from {LEAST_HALF_RANGE} to {MOST_HALF_RANGE}, got {half_range}"
        )
    return math.ceil(round(SPREADS.get(scale, SPREAD) / half_range, 6))


def wide_range_warning(half_range: float, wanted: float, thresholds: int) -> str:
    """What narrows a range that is wider than wanted."""
    more = math.ceil(thresholds * half_range / wanted)
    return (
        f"the range is certain, and wider than {wanted:g} where scores crowd into few cells: about "
        f"{more} thresholds in another session, or thresholds at agreed quantiles (edges), narrow "
        "it, but not where scores are tied"
    )


def check_edges(edges: tuple[float, ...], thresholds: int, bounded: bool) -> None:
    """Refuse thresholds that are not as many as agreed, or do not ascend.

    Parameters
    ----------
    edges : the thresholds.
    thresholds : how many there have to be.
    bounded : whether they go from 0 to 1.

    Raises
    ------
    ValueError : naming both numbers, or the ends.
    """
    if len(edges) != thresholds:
        raise ValueError(f"edges must be as many as thresholds, {thresholds}, got {len(edges)}")
    ascend = all(low < high for low, high in pairwise(edges))
    if bounded and not (ascend and edges[0] == 0 and edges[-1] == 1):
        raise ValueError(f"edges must ascend from 0 to 1, got {edges[0]} to {edges[-1]}")
    if not (ascend and all(map(math.isfinite, edges))):
        raise ValueError(f"edges must be finite and ascend, got {edges[0]} to {edges[-1]}")
