"""Units between a plan and its parties: words are compared before a record is read.

A plan names the unit in which its protocol takes scores, and each party's own file the unit that
its scores are in. Both words are configuration, so a refusal that follows from them reveals nothing
about a record. Where a protocol counts scores in cells, the unit also says where cells lie, unless
a setting does.
"""

from __future__ import annotations

from collections.abc import Collection

import tacit.protocol as tp
from tacit.data import scales, units
from tacit.protocol.settings import changed_settings, known_settings

FOREIGN_UNIT = "the unit in its own file cannot be converted to the plan's"
"""Reason that a party gives where the plan needs another unit."""


RESCALED = "map them by public bounds (--rescale LOW HIGH)"
"""What helps where a unit cannot be converted to probabilities, and no cells are for it."""


def default_unit(protocol: tp.Protocol) -> str:
    """The unit of a plan that names none: what its protocol takes, or probabilities."""
    return protocol.unit or units.PROBABILITY


def suited(protocol: tp.Protocol, unit: str, given: Collection[str]) -> tp.Protocol:
    """The protocol for scores of a unit; as it is where a setting that was given says otherwise.

    Parameters
    ----------
    protocol : with its settings.
    unit : what the scores are.
    given : the settings that somebody chose, by name.

    Raises
    ------
    ValueError : for an unknown unit, and for settings that do not go with it.
    """
    other = protocol.for_unit(units.check_unit(unit))
    changed = changed_settings(protocol, other) & set(given)
    return other if all(_is_bare(getattr(protocol, name)) for name in changed) else protocol


def _is_bare(value: object) -> bool:
    """Whether a setting is a choice with default parameters, as ``auc`` for a kernel."""
    return isinstance(value, tp.Choice) and str(value) == value.word


def chosen_settings(protocol: tp.Protocol) -> frozenset[str]:
    """The settings that differ from their defaults, so that somebody chose them."""
    return frozenset(
        name
        for name, known in known_settings(type(protocol)).items()
        if known.needed or known.differs(protocol)
    )


def check_plan_unit(protocol: tp.Protocol, unit: str) -> None:
    """Refuse a unit in which a protocol cannot take scores.

    Raises
    ------
    ValueError : for an unknown unit; for another one than the protocol's settings are for; and for
        one that the protocol's public range goes beyond.
    """
    units.check_unit(unit)
    if protocol.unit in (None, unit):
        return
    if protocol.score_range == tp.UNIT_INTERVAL:
        raise ValueError(
            f"{protocol.name} takes scores from 0 to 1: unit must be {units.PROBABILITY}, got "
            f"{unit!r}; "
            "a party whose scores are in another unit names that in its own file"
        )
    if protocol.score_range is None:
        raise ValueError(
            f"{protocol.name} with these settings takes scores in {protocol.unit}: unit must be "
            f"{protocol.unit}, got {unit!r}"
        )
    least, most = protocol.score_range
    low, high = units.RANGES[unit]
    if not low <= least <= most <= high:
        raise ValueError(
            f"{protocol.name} takes values from {least:g} to {most:g}, "
            f"which are not all of the unit {unit!r}"
        )


def unit_misfit(file_unit: str | None, plan_unit: str, protocol: tp.Protocol) -> str:
    """Why a party's unit does not suit a plan, as others may read it; empty where it does.

    A file without a unit holds probabilities, or values of a protocol that has another range.
    """
    if file_unit is None:
        fits = plan_unit == (units.REAL if has_another_range(protocol) else units.PROBABILITY)
    else:
        fits = units.are_convertible(file_unit, plan_unit)
    return "" if fits else FOREIGN_UNIT


def has_another_range(protocol: tp.Protocol) -> bool:
    """Whether values have a public range that is not from 0 to 1, and so no unit of scores."""
    return protocol.score_range not in (None, tp.UNIT_INTERVAL)


def for_plan(
    records: tp.Clients, file_unit: str | None, plan_unit: str, protocol: tp.Protocol
) -> tp.Clients:
    """A party's records as the plan's protocol takes them: in its unit, and within its range.

    Parameters
    ----------
    records : as the party's file has them.
    file_unit : the unit in the party's file; None for the plan's.
    plan_unit : the plan's unit.
    protocol : what the plan computes.
    """
    unit = file_unit or plan_unit
    conversion, exact = units.conversion(unit, plan_unit), units.is_exact(unit, plan_unit)
    return protocol.fitted(records.rescored(conversion, exact=exact))


def suited_to_scores(
    protocol: tp.Protocol, unit: str, given: Collection[str] | None = None
) -> tp.Protocol:
    """The protocol for scores of a unit, which it takes as they are or converted.

    Parameters
    ----------
    protocol : with its settings.
    unit : what the scores are.
    given : the settings that somebody chose; None for those that differ from their defaults.

    Raises
    ------
    DataError : for a unit that cannot be converted to what the protocol takes.
    ValueError : for settings that do not go with the unit.
    """
    chosen = suited(protocol, unit, chosen_settings(protocol) if given is None else given)
    if chosen.unit is None or has_another_range(chosen) or units.are_convertible(unit, chosen.unit):
        return chosen
    if chosen.score_range == tp.UNIT_INTERVAL:
        by_unit = chosen.for_unit(unit).unit == unit
        remedy = "leave the choice of cells to the unit" if by_unit else RESCALED
        raise tp.DataError(
            f"{chosen.name} with these settings takes scores from 0 to 1, got the unit {unit!r}, "
            f"which cannot be converted; {remedy}"
        )
    raise tp.DataError(
        f"{chosen.name} with these settings takes scores in {chosen.unit}, got the unit {unit!r}, "
        "which cannot be converted"
    )


def taken_by(
    protocol: tp.Protocol, clients: tp.Clients, given: Collection[str] | None = None
) -> tuple[tp.Protocol, tp.Clients]:
    """The protocol and the clients of one process as they suit each other.

    The protocol gets the cells of the unit that the clients name, unless somebody chose others;
    then, and where a protocol takes probabilities only, scores are converted.

    Parameters
    ----------
    protocol : with its settings.
    clients : all clients; those that name no unit stay as they are.
    given : as ``suited_to_scores`` takes it.

    Raises
    ------
    DataError, ValueError : as ``suited_to_scores``.
    """
    if clients.unit is None:
        return protocol, clients
    chosen = suited_to_scores(protocol, clients.unit, given)
    if chosen.unit in (None, clients.unit) or has_another_range(chosen):
        return chosen, clients
    return chosen, scales.in_unit(clients, default_unit(chosen))


def result_unit(protocol: tp.Protocol, clients: tp.Clients) -> str:
    """The unit that a result names: the clients' own word, or what their protocol takes.

    Where only the order of scores counts, no one named a unit, and some are outside [0, 1], they
    are real numbers. Only protocols that show scores to the server take scores so.
    """
    if clients.unit is not None:
        return clients.unit
    if protocol.unit is None and clients.outlier(*units.RANGES[units.PROBABILITY]) is not None:
        return units.REAL
    return default_unit(protocol)
