"""The smallest epsilon, or the fewest records, with which a protocol reaches a target.

Which families of protocols fit a trust model and a metric, and which settings are best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.privacy.cost import MIN_BUDGET
from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations.forecast import AUC, Family, Forecast, Metric
from tacit.protocol.declarations.scenario import MAX_RECORDS, Scenario, Shape
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.registry import protocol_kinds
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


def smallest_epsilon(
    family: Family, protocol: Protocol, scenario: Scenario, shapes: Shapes, target: float
) -> float | None:
    """The smallest epsilon with which the error is at most ``target``, to about 4 %; None for none.

    The chosen settings stay, unless the family is tuned. A prediction is that of the rough
    protocol, times the ratio of the two protocols' errors at the scenario itself.
    """
    if "epsilon" not in protocol.settings:
        return None
    excess = _excess(family, protocol, scenario, shapes, target)

    def at(epsilon: float) -> float:
        try:
            changed = replace(protocol, epsilon=epsilon)  # type: ignore[type-var]
        except ValueError:  # an epsilon that the protocol refuses gives nothing
            return math.inf
        return excess(changed, replace(scenario, epsilon=epsilon))

    crossing = _crossing(at, scenario.epsilon, MIN_BUDGET, max(MAX_EPSILON, scenario.epsilon), 1.0)
    return None if crossing is None else _rounded_up(crossing)


def fewest_records(
    family: Family, protocol: Protocol, scenario: Scenario, shapes: Shapes, target: float
) -> int | None:
    """The fewest records with which the error is at most ``target``, to about 4 %; None for none.

    The fraction of positives and the settings stay. Clients of one record become more clients;
    other clients hold more records each (``Scenario.scaled``).
    """
    excess = _excess(family, protocol, scenario, shapes, target)
    most = min(MAX_GROWTH, MAX_RECORDS / scenario.records)
    least = max(2 / scenario.positives, 2 / scenario.negatives, 4 / scenario.records)

    def at(factor: float) -> float:
        return excess(protocol, scenario.scaled(factor))

    crossing = _crossing(at, 1.0, min(least, 1.0), most, 0.5)
    return None if crossing is None else math.ceil(_rounded_up(crossing * scenario.records))


def _excess(
    family: Family, protocol: Protocol, scenario: Scenario, shapes: Shapes, target: float
) -> Callable[[Protocol, Scenario], float]:
    """The function that says how many times too large the error is, or the noise on class sizes."""

    def forecast(variant: Protocol, other: Scenario) -> Forecast:
        if family.tuned:
            return family.forecast(best_settings(family, other, shapes), other, shapes[0])
        return family.forecast(family.rough(variant, other), other, shapes[0])

    ratio = 1.0
    if not family.tuned:
        rough = forecast(protocol, scenario).error
        ratio = family.forecast(protocol, scenario, shapes[0]).error / rough if rough > 0 else 1.0

    def excess(variant: Protocol, other: Scenario) -> float:
        try:
            predicted = forecast(variant, other)
        except ValueError:
            return math.inf
        class_excess = CLEAR_CLASS_SIZE_IN_ERRORS * predicted.class_error / predicted.smaller_class
        error = ratio * predicted.error
        return max(error / target, class_excess, 1e-9) if math.isfinite(error) else math.inf

    return excess


def _crossing(
    excess: Callable[[float], float], start: float, least: float, most: float, power: float
) -> float | None:
    """Where a falling function crosses 1 from above, on the side where it is at most 1.

    Errors are nearly powers of the argument: the search goes first by ``power``, then along
    straight lines between logarithms, and halves the interval where these miss. None where the
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
