"""What TwoRoundAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tacit.data.clients import Clients
from tacit.protocol.declarations.audits import AuditCase, cases_of
from tacit.protocol.declarations.laws import LawTraits
from tacit.protocols.shared.declared import NO_REPORTS, ReportDeclarations
from tacit.protocols.two_round.threats import threats_of

if TYPE_CHECKING:
    from tacit.protocol.conversation import ClientState

RECORDS = 8
"""Number of records of an audit, so that some report in each round."""


class TwoRoundDeclarations(ReportDeclarations):
    """Cases, attacks, threats and laws of ``TwoRoundAUC``."""

    draws_by_step = MappingProxyType({"report_influences": 4_000})
    trials_divisor = 8
    audit_records = RECORDS
    threats = staticmethod(threats_of)
    law_traits = LawTraits(inexact="reports are debiased all the same", unmeasured_loss=NO_REPORTS)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Private and public labels."""
        return cases_of(cls.name, {}, {"labels": "public"}, records=RECORDS, apart=True)

    def renew_state(self, clients: Clients, state: ClientState) -> None:
        """Keep the turns that were drawn, without a look at the records."""
        from tacit.protocols.shared.reports.turns import renew_turns

        renew_turns(clients, state)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Labels by default, and private."""
        kind: Any = cls
        return {
            "local-two-round": kind(1.0),
            "local-two-round-private": kind(1.0, labels="private"),
        }
