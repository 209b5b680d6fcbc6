"""The figures of an evaluation by class: C certain ranges, and that of their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tacit.arrays import Floats
from tacit.protocol.revealed import Revealed
from tacit.protocols.encrypted.hidden import certain_result
from tacit.results.estimate import Estimate
from tacit.results.parts.breakdown import Breakdown, Part
from tacit.results.server_result import ServerResult

ABSENT = (
    "it has too few records, or all but too few, for the agreed bound of records; agree on a bound "
    "nearer to their number"
)
UNWEIGHTED_NOTE = (
    "there is no average weighted by the classes' sizes: nobody learns them, and the macro AUC "
    "weighs all classes alike"
)


@dataclass(frozen=True, eq=False)
class ClassesRevealed(Revealed):
    """The figures as a client computed them: those of all classes, and of their mean.

    Parameters
    ----------
    value, half_range : of the macro AUC.
    areas, half_ranges : of every class, shape (C,) each; NaN for a class without an AUC.
    """

    areas: Floats
    half_ranges: Floats

    @classmethod
    def of(cls, areas: Floats, half_ranges: Floats) -> ClassesRevealed:
        """The figures of all classes, with their mean."""
        return cls(*macro(areas, half_ranges), areas, half_ranges)


def macro(areas: Floats, half_ranges: Floats) -> tuple[float, float]:
    """The mean of the AUCs, and how far the exact mean is from it at most.

    ``|sum (A_c - a_c)| / C <= sum h_c / C``, and a sum of C numbers in [0, 1] is off by at most
    ``C^2 2^-53``, so each of both means by ``C 2^-53``.

    Parameters
    ----------
    areas, half_ranges : of every class, shape (C,) each.

    Examples
    --------
    >>> import numpy as np
    >>> value, reach = macro(np.array([0.7, 0.9]), np.array([0.01, 0.03]))
    >>> round(value, 12), round(reach, 12)
    (0.8, 0.02)
    """
    rounding = areas.size * 2.0**-52
    return float(areas.mean()), float(half_ranges.mean()) + rounding


def result_by_class(
    classes: Sequence[str], areas: Floats, half_ranges: Floats, warnings: tuple[str, ...]
) -> ServerResult:
    """The macro AUC and every class's AUC, with their certain ranges.

    Parameters
    ----------
    classes : their names.
    areas, half_ranges : of every class, shape (C,) each; NaN for a class without an AUC.
    warnings : what a reader must know of the settings.
    """
    parts = tuple(map(_part, classes, areas.tolist(), half_ranges.tolist()))
    absent = [part.name for part in parts if part.reason]
    if absent:
        warnings = (*warnings, f"no figure: class {absent[0]} has no AUC, {ABSENT}")
    value, half_range = macro(areas, half_ranges)
    return replace(certain_result(value, half_range, warnings), breakdown=Breakdown("class", parts))


def _part(name: str, area: float, half_range: float) -> Part:
    """One class's AUC against the rest, or why there is none."""
    if math.isnan(area):
        return Part(name, math.nan, math.nan, {}, ABSENT)
    figure = Estimate(area, 0.0, math.nan, half_range / math.sqrt(3), half_range=half_range)
    return Part(name, math.nan, math.nan, {"AUC": figure.within((0.0, 1.0))})
