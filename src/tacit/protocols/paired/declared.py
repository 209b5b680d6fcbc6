"""What PairedUStatistic declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.protocol.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations import Declarations
from tacit.protocol.laws import ErrorCase, LawTraits
from tacit.protocol.threats import ThreatModel
from tacit.protocols.paired.threats import threats_of


class PairedDeclarations(Declarations):
    """Cases, threats and laws of ``PairedUStatistic``."""

    trials_divisor = 8

    @property
    def lone_records(self) -> bool:
        """Pairs of clients with one record each are the plainest."""
        return True

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """One pair, of two clients."""
        return AuditCase(cls.name, settings, 2, apart=True, tight=False)

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

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None of its own."""
        return ()

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what under these settings."""
        return threats_of(settings)

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

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: tests of the estimate compare its errors."""
        return {}

    @property
    def law_traits(self) -> LawTraits:
        """Pairs are drawn at random, and few of them are measured."""
        return LawTraits(
            unordered="the pairs of the matchings are drawn by index",
            inexact="the matched pairs are not all pairs",
        )
