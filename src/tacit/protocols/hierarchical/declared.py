"""What HierarchicalAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.audits import DELTA, AuditCase, cases_of
from tacit.protocol.declarations.laws import LawTraits
from tacit.protocols.hierarchical.threats import ONE_ANSWER
from tacit.protocols.shared.declared import NO_REPORTS, ReportDeclarations


class HierarchicalDeclarations(ReportDeclarations):
    """Cases, threats and laws of ``HierarchicalAUC``."""

    threats = staticmethod(lambda settings: ONE_ANSWER)
    law_traits = LawTraits(inexact="answers are debiased all the same", unmeasured_loss=NO_REPORTS)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """One answer a record, and one on every level."""
        return cases_of(cls.name, {}, {"height": 2, "delta": DELTA}, apart=True)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """One answer a record, one on every level, and the paper's estimator."""
        kind: Any = cls
        return {
            "local-hierarchical": kind(6.0, 2),
            "local-hierarchical-delta": kind(8.0, 2, delta=0.01),
            "local-hierarchical-traversal": kind(6.0, 1, estimator="traversal"),
        }
