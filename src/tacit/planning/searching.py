"""The smallest epsilon, or the fewest records, with which a protocol reaches a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from tacit.planning.families import Family, settings_at
from tacit.planning.forecast import FEWEST_ERRORS, Forecast
from tacit.planning.scenario import MOST_RECORDS, Scenario, Shape
from tacit.privacy.cost import LEAST_BUDGET
from tacit.protocols.conversation import Protocol

Shapes = tuple[Shape, ...]
"""The central shape, and others over which settings are compared."""

MOST_EPSILON = 50.0
"""A larger epsilon protects nothing that is worth the name."""

MOST_GROWTH = 1e5
"""More than so many times the records is no plan."""

CLOSE = 0.04
"""A search ends within this share of the target, on the safe side."""

STEPS, LEAPS = 12, 2
"""Steps between two places about the target, and leaps that look for such places."""

MOST_LEAP = 30.0
"""A step towards the target is as if the error were at most so many times too large."""


def smallest_epsilon(
    family: Family, protocol: Protocol, scenario: Scenario, shapes: Shapes, target: float
) -> float | None:
    """The smallest epsilon with which the error is at most ``target``, to about 4 %; None for none.

    The settings stay those that were chosen, unless the family is tuned. Predictions are of the
    rough protocol, times the ratio of the two errors at the scenario itself.
    """
    if "epsilon" not in protocol.settings:
        return None
    excess = _excess(family, protocol, scenario, shapes, target)

    def at(epsilon: float) -> float:
        other = replace(scenario, epsilon=epsilon)
        return excess(replace(protocol, epsilon=epsilon), other)  # type: ignore[type-var]

    found = _crossing(at, scenario.epsilon, LEAST_BUDGET, max(MOST_EPSILON, scenario.epsilon), 1.0)
    return None if found is None else _rounded_up(found)


def fewest_records(
    family: Family, protocol: Protocol, scenario: Scenario, shapes: Shapes, target: float
) -> int | None:
    """The fewest records with which the error is at most ``target``, to about 4 %; None for none.

    Their share of positives stays, and so do the settings; clients of one record become more,
    others hold more (``Scenario.scaled``).
    """
    excess = _excess(family, protocol, scenario, shapes, target)
    most = min(MOST_GROWTH, MOST_RECORDS / scenario.records)
    least = max(2 / scenario.positives, 2 / scenario.negatives, 4 / scenario.records)

    def at(factor: float) -> float:
        return excess(protocol, scenario.scaled(factor))

    found = _crossing(at, 1.0, min(least, 1.0), most, 0.5)
    return None if found is None else math.ceil(_rounded_up(found * scenario.records))


def _excess(
    family: Family, protocol: Protocol, scenario: Scenario, shapes: Shapes, target: float
) -> Callable[[Protocol, Scenario], float]:
    """How many times too large the error is, or the noise on class sizes, with other figures."""

    def forecast(own: Protocol, other: Scenario) -> Forecast:
        if family.tuned:
            return family.forecast(settings_at(family, other, shapes), other, shapes[0])
        return family.forecast(family.rough(own, other), other, shapes[0])

    ratio = 1.0
    if not family.tuned:
        rough = forecast(protocol, scenario).error
        ratio = family.forecast(protocol, scenario, shapes[0]).error / rough if rough > 0 else 1.0

    def excess(own: Protocol, other: Scenario) -> float:
        try:
            found = forecast(own, other)
        except ValueError:
            return math.inf
        drowned = FEWEST_ERRORS * found.class_error / found.smaller_class
        wrong = ratio * found.error
        return max(wrong / target, drowned, 1e-9) if math.isfinite(wrong) else math.inf

    return excess


def _crossing(
    excess: Callable[[float], float], start: float, least: float, most: float, power: float
) -> float | None:
    """Where a falling function crosses 1 from above, on the side where it is at most 1.

    Errors are nearly powers of what is searched: first by ``power``, then along straight lines
    between logarithms, the interval being halved where these do not hit. None where the function
    is above 1 up to ``most``.
    """
    low, high, above, below = _bracket(excess, start, least, most, power)
    if below > 1:
        return None
    for step in range(STEPS):
        if above <= 1 or high < low * (1 + CLOSE) or below >= 1 - CLOSE:
            break
        share = 0.5
        if step % 3 < 2 and math.isfinite(above):
            share = math.log(above) / (math.log(above) - math.log(below))
        share = min(max(share + CLOSE / 4, 0.02), 0.98)
        middle = math.exp((1 - share) * math.log(low) + share * math.log(high))
        found = excess(middle)
        if found > 1:
            low, above = middle, found
        else:
            high, below = middle, found
    return low if above <= 1 else high


def _bracket(
    excess: Callable[[float], float], start: float, least: float, most: float, power: float
) -> tuple[float, float, float, float]:
    """Two places about the crossing, and the function there; it may lie beyond the second."""
    here, found = start, excess(start)
    falls = found > 1
    edge = most if falls else least
    for leap in range(LEAPS + 1):
        far = min(max(found, 1 / MOST_LEAP), MOST_LEAP) ** (1 / power)
        there = min(max(here * far * (1 + CLOSE if falls else 1 - CLOSE), least), most)
        there = edge if leap == LEAPS else there
        value = excess(there)
        if there == edge or (value <= 1) is falls:
            break
        here, found = there, value
    return (here, there, found, value) if falls else (there, here, value, found)


def _rounded_up(value: float) -> float:
    """Rounded up to three digits."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.3g}")
