"""What protocols on hidden counts declare for audits, reports and laws.

Who sees what when an aggregator computes the AUC from masked counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.cells import cell_counts
from tacit.protocols.shared.class_scores import one_against_rest

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol


PAGE = "threat-models/encrypted-auc.md"

MASKED_AGGREGATOR = (
    "The aggregator sees uniform words only, and the AUC to seven places and its certain range to "
    "three digits because the parties tell it; with only hundreds of records the class totals may "
    "follow from that."
)

AGGREGATOR_WITHOUT_AUC = "The aggregator sees {seen} only, and is told nothing of the AUC."

MASKED = ThreatModel(
    "The aggregator follows the protocol and must not collude with any party: every party has the "
    "session's secret, and with one the aggregator reads the others' total counts. Parties follow "
    "the protocol.",
    MASKED_AGGREGATOR,
    "The AUC and its certain range, and the product of the two class totals within a factor of 2 "
    "to the 4 or more; where fewer than 131,000 records were agreed on, parties may work that "
    "product out.",
    "The AUC is exact on its thresholds: masks hide who contributed what on the way, and nothing "
    "of what follows from the figure itself.",
    PAGE,
)

LYING = (
    "It can always refuse to answer, and one that lies learns whether the parties refused the "
    "answer, which they confirm to be one for all: one bit, for example whether a total is above a "
    "number. After one refusal, in any of its sessions, there is no other under these settings."
)

VERIFIED = replace(
    MASKED,
    trust="Experimental: the proof that the parties' check notices every wrong answer is not "
    "reviewed yet. The aggregator may compute wrongly, and must not collude with any party: every "
    f"party has the session's secret. {LYING}",
)

BY_CLASS = replace(
    MASKED,
    trust="The aggregator follows the protocol and must not collude with any party: every party "
    "has the session's secret, and with one the aggregator reads the others' total counts of every "
    "class. Parties follow the protocol.",
    server="The aggregator sees uniform words only, and of every class the AUC against the rest to "
    "seven places and its certain range to three digits because the parties tell it; with only "
    "hundreds of records the class totals may follow from that.",
    others="The AUCs and their certain ranges, and of every class the product of its records and "
    "all others within a factor of 2 to the 4 or more, each under a multiplier of its own: of C "
    "products together the range narrows to 1 in C + 1 or so. Where fewer than 131,000 records "
    "were agreed on, parties may work the products out.",
    left_open="Every class's AUC is exact on its thresholds: masks hide who contributed what on "
    "the way, and nothing of what follows from the figures themselves.",
)


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    made = VERIFIED if settings.get("adversary") == "malicious" else MASKED
    return told_to_parties(made, settings, "uniform words")


def by_class_threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of an evaluation by class with these settings."""
    return told_to_parties(BY_CLASS, settings, "uniform words")


def told_to_parties(made: ThreatModel, settings: Mapping[str, Any], seen: str) -> ThreatModel:
    """The model where the parties may tell the aggregator nothing, which sees these messages."""
    if settings.get("reveal") == "parties":
        return replace(made, server=AGGREGATOR_WITHOUT_AUC.format(seen=seen))
    return made


SMALL = {"thresholds": 9, "most_records": 64}
"""The settings of a small session."""


class HiddenDeclarations(Declarations):
    """Cases and laws of figures without noise, of counts that keys hide on the way."""

    draws: ClassVar[int] = 24
    """Number of draws of messages in an audit; each takes milliseconds."""
    audit_settings = (SMALL,)
    gives_errors = False
    """Figures have a certain range and no standard error."""

    @property
    def law_traits(self) -> audits.LawTraits:
        """Ciphertexts and masked values are no sums."""
        return audits.LawTraits(
            indivisible="only the session of a hidden count opens its answer",
            unmeasured_loss="messages differ by their keys, and not by noise",
            min_clients=2,
            batches=(2,),
            tolerance=1e-7,
        )

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> audits.AuditCase:
        """Clients of one record, as a session takes two clients."""
        return audits.AuditCase(cls.name, settings, apart=True, one_by_one=cls.draws, tight=False)

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """None: messages are hidden."""
        return ()

    def noiseless_value(self, clients: Clients) -> float:
        """The area under the straight lines between the thresholds: pairs of a cell count half."""
        protocol: Any = self
        areas = []
        for each in self.problems(clients):
            positives, records = cell_counts(each, protocol.threshold_scores, each.labels)
            areas.append(float(curves.cell_area(positives.sum(-1), (records - positives).sum(-1))))
        return float(np.mean(areas))

    def problems(self, clients: Clients) -> Iterable[Clients]:
        """The records with the labels of each AUC."""
        return (clients,)

    def sized_for(self, clients: Clients) -> Protocol:
        """The same, agreed for so many records."""
        protocol: Any = self
        resized: Protocol = replace(protocol, most_records=clients.records)
        return resized


class EncryptedDeclarations(HiddenDeclarations):
    """Threats and laws of ``EncryptedAUC``."""

    threats = staticmethod(threats_of)
    law_settings: ClassVar[audits.Configurations] = {"encrypted": SMALL}
    """The plain variant; the checked one has tests of its own."""


class ClassDeclarations(HiddenDeclarations):
    """Cases, threats and laws of ``EncryptedClassAUC``."""

    draws = 48
    threats = staticmethod(by_class_threats_of)
    law_settings: ClassVar[audits.Configurations] = {"encrypted-classes": SMALL}
    """Two classes, which clients without classes have."""

    def problems(self, clients: Clients) -> Iterable[Clients]:
        """Each class against the rest."""
        protocol: Any = self
        return one_against_rest(clients, *protocol.classified(clients))
