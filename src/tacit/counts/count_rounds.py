"""What a round counts: its levels, and the fractions of epsilon of a run."""

from __future__ import annotations

from typing import Any

from tacit.counts.tree_budget import epsilon_by_level

PARTS = 40
"""Number of equal fractions of epsilon; a query names how many of them it costs."""


FIRST_PARTS = 1
"""Fractions of epsilon of the first round, which says what comes next, and of a round at
concentrations."""


MAX_ROUNDS = 4
"""Largest number of rounds of a run."""


LEAST_ROUND_HEIGHT, ROUND_HEIGHT, MAX_FLAT_HEIGHT = 4, 6, 7
"""The first round has ``2**height`` cells, by default of the second height; a zoomed one has twice
as many where that is at most ``2**MAX_FLAT_HEIGHT``. More cells are the leaves of a tree."""


CLASSES = 1
"""The level of the class sizes."""


CLASS_FRACTION = 0.25
"""Fraction of a flat round's epsilon for the class sizes; the rest is for the cells. Their errors
enter the AUC as products only, those of the class sizes with all others."""


def round_levels(protocol: Any, height: int, epsilon: float) -> dict[int, float]:
    """The levels that a round of this epsilon counts, and what each costs."""
    if height <= MAX_FLAT_HEIGHT:
        return {CLASSES: epsilon * CLASS_FRACTION, height + 1: epsilon * (1 - CLASS_FRACTION)}
    divided = epsilon_by_level(height, epsilon, protocol.distance, protocol.served)
    return {level: part for level, part in enumerate(divided) if part > 0}


def round_strata(protocol: Any, height: int) -> int:
    """How many strata a round of this height counts: groups have trees, and no flat rounds."""
    return int(protocol.strata) if height > MAX_FLAT_HEIGHT else 1
