"""What PairedUStatistic declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.declarations.audits import AuditCase, cases_of
from tacit.protocol.declarations.laws import LawTraits
from tacit.protocols.paired.threats import threats_of
from tacit.protocols.shared.declared import ReportDeclarations


class PairedDeclarations(ReportDeclarations):
    """Cases, threats and laws of ``PairedUStatistic``."""

    trials_divisor = 8
    audit_records = 2
    threats = staticmethod(threats_of)
    law_traits = LawTraits(
        unordered="the pairs of the matchings are drawn by place",
        inexact="the matched pairs are not all pairs",
    )

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Every noise; that of both clients is more private than declared against the server."""
        return (
            *cases_of(
                cls.name,
                {"kernel": "auc"},
                {"kernel": "gini", "noise": "shared"},
                records=2,
                apart=True,
            ),
            AuditCase(cls.name, {"kernel": "gini"}, records=2, apart=True, tight=False),
        )

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Every noise, and kernels with classes and without."""
        kind: Any = cls
        return {
            "paired-auc": kind("auc", 1.0),
            "paired-auc-laplace": kind("auc", 1.0, matchings=2, noise="laplace"),
            "paired-auc-shared": kind("auc", 1.0, noise="shared"),
            "paired-collision": kind("collision", 1.0, matchings=3),
            "paired-gini": kind("gini", 1.0, matchings=2),
        }
