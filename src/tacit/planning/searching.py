"""The smallest epsilon, or the fewest records, with which a protocol reaches a target.

Which families of protocols fit a trust model and a metric, and which settings are best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit.privacy.cost import MIN_BUDGET
from tacit.protocol.conversation import Protocol
from tacit.protocol.forecast import AUC, Family, Forecast, Metric
from tacit.protocol.registry import protocol_kinds
from tacit.protocol.scenario import MAX_RECORDS, Scenario, Shape
from tacit.protocol.trust import Trust
from tacit.results.figure import CLEAR_CLASS_SIZE_IN_ERRORS


def families(trust: str, scenario: Scenario, metric: Metric) -> list[Family]:
    """The families that give the metric under a trust model.

    Raises
    ------
    ValueError : for an unknown trust.
    """
    requested = Trust.of(trust)
    return [
        family
        for kind in protocol_kinds().values()
        for family in kind.families(scenario, metric)
        if requested in family.trusts and family.protocols
    ]


def other_metrics() -> list[Metric]:
    """The figures of registered protocols that are not built-in metrics."""
    figures = dict.fromkeys(kind.figure for kind in protocol_kinds().values())
    metrics = [Metric.of_figure(figure) for figure in figures]
    return [metric for metric in metrics if metric.declared]


def metric_by_class() -> Metric:
    """The figure that is planned of classifiers with more than two classes.

    Raises
    ------
    ValueError : where no registered protocol has scores by class.
    """
    for kind in protocol_kinds().values():
        if kind.scores_by_class:
            return Metric.of_figure(kind.figure)
    raise ValueError("no registered protocol has scores by class")


def metric_named(name: str | None) -> Metric:
    """The metric of a name, which may be a protocol's figure; the AUC where there is none.

    Raises
    ------
    ValueError : for a name that is neither.
    """
    if name is None:
        return AUC
    declared = {metric.name.lower(): metric for metric in other_metrics()}
    if name.lower() in declared:
        return declared[name.lower()]
    try:
        return Metric(name)
    except ValueError as error:
        figures = ", ".join(repr(metric.name) for metric in declared.values())
        raise ValueError(f"{error}; protocols also give {figures}" if figures else error) from None


def trusts_by_protocol(scenario: Scenario, metric: Metric) -> dict[str, list[Trust]]:
    """The protocols that give a metric under any trust model, and under which."""
    trusts: dict[str, list[Trust]] = {}
    for kind in protocol_kinds().values():
        fitting = {trust for family in kind.families(scenario, metric) for trust in family.trusts}
        if fitting:
            trusts[kind.name] = [trust for trust in Trust if trust in fitting]
    return trusts


def best_settings(family: Family, scenario: Scenario, shapes: tuple[Shape, ...]) -> Protocol:
    """The settings with the least geometric mean of the errors over the shapes.

    Those of a tuned family are made for the scenario's epsilon, which may be another than the one
    for which the family was made.
    """
    protocols: Sequence[Any] = family.protocols
    if family.tuned:
        protocols = [replace(each, epsilon=scenario.epsilon) for each in protocols]
    if len(protocols) == 1:
        return protocols[0]

    def loss(protocol: Protocol) -> float:
        rough = family.rough(protocol, scenario)
        errors = [family.forecast(rough, scenario, shape).error for shape in shapes]
        return float(np.mean(np.log(np.maximum(errors, 1e-300))))

    return min(protocols, key=loss)


Shapes = tuple[Shape, ...]
"""The central shape, and others over which settings are compared."""

MAX_EPSILON = 50.0
"""Maximum epsilon of a search: a larger one gives no useful protection."""

MAX_GROWTH = 1e5
"""Maximum factor on the number of records in a search."""

TOLERANCE = 0.04
"""Relative distance from the target at which a search ends, on the safe side."""

STEPS, LEAPS = 12, 2
"""Number of steps between two points around the target, and of leaps that look for such points."""

MAX_LEAP = 30.0
"""Maximum factor by which a leap takes the error to be too large or too small."""


@dataclass(frozen=True)
class Search:
    """What it takes to reach a target.

    Parameters
    ----------
    family, protocol : with the chosen settings, which stay unless the family is tuned.
    scenario : from which the search goes.
    shapes : the central shape, and others over which settings are compared.
    target : the largest error; searches end about 4 % below it.
    """

    family: Family
    protocol: Protocol
    scenario: Scenario
    shapes: Shapes
    target: float

    def smallest_epsilon(self) -> float | None:
        """The smallest epsilon with which the target is reached; None for none."""
        if "epsilon" not in self.protocol.settings:
            return None
        start = self.scenario.epsilon

        def at(epsilon: float) -> float:
            try:
                changed = replace(self.protocol, epsilon=epsilon)  # type: ignore[type-var]
            except ValueError:  # an epsilon that the protocol refuses gives nothing
                return math.inf
            return self._excess(changed, replace(self.scenario, epsilon=epsilon))

        crossing = _crossing(at, start, MIN_BUDGET, max(MAX_EPSILON, start), 1.0)
        return None if crossing is None else _rounded_up(crossing)

    def fewest_records(self) -> int | None:
        """The fewest records with which the target is reached; None for none.

        The fraction of positives stays. Clients of one record become more clients; other clients
        hold more records each (``Scenario.scaled``).
        """
        scenario = self.scenario
        most = min(MAX_GROWTH, MAX_RECORDS / scenario.records)
        least = max(2 / scenario.positives, 2 / scenario.negatives, 4 / scenario.records)

        def at(factor: float) -> float:
            return self._excess(self.protocol, scenario.scaled(factor))

        crossing = _crossing(at, 1.0, min(least, 1.0), most, 0.5)
        return None if crossing is None else math.ceil(_rounded_up(crossing * scenario.records))

    def _forecast(self, variant: Protocol, other: Scenario) -> Forecast:
        if self.family.tuned:
            variant = best_settings(self.family, other, self.shapes)
        else:
            variant = self.family.rough(variant, other)
        return self.family.forecast(variant, other, self.shapes[0])

    @cached_property
    def _ratio(self) -> float:
        """The protocol's error over that of the rough one, which predictions are of."""
        if self.family.tuned:
            return 1.0
        rough = self._forecast(self.protocol, self.scenario).error
        exact = self.family.forecast(self.protocol, self.scenario, self.shapes[0]).error
        return exact / rough if rough > 0 else 1.0

    def _excess(self, variant: Protocol, other: Scenario) -> float:
        """How many times too large the error is, or the noise on class sizes."""
        ratio = self._ratio
        try:
            predicted = self._forecast(variant, other)
        except ValueError:
            return math.inf
        class_excess = CLEAR_CLASS_SIZE_IN_ERRORS * predicted.class_error / predicted.smaller_class
        error = ratio * predicted.error
        return max(error / self.target, class_excess, 1e-9) if math.isfinite(error) else math.inf


