"""A protocol as it runs about records, so that its budget is a person's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.privacy import composition
from tacit.privacy.cost import MIN_BUDGET
from tacit.protocol.conversation import Protocol
from tacit.protocol.settings import known_settings

SLACK = 1 + 1e-9
"""Factor by which roundings of floating-point numbers may exceed a guarantee."""


def per_record(protocol: Protocol, per_person: int) -> Protocol:
    """The protocol with the part of its budget that one of a person's counted records has.

    The epsilon of the settings is a person's: a record has a k-th of it, and the delta with which k
    records of a person make the whole (``privacy.composition``).

    Parameters
    ----------
    protocol : with the budget of a person.
    per_person : k, the most records of a person that count; 0 for a budget of a record.

    Raises
    ------
    ValueError : for a protocol without a budget, or too little of it for a record.

    Examples
    --------
    >>> import tacit
    >>> per_record(tacit.DPAUC(1.0), 4).epsilon
    0.25
    """
    if per_person == 0:
        return protocol
    composition.check_per_person(per_person)
    guarantee = protocol.guarantee
    settings = {name: getattr(protocol, name) for name in known_settings(type(protocol))}
    if math.isinf(guarantee.epsilon) or "epsilon" not in settings:
        raise ValueError(
            f"{protocol.name} protects no record by differential privacy, so it protects no "
            "person: leave per_person out"
        )
    if protocol.counts_missing:
        raise ValueError(
            f"{protocol.name} counts incomplete records, of which a person may have any number, so "
            "it protects no person: leave per_person out"
        )
    if per_person == 1:
        return protocol
    budget = float(settings["epsilon"])
    epsilon = budget / per_person
    if epsilon < MIN_BUDGET:
        raise ValueError(
            f"epsilon must be at least {per_person * MIN_BUDGET:g} where {per_person} records of a "
            f"person count, got {budget:g}"
        )
    changes: dict[str, Any] = {"epsilon": epsilon}
    if guarantee.delta > 0:
        delta = guarantee.delta / composition.delta_weights(
            guarantee.epsilon / per_person, per_person
        )
        changes |= _with_delta(settings, delta)
    changeable: Any = protocol
    divided: Protocol = replace(changeable, **changes)
    spent = composition.of_person(divided.guarantee, per_person)
    if spent.epsilon > guarantee.epsilon * SLACK or spent.delta > guarantee.delta * SLACK:
        raise ValueError(
            f"{protocol.name} with these settings has no budget that could be divided among "
            f"{per_person} records of a person"
        )
    return divided


def _with_delta(settings: Mapping[str, Any], delta: float) -> dict[str, Any]:
    """The settings that hold a delta, with another: one of that name, or a choice's parameter."""
    if "delta" in settings:
        return {"delta": delta}
    return {
        name: replace(value, delta=delta)
        for name, value in settings.items()
        if "delta" in getattr(value, "__dataclass_fields__", {})
    }
