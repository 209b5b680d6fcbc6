"""Which protocols are audited, and which of their settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations.audits import AuditCase
from tacit.protocol.registry import kind_of, protocol_names


def protocol_kinds() -> dict[str, type[Protocol]]:
    """The class of every registered protocol, by name."""
    return {name: kind_of(name) for name in protocol_names()}


def cases_of(name: str) -> tuple[AuditCase, ...]:
    """The cases of a protocol that an audit attacks when the user names no settings.

    Examples
    --------
    >>> len(cases_of("exact"))
    1
    """
    cases: tuple[AuditCase, ...] = kind_of(name).audit_cases()
    return cases


def chosen_case(name: str, settings: Mapping[str, Any]) -> AuditCase:
    """A case with settings that the user chose, and a federation that suits the protocol."""
    case: AuditCase = kind_of(name).audit_case(settings)
    return case
