"""What EncryptedClassAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tacit.data.clients import Clients
from tacit.protocol.conversation import Protocol
from tacit.protocol.declarations.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocols.encrypted.threats import by_class_threats_of
from tacit.protocols.shared.class_scores import one_against_rest

DRAWS = 48
"""Number of draws of masked values in an audit."""


class ClassDeclarations(Declarations):
    """Cases, threats and laws of ``EncryptedClassAUC``."""

    threats = staticmethod(by_class_threats_of)

    @property
    def law_traits(self) -> LawTraits:
        """Masked values are no sums."""
        return LawTraits(
            indivisible="only the session of a masked value opens it",
            unmeasured_loss="masked values differ by their keys, and not by noise",
            min_clients=2,
            batches=(2,),
            tolerance=1e-7,
        )

    @classmethod
    def takes_epsilon(cls, settings: Mapping[str, Any]) -> bool:
        """Nothing has noise."""
        return False

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Clients of one record, as a session takes two clients."""
        return AuditCase(cls.name, settings, apart=True, one_by_one=DRAWS, tight=False)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A small session."""
        small = {"thresholds": 9, "most_records": 64}
        return cases_of(cls.name, small, apart=True, one_by_one=DRAWS)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None: messages are masked."""
        return ()

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Two classes, which clients without classes have."""
        kind: Any = cls
        return {"encrypted-classes": kind(thresholds=9, most_records=64)}

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: figures have a certain range and no standard error."""
        return {}

    def noiseless_value(self, clients: Clients) -> float:
        """The mean of the areas under straight lines between thresholds."""
        from tacit.metrics.curves import cell_area
        from tacit.protocols.shared.cell_counts import cell_counts

        protocol: Any = self
        areas = []
        for each in one_against_rest(clients, *protocol.classified(clients)):
            positives, records = cell_counts(each, protocol.threshold_scores, each.labels)
            areas.append(float(cell_area(positives.sum(-1), (records - positives).sum(-1))))
        return float(np.mean(areas))

    def sized_for(self, clients: Clients) -> Protocol:
        """The same, agreed for so many records."""
        protocol: Any = self
        resized: Protocol = replace(protocol, most_records=clients.records)
        return resized
