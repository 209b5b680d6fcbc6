"""What UStatistic declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.data.clients import Clients
from tacit.data.splitting import federation
from tacit.protocol.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations import Declarations
from tacit.protocol.laws import ErrorCase, LawTraits
from tacit.protocol.threats import ThreatModel
from tacit.protocols.ustatistic.threats import ONE_SYMBOL


class UStatisticDeclarations(Declarations):
    """Cases, threats and laws of ``UStatistic``."""

    domain: tuple[float, float]
    values: Any
    trials_divisor = 8

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
        """With classes, and without."""
        return cases_of(cls.name, {"kernel": "auc"}, {"kernel": "gini", "bins": 4}, apart=True)

    def audit_federation(self, records: int, apart: bool) -> Clients:
        """Records spread over the public range, or over the public values."""
        return federation(records, apart, *self.domain, self.values)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None of its own."""
        return ()

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what."""
        return ONE_SYMBOL

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """With classes, and without."""
        kind: Any = cls
        return {
            "local-auc": kind("auc", 1.0, bins=4),
            "local-gini": kind("gini", 1.0, bins=4),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: tests of the estimate compare its errors."""
        return {}

    @property
    def law_traits(self) -> LawTraits:
        """Without randomness there are no reports."""
        return LawTraits(
            inexact="symbols are debiased all the same",
            unmeasured_loss="without randomness these are no reports; tests enumerate their odds",
        )
