"""What EncryptedAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.data.clients import Clients
from tacit.protocol.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations import Declarations
from tacit.protocol.laws import ErrorCase, LawTraits
from tacit.protocols.encrypted.threats import threats_of

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol

DRAWS = 24
"""Number of draws of ciphertexts in an audit; each takes milliseconds."""


class EncryptedDeclarations(Declarations):
    """Cases, threats and laws of ``EncryptedAUC``."""

    threats = staticmethod(threats_of)
    law_traits = LawTraits(
        indivisible="only the session of a ciphertext opens it",
        unmeasured_loss="ciphertexts differ by their keys, and not by noise",
        min_clients=2,
        batches=(2,),
        tolerance=1e-7,
    )

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Clients of one record, as a session takes two clients."""
        return AuditCase(cls.name, settings, apart=True, one_by_one=DRAWS, tight=False)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A small session."""
        return cases_of(
            cls.name, {"thresholds": 9, "most_records": 64}, apart=True, one_by_one=DRAWS
        )

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None: messages are ciphertexts."""
        return ()

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """The plain variant; the checked one takes twice as long and has tests of its own."""
        kind: Any = cls
        return {"encrypted": kind(9, most_records=64)}

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: the figure has a certain range and no standard error."""
        return {}

    def noiseless_value(self, clients: Clients) -> float:
        """The area under the straight lines between the thresholds: pairs of a cell count half."""
        from tacit.metrics.curves import cell_area
        from tacit.protocols.shared.cell_counts import cell_counts

        protocol: Any = self
        positives, records = cell_counts(clients, protocol.threshold_scores, clients.labels)
        return float(cell_area(positives.sum(-1), (records - positives).sum(-1)))

    def sized_for(self, clients: Clients) -> Protocol:
        """The same, agreed for so many records."""
        protocol: Any = self
        resized: Protocol = replace(protocol, most_records=clients.records)
        return resized
