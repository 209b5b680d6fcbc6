"""Units between a plan and its parties: words are compared before a record is read.

A plan names the unit in which its protocol takes scores, and each party's own file the unit that
its scores are in. Both words are configuration, so a refusal that follows from them reveals nothing
about a record.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.data.rescaling import in_unit
from tacit.data.units import (
    PROBABILITY,
    RANGES,
    REAL,
    are_convertible,
    check_unit,
    converted,
    outside,
)
from tacit.protocol.conversation import Protocol
from tacit.protocol.score_range import UNIT_INTERVAL

FOREIGN_UNIT = "the unit in its own file cannot be converted to the plan's"
"""Reason that a party gives where the plan needs another unit."""


def default_unit(protocol: Protocol) -> str:
    """The unit of a plan that names none: probabilities, or the unit of its public range."""
    return PROBABILITY if protocol.score_range in (None, UNIT_INTERVAL) else REAL


def check_plan_unit(protocol: Protocol, unit: str) -> None:
    """Refuse a unit in which a protocol cannot take scores.

    Raises
    ------
    ValueError : for an unknown unit; for another one than probabilities where thresholds cut
        [0, 1]; and for one that the protocol's public range goes beyond.
    """
    check_unit(unit)
    score_range = protocol.score_range
    if score_range is None:
        return
    if score_range == UNIT_INTERVAL and unit != PROBABILITY:
        raise ValueError(
            f"{protocol.name} takes scores from 0 to 1: unit must be {PROBABILITY}, got {unit!r}; "
            "a party whose scores are in another unit names that in its own file"
        )
    low, high = RANGES[unit]
    if not low <= score_range[0] <= score_range[1] <= high:
        raise ValueError(
            f"{protocol.name} takes values from {score_range[0]:g} to {score_range[1]:g}, "
            f"which are not all of the unit {unit!r}"
        )


def can_answer(file_unit: str | None, plan_unit: str, protocol: Protocol) -> bool:
    """Whether a party whose file names this unit can answer a plan that names that unit.

    A file without a unit suits plans whose unit is their protocol's default.
    """
    if file_unit is None:
        return plan_unit == default_unit(protocol)
    return are_convertible(file_unit, plan_unit)


def for_plan(
    records: Clients, file_unit: str | None, plan_unit: str, protocol: Protocol
) -> Clients:
    """A party's records as the plan's protocol takes them: in its unit, and within its range.

    Parameters
    ----------
    records : as the party's file has them.
    file_unit : the unit in the party's file; None for the plan's.
    plan_unit : the plan's unit.
    protocol : what the plan computes.
    """
    scores = converted(records.scores, file_unit or plan_unit, plan_unit)
    return protocol.fitted(replace(records, scores=scores, unit=None))


def taken_by(protocol: Protocol, clients: Clients) -> Clients:
    """The clients of one process as a protocol takes them, with the unit that a result names.

    Raises
    ------
    DataError : for scores in a unit that has no value in the range that the protocol takes.
    """
    if clients.unit is None:
        return clients
    if protocol.score_range != UNIT_INTERVAL:
        return clients
    if not are_convertible(clients.unit, PROBABILITY):
        raise DataError(
            f"{protocol.name} takes scores from 0 to 1, got the unit {clients.unit!r}: map them by "
            "public bounds (--rescale LOW HIGH)"
        )
    return in_unit(clients, PROBABILITY)


def result_unit(protocol: Protocol, clients: Clients) -> str:
    """The unit that a result names: the clients' own word, or what their protocol takes.

    Where only the order of scores counts, nobody named a unit, and some are outside [0, 1], they
    are real numbers. Only protocols that show scores to the server have no range.
    """
    if clients.unit is not None:
        return clients.unit
    if protocol.score_range is None and outside(clients.scores, PROBABILITY).any():
        return REAL
    return default_unit(protocol)
