"""What protocols declare in which every record answers by itself, for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tacit.protocol.declarations.audits import AuditCase, LabelAttack
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase

NO_REPORTS = "without randomness these are no reports; tests enumerate their odds"
"""Why the privacy loss of a randomised report cannot be read from the noise that was drawn."""


class ReportDeclarations(Declarations):
    """Declarations of a protocol whose clients hold one record each, as a rule."""

    audit_records: ClassVar[int] = 4
    """Number of records of an audit of chosen settings."""
    lone_records = True

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Clients of one record."""
        return AuditCase(cls.name, settings, cls.audit_records, apart=True, tight=False)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None: what the server receives is public, or randomised."""
        return ()

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: tests of the estimate compare its errors."""
        return {}
