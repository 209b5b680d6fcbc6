"""One figure with its errors and intervals, or the reason for its absence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

from tacit.results.estimate import RECORDS_INTERVAL, Interval, bounds_line, decimals, finite

REACH = NormalDist().inv_cdf(0.975)
"""Half the width of a 95 % interval in standard errors."""
NOWHERE = Interval(math.nan, math.nan)
EVERYWHERE = (-math.inf, math.inf)


@dataclass(frozen=True)
class Measure:
    """A figure with its errors, each a standard deviation, and its 95 % intervals.

    Parameters
    ----------
    value : the estimate; NaN where there is none.
    privacy_error : by privacy noise, about these records' figure.
    cell_error : by the unknown places of records within their cells.
    sampling_error : of these records' figure about the population's.
    bias : how far the value is expected to lie above these records' figure.
    interval : about these records' own figure.
    population_interval : about the population's figure.
    threshold : the score from which a record counts as positive, where the figure depends on it.
    reason : why there is no figure; empty where there is one.
    placement_error : the part of ``cell_error`` by records' places, without what the cells' width
        adds; NaN where the two are not told apart. A result's file does not hold it.
    """

    value: float
    privacy_error: float = math.nan
    cell_error: float = math.nan
    sampling_error: float = math.nan
    bias: float = 0.0
    interval: Interval = NOWHERE
    population_interval: Interval = NOWHERE
    threshold: float | None = None
    reason: str = ""
    placement_error: float = math.nan

    @property
    def given(self) -> bool:
        """Whether there is a figure."""
        return math.isfinite(self.value)

    @property
    def standard_error(self) -> float:
        """About these records' figure: privacy noise and cells together."""
        return math.hypot(self.privacy_error, self.cell_error)

    def to_dict(self) -> dict[str, Any]:
        """The entry of a result; numbers that do not exist are null."""
        entry: dict[str, Any] = {
            "value": finite(self.value),
            "privacy_error": finite(self.privacy_error),
            "cell_error": finite(self.cell_error),
            "sampling_error": finite(self.sampling_error),
            "bias": finite(self.bias),
            "interval": [finite(bound) for bound in self.interval],
            "population_interval": [finite(bound) for bound in self.population_interval],
        }
        if self.threshold is not None:
            entry["threshold"] = finite(self.threshold)
        if self.reason:
            entry["reason"] = self.reason
        return entry


def measure_line(measure: Measure) -> str:
    """A figure with its interval about these records, as text puts them on one line.

    Examples
    --------
    >>> measure_line(absent("no fit"))
    'none: no fit'
    """
    if not measure.given:
        return f"none: {measure.reason}"
    value = f"{measure.value:.{decimals(measure.interval)}f}"
    return f"{value}, {RECORDS_INTERVAL} {bounds_line(measure.interval)}"


def measure_cells(measure: Measure) -> tuple[str, str, str]:
    """A figure and its intervals about these records and the population, for a table."""
    if not measure.given:
        return "none", measure.reason, ""
    around = measure.interval, measure.population_interval
    value = f"{measure.value:.{decimals(measure.interval)}f}"
    return value, bounds_line(around[0]), bounds_line(around[1])


def absent(reason: str, threshold: float | None = None) -> Measure:
    """No figure, and why."""
    return Measure(math.nan, threshold=threshold, reason=reason)


def normal_measure(
    value: float,
    privacy_error: float,
    cell_error: float,
    sampling_error: float,
    *,
    limits: tuple[float, float] = EVERYWHERE,
    threshold: float | None = None,
) -> Measure:
    """A figure with normal intervals.

    Examples
    --------
    >>> measure = normal_measure(2.0, 0.2, 0.0, 0.0)
    >>> [round(bound, 3) for bound in measure.interval]
    [1.608, 2.392]
    """
    about_records = math.hypot(privacy_error, cell_error)
    data, population = (
        Interval(value - REACH * error, value + REACH * error)
        for error in (about_records, math.hypot(about_records, sampling_error))
    )
    measure = Measure(
        value,
        privacy_error,
        cell_error,
        sampling_error,
        interval=data,
        population_interval=population,
        threshold=threshold,
    )
    return within(measure, limits)


def within(measure: Measure, limits: tuple[float, float]) -> Measure:
    """A measure cut to the values that it can have; its bias is what the cut adds."""
    low, high = limits
    value = min(max(measure.value, low), high)
    return replace(
        measure,
        value=value,
        bias=value - measure.value,
        interval=_cut(measure.interval, limits),
        population_interval=_cut(measure.population_interval, limits),
    )


def _cut(interval: Interval, limits: tuple[float, float]) -> Interval:
    low, high = limits
    return Interval(*(min(max(bound, low), high) for bound in interval))
