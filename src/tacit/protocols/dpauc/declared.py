"""What DPAUC declares for audits, reports and laws.

Who sees what when a run measures the AUC from noisy counts in cells of scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Floats
from tacit.data.clients import Clients
from tacit.metrics import curves
from tacit.metrics.cells.score_scale import EVEN
from tacit.privacy.sampling.doubles import RepeatedNoise, ScaledNoise
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocols.shared.declared import NOBODY

if TYPE_CHECKING:
    from tacit.protocol.conversation import Query


PAGE = "threat-models/dpauc.md"

NOISY_COUNTS = (
    "With noise: each client's positives and negatives in every cell of scores, or above every "
    "threshold; with a second round one more number, the sum of its records' influences on the AUC."
)

PUBLISHED = "Both classes' noisy distributions and sizes with a second round; else nothing."

BY_ADJACENCY = {
    "record": ThreatModel(
        NOBODY,
        NOISY_COUNTS,
        PUBLISHED,
        "What is true of a large client as a whole: a noisy count of many records is a good "
        "estimate of that count.",
        PAGE,
    ),
    "replace": ThreatModel(
        NOBODY,
        NOISY_COUNTS,
        PUBLISHED,
        "A client's number of records, though it is noisy, and what is true of a large client as a "
        "whole.",
        PAGE,
    ),
    "label": ThreatModel(
        NOBODY,
        "Scores are treated as known: each client's number of records in a cell may be exact. "
        "Its positives are noisy, or counted among flipped labels.",
        "Nothing.",
        "Scores, up to the width of a cell, and numbers of records.",
        PAGE,
    ),
}


def threats_of(settings: Mapping[str, Any]) -> ThreatModel:
    """The threat model of these settings."""
    return BY_ADJACENCY[settings.get("adjacency", "record")]


SHOWN_RECORDS = 1000
"""Number of records at which both classes show, so that the server asks for the number."""


class DPAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``DPAUC``."""

    gives_curve = True
    threats = staticmethod(threats_of)

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """Every adjacency of the histogram in one round, and looks with the number."""
        return (
            *audits.cases_of(
                cls.name,
                {"thresholds": 100},
                {"adjacency": "label"},
                {"adjacency": "replace", "thresholds": 20},
            ),
            audits.AuditCase(cls.name, {"thresholds": 8}, tight=False),
            audits.AuditCase(cls.name, {}, SHOWN_RECORDS, tight=False),
            audits.AuditCase(cls.name, {"adjacency": "replace"}, SHOWN_RECORDS, tight=False),
        )

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

    def hostile_query(self, query: Query) -> Query:
        """Published functions under which a low negative moves the number most.

        All positives lie in the middle and all negatives at the top, so that the AUC is 0. A
        negative below the middle has the influence 1, a positive there 0. A look holds nothing that
        changes how much it reveals.
        """
        from tacit.protocols.dpauc.steps import NEGATIVES, POSITIVES, SIZES

        if SIZES not in query.broadcast:
            return query
        inner = query.broadcast[POSITIVES].shape[-1]
        positives = (np.arange(inner) >= inner // 2).astype(np.float64)
        fields = {POSITIVES: positives, NEGATIVES: np.zeros(inner), SIZES: np.ones(2)}
        return replace(query, broadcast={**query.broadcast, **fields})

    def replicated_query(self, query: Query, replicates: int) -> Query:
        """The same published functions for every replicate."""
        from tacit.protocols.dpauc.steps import NEGATIVES, POSITIVES, SIZES

        if SIZES not in query.broadcast:
            return query
        fields = {
            name: np.repeat(query.broadcast[name][np.newaxis], replicates, axis=0)
            for name in (POSITIVES, NEGATIVES, SIZES)
        }
        return replace(query, broadcast={**query.broadcast, **fields})

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """One round at every adjacency, and looks with the number."""
        kind: Any = cls
        return {
            "dpauc": kind(1.0, 20),
            "dpauc-label": kind(1.0, 20, adjacency="label"),
            "dpauc-replace": kind(1.0, 20, adjacency="replace"),
            "dpauc-even": kind(1.0, 20, scale=EVEN),
            "dpauc-chosen": kind(1.0),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, audits.ErrorCase]:
        """One round with the papers' number of cells at every adjacency, and looks."""
        kind: Any = cls
        return {
            "dpauc": audits.ErrorCase(kind(1.0), noticed=True),
            "dpauc-chosen-replace": audits.ErrorCase(kind(1.0, adjacency="replace")),
            "dpauc-one-round": audits.ErrorCase(kind(1.0, 100, scale=EVEN)),
            "dpauc-label": audits.ErrorCase(kind(1.0, 100, adjacency="label", scale=EVEN)),
            "dpauc-replace": audits.ErrorCase(kind(1.0, 100, adjacency="replace", scale=EVEN)),
        }

    @property
    def law_traits(self) -> audits.LawTraits:
        """The number cancels errors of the counts to first order."""
        protocol: Any = self
        inexact = "a second round cancels errors to first order only" if protocol.asks_again else ""
        return audits.LawTraits(inexact=inexact)

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
