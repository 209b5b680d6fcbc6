"""What DPAUC declares for audits, reports and laws.

Who sees what when a run measures the AUC from noisy counts in cells of scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.sampling.doubles import RepeatedNoise, ScaledNoise
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.declared import NOBODY

PAGE = "threat-models/dpauc.md"

WHOLE_RECORDS = ThreatModel(
    NOBODY,
    "With noise: each client's positives and negatives in every cell of scores, or above every "
    "threshold.",
    "Nothing.",
    "What is true of a large client as a whole: a noisy count of many records is a good "
    "estimate of that count.",
    PAGE,
)

BY_ADJACENCY = {
    "record": WHOLE_RECORDS,
    "replace": replace(
        WHOLE_RECORDS,
        left_open="A client's number of records, though it is noisy, and what is true of a large "
        "client as a whole.",
    ),
    "label": replace(
        WHOLE_RECORDS,
        server="Scores are treated as known: each client's number of records in a cell may be "
        "exact. Its positives are noisy, or counted among flipped labels.",
        left_open="Scores, up to the width of a cell, and numbers of records.",
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return BY_ADJACENCY[settings.get("adjacency", "record")]


class DPAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``DPAUC``."""

    gives_curve = True
    threats = staticmethod(threats_of)
    audit_settings = (
        {"thresholds": 100},
        {"adjacency": "label"},
        {"adjacency": "replace", "thresholds": 20},
    )
    law_settings: ClassVar[audits.Configurations] = {
        "dpauc": {"thresholds": 20},
        "dpauc-label": {"thresholds": 20, "adjacency": "label"},
        "dpauc-replace": {"thresholds": 20, "adjacency": "replace"},
        "dpauc-even": {"thresholds": 20, "scale": EVEN},
    }

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """Every adjacency."""
        return (*super().audit_cases(), cls.audit_case({"thresholds": 8}))

    @classmethod
    def self_test_cases(cls) -> audits.SelfTestCases:
        """Histograms and releases of two of them, sound and with a mistake each."""
        from tacit.protocols.dpauc.attacks import SmallSensitivity, TwoReleases

        kind: Any = cls
        histogram = kind(1.0, 4, scale=EVEN)
        small = SmallSensitivity(1.0, 4, adjacency="replace", scale=EVEN)
        twice = TwoReleases(1.0, 4, scale=EVEN)
        doubled = TwoReleases(1.0, 4, declared=1.0, scale=EVEN)
        halved, lowered = partial(ScaledNoise, 0.5), partial(ScaledNoise, 0.7)
        return audits.SelfTestCases(
            (
                audits.AuditTrial(audits.COUNTS, "noisy histogram", False, histogram),
                audits.AuditTrial(audits.COUNTS, "its noise halved", True, histogram, halved),
                audits.AuditTrial(
                    audits.COUNTS, "its noise 30 % too small", True, histogram, lowered
                ),
                audits.AuditTrial(audits.COUNTS, "its sensitivity too small", True, small),
                audits.AuditTrial(
                    audits.COMPOSITION, "two releases at twice epsilon", False, twice
                ),
                audits.AuditTrial(audits.COMPOSITION, "their budget counted twice", True, doubled),
                audits.AuditTrial(
                    audits.COMPOSITION, "their noise from one seed", True, twice, RepeatedNoise
                ),
            ),
            (kind(1.0, 100, scale=EVEN),),
        )

    def label_attacks(self) -> tuple[audits.LabelAttack, ...]:
        """The counts of clients with one record."""
        from tacit.protocols.dpauc.attacks import guesses_from_lone_counts

        return (guesses_from_lone_counts,)

    @classmethod
    def error_cases(cls) -> Mapping[str, audits.ErrorCase]:
        """The papers' number of cells at every adjacency."""
        kind: Any = cls
        return {
            "dpauc": audits.ErrorCase(kind(1.0, 100, scale=EVEN), noticed=True),
            "dpauc-label": audits.ErrorCase(kind(1.0, 100, adjacency="label", scale=EVEN)),
            "dpauc-replace": audits.ErrorCase(kind(1.0, 100, adjacency="replace", scale=EVEN)),
        }

    def noiseless_value(self, clients: Clients) -> float:
        """The area of the counts in cells, with what cells hide."""
        protocol: Any = self
        pooled = pooled_cells(protocol.on_scale(clients), protocol.edges)
        return float(curves.cell_area(*pooled)) + float(curves.density_correction(*pooled))


def pooled_cells(placed: Clients, edges: Floats) -> tuple[Floats, Floats]:
    """The positives and negatives in cells with these lower edges, of all clients together."""
    from tacit.protocols.shared.cells import cell_counts

    positives, records = cell_counts(placed, edges, placed.labels)
    return positives.sum(-1), (records - positives).sum(-1)