def _crossing(
    excess: Callable[[float], float], start: float, least: float, most: float, power: float
) -> float | None:
    """Where a falling function crosses 1 from above, on the side where it is at most 1.

    Errors are nearly powers of the argument: the search goes first by ``power``, then along
    linear pieces between logarithms, and halves the interval where these miss. None where the
    function is above 1 up to ``most``.
    """
    low, high, above, below = _bracket(excess, start, least, most, power)
    if below > 1:
        return None
    for step in range(STEPS):
        if above <= 1 or high < low * (1 + TOLERANCE) or below >= 1 - TOLERANCE:
            break
        position = 0.5
        if step % 3 < 2 and math.isfinite(above):
            position = math.log(above) / (math.log(above) - math.log(below))
        position = min(max(position + TOLERANCE / 4, 0.02), 0.98)
        middle = math.exp((1 - position) * math.log(low) + position * math.log(high))
        ratio = excess(middle)
        if ratio > 1:
            low, above = middle, ratio
        else:
            high, below = middle, ratio
    return low if above <= 1 else high


def _bracket(
    excess: Callable[[float], float], start: float, least: float, most: float, power: float
) -> tuple[float, float, float, float]:
    """Two points around the crossing, and the function there; it may lie beyond the second."""
    here, excess_here = start, excess(start)
    falls = excess_here > 1
    edge = most if falls else least
    for leap in range(LEAPS + 1):
        far = min(max(excess_here, 1 / MAX_LEAP), MAX_LEAP) ** (1 / power)
        there = min(max(here * far * (1 + TOLERANCE if falls else 1 - TOLERANCE), least), most)
        there = edge if leap == LEAPS else there
        value = excess(there)
        if there == edge or (value <= 1) is falls:
            break
        here, excess_here = there, value
    return (here, there, excess_here, value) if falls else (there, here, value, excess_here)


def _rounded_up(value: float) -> float:
    """Rounded up to three digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.3g}")
