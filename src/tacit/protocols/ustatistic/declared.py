"""What UStatistic declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.data.batches.splitting import federation
from tacit.data.clients import Clients
from tacit.protocol.declarations.audits import AuditCase, cases_of
from tacit.protocol.declarations.laws import LawTraits
from tacit.protocols.shared.declared import NO_REPORTS, ReportDeclarations
from tacit.protocols.ustatistic.threats import ONE_SYMBOL


class UStatisticDeclarations(ReportDeclarations):
    """Cases, threats and laws of ``UStatistic``."""

    domain: tuple[float, float]
    values: Any
    trials_divisor = 8
    threats = staticmethod(lambda settings: ONE_SYMBOL)
    law_traits = LawTraits(inexact="symbols are debiased all the same", unmeasured_loss=NO_REPORTS)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """With classes, and without."""
        return cases_of(cls.name, {"kernel": "auc"}, {"kernel": "gini", "bins": 4}, apart=True)

    def audit_federation(self, records: int, apart: bool) -> Clients:
        """Records spread over the public range, or over the public values."""
        return federation(records, apart, *self.domain, self.values)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """With classes, and without."""
        kind: Any = cls
        return {
            "local-auc": kind("auc", 1.0, bins=4),
            "local-gini": kind("gini", 1.0, bins=4),
        }
