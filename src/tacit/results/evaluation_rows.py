"""Lines of a printed evaluation: protocol, errors, privacy, traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tacit.privacy.cost import Cost, cost_line
from tacit.privacy.persons import person_line
from tacit.results.estimate import (
    CERTAIN_RANGE,
    POPULATION_INTERVAL,
    RECORDS_ERROR,
    RECORDS_INTERVAL,
    About,
    Estimate,
    bounds_line,
)
from tacit.results.shuffled import Shuffled
from tacit.results.traffic import Traffic

Row = tuple[str, str]
"""A label and what it says."""


def protocol_line(protocol: Mapping[str, Any]) -> str:
    """A protocol's name with its settings."""
    settings = ", ".join(f"{k} {v}" for k, v in protocol.items() if k != "name")
    return f"{protocol['name']} ({settings})" if settings else str(protocol["name"])


def error_rows(estimate: Estimate) -> list[Row]:
    """The estimate's intervals and its error, each named for what it is about."""
    rows = []
    if estimate.half_range is None:
        rows += _interval_row(estimate, RECORDS_INTERVAL, "data")
    else:
        # Ends of a certain range have at most seven decimals: none is rounded inwards.
        rows.append((CERTAIN_RANGE, bounds_line(estimate.interval(), ".7f")))
    rows += _interval_row(estimate, POPULATION_INTERVAL, "population")
    if math.isfinite(estimate.standard_error) and estimate.half_range is None:
        rows.append((RECORDS_ERROR, f"{estimate.standard_error:.2e}"))
    return rows


def _interval_row(estimate: Estimate, name: str, about: About) -> list[Row]:
    bounds = estimate.interval(0.95, about)
    return [(name, bounds_line(bounds))] if all(map(math.isfinite, bounds)) else []


def privacy_rows(
    spent: Cost, protection: Cost | None, per_person: int, shuffled: Shuffled | None
) -> list[Row]:
    """What was spent, and what is said beside it; the parameters are an evaluation's fields."""
    rows = [("privacy spent", cost_line(spent.to_dict(), "a client"))]
    if per_person:
        rows.append(("unit of privacy", person_line(per_person, spent.epsilon)))
    if protection is not None:
        rows.append(("noise supports", cost_line(protection.to_dict(), "a client")))
    if shuffled is not None:
        rows.append(("sealed batches", shuffled.line))
    return rows


def traffic_row(traffic: Traffic) -> Row:
    """What a client sent, and in how many rounds."""
    sent = traffic.to_dict()["bytes_sent_per_client"]
    rounds = f"{traffic.rounds} round{'s' if traffic.rounds > 1 else ''}"
    return (
        "sent by a client",
        f"{sent['median']:,.0f} bytes (median), {sent['max']:,} (most), {rounds}",
    )
