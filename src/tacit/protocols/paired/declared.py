"""What PairedUStatistic declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from tacit.protocol.declarations import audits
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.paired.noise import SHARED
from tacit.protocols.shared.declared import ReportDeclarations

PAGE = "threat-models/paired-ustatistic.md"

PAIRED = (
    "The two clients of a pair are trusted not to work together with the server beyond what is "
    "said below. Between real parties they compute by cryptography; where a trusted party took its "
    "place, a warning says so."
)

PAIRED_SERVER = (
    "Exactly: each client's number of records. With noise: the value of every pair, and for an AUC "
    "each client's count of positives."
)

WHOLE_NOISE = ThreatModel(
    PAIRED,
    PAIRED_SERVER,
    "Nothing.",
    "Numbers of records, and which pairs were drawn. Against a client that tells the server "
    "all it knows, the same epsilon is left.",
    PAGE,
)

SHARED_NOISE = replace(
    WHOLE_NOISE,
    left_open="Numbers of records, and which pairs were drawn. A client that tells the server its "
    "half of the noise leaves its partner with less than the stated epsilon promises.",
)


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return SHARED_NOISE if settings.get("noise") == SHARED else WHOLE_NOISE


class PairedDeclarations(ReportDeclarations):
    """Cases, threats and laws of ``PairedUStatistic``."""

    trials_divisor = 8
    audit_records = 2
    audit_settings = ({"kernel": "auc"}, {"kernel": "gini", "noise": "shared"})
    law_settings: ClassVar[audits.Configurations] = {
        "paired-auc": {"kernel": "auc"},
        "paired-auc-laplace": {"kernel": "auc", "matchings": 2, "noise": "laplace"},
        "paired-auc-shared": {"kernel": "auc", "noise": "shared"},
        "paired-collision": {"kernel": "collision", "matchings": 3},
        "paired-gini": {"kernel": "gini", "matchings": 2},
    }
    threats = staticmethod(threats_of)
    law_traits = audits.LawTraits(
        unordered="the pairs of the matchings are drawn by place",
        inexact="the matched pairs are not all pairs",
    )

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """Every noise; that of both clients is more private than declared against the server."""
        return (*super().audit_cases(), cls.audit_case({"kernel": "gini"}))
