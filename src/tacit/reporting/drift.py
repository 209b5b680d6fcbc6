"""How a model's figures and scores moved between two results about different records."""

from __future__ import annotations

import math

from tacit.reporting.comparing import difference_of
from tacit.results.estimate import Estimate
from tacit.results.evaluation import Evaluation
from tacit.results.parts import difference
from tacit.results.saved import reading

CALIBRATION = ("calibration_intercept", "calibration_slope", "observed_over_expected", "brier")
"""The figures of calibration whose drift is told."""


def drift(earlier: reading.Result, later: reading.Result) -> dict[str, Estimate]:
    """How a model's figures and scores moved from one release to another, of other records.

    Figures are the later one less the earlier one, where both have them: the figure of the
    results (``differences``) and those of ``CALIBRATION``. Both noises, and both samplings about
    the population, are independent, so their variances add. Calibration's intervals are normal.
    The drift of the scores is that of ``drift_between``. What cannot be known has the reason.

    Raises
    ------
    ValueError : for one result given twice, and results of different figures.
    """
    if earlier.content["fingerprint"] == later.content["fingerprint"]:
        raise ValueError(f"{earlier.label} and {later.label} are one and the same result")
    if earlier.figure != later.figure:
        raise ValueError(f"one is a {earlier.figure}, the other a {later.figure}")
    moved = {str(later.figure): difference_of(earlier, later).estimate}
    first, second = (each.content.get("measures", {}) for each in (earlier, later))
    for name in CALIBRATION:
        if name in first and name in second:
            one, other = map(reading.estimate_of, (first[name], second[name]))
            unknown = next((each.reason for each in (one, other) if not each.given), None)
            made = difference(other, one).within((-math.inf, math.inf))
            moved[name] = made if unknown is None else Estimate.absent(unknown)
    try:
        before, after = (Evaluation.from_dict(each.content) for each in (earlier, later))
        return moved | vars(after.drift(before))
    except (AttributeError, ValueError) as error:
        return moved | {"population_stability": Estimate.absent(str(error))}
