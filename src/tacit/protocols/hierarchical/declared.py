"""What HierarchicalAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.audits import DELTA, AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations import Declarations
from tacit.protocol.laws import ErrorCase, LawTraits
from tacit.protocol.threats import ThreatModel
from tacit.protocols.hierarchical.threats import ONE_ANSWER


class HierarchicalDeclarations(Declarations):
    """Cases, threats and laws of ``HierarchicalAUC``."""

    @property
    def lone_records(self) -> bool:
        """Every record reports by itself."""
        return True

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Clients of one record."""
        return AuditCase(cls.name, settings, apart=True, tight=False)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """One answer a record, and one on every level."""
        return cases_of(cls.name, {}, {"height": 2, "delta": DELTA}, apart=True)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None: labels are public."""
        return ()

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what."""
        return ONE_ANSWER

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """One answer a record, one on every level, and the paper's estimator."""
        kind: Any = cls
        return {
            "local-hierarchical": kind(6.0, 2),
            "local-hierarchical-delta": kind(8.0, 2, delta=0.01),
            "local-hierarchical-traversal": kind(6.0, 1, estimator="traversal"),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: tests of the estimate compare its errors."""
        return {}

    @property
    def law_traits(self) -> LawTraits:
        """Without randomness there are no reports."""
        return LawTraits(
            inexact="answers are debiased all the same",
            unmeasured_loss="without randomness these are no reports; tests enumerate their odds",
        )
