"""What MissingRecords declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.shared.threats import forest_model

COMPLETE = (
    "the laws compare neighbours by their complete records, of which the count holds none; "
    "tests of the protocol compare records that become incomplete"
)


class MissingDeclarations(Declarations):
    """Cases, threats and laws of ``MissingRecords``."""

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Both trust models."""
        trusts = [{"trust": trust.value} for trust in (Trust.SECURE_SUM, Trust.EACH)]
        return cases_of(cls.name, *trusts, tight=False)

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """An attack changes complete records, which the count does not hold."""
        return AuditCase(cls.name, settings, tight=False)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None of its own: a count of records without labels shows no label."""
        return ()

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Both trust models, and another adjacency."""
        kind: Any = cls
        return {
            "missing": kind(1.0),
            "missing-each": kind(1.0, Trust.EACH.value),
            "missing-replace": kind(1.0, adjacency="replace"),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """Both trust models; whole numbers with little noise have intervals of few lengths."""
        kind: Any = cls
        return {
            "missing": ErrorCase(kind(0.1), noticed=True),
            "missing-each": ErrorCase(kind(1.0, Trust.EACH.value), repeats=1200),
        }

    @property
    def law_traits(self) -> LawTraits:
        """The count does not hold complete records."""
        return LawTraits(loose=COMPLETE)

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what."""
        return forest_model(settings, "records lack a score or a label")
