"""What DPAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.metrics.curves import cell_area, density_correction
from tacit.privacy.sampling.doubles import RepeatedNoise, ScaledNoise
from tacit.protocol.declarations.audits import (
    COMPOSITION,
    COUNTS,
    DELTA,
    AuditCase,
    AuditTrial,
    LabelAttack,
    SelfTestCases,
    cases_of,
)
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocols.dpauc.threats import threats_of
from tacit.protocols.shared.sums.rank_noise import RESPONSE

if TYPE_CHECKING:
    from tacit.protocol.conversation import Query

IMITATED_REPEATS = 1200
"""Repetitions where errors are imitated, which takes longer."""


class DPAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``DPAUC``."""

    mechanism: str
    accounting: str
    second_round: float | None
    gives_curve = True
    threats = staticmethod(threats_of)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Every mechanism, and every adjacency of the histogram."""
        return (
            *cases_of(
                cls.name,
                {"second_round": 0.0},
                {"adjacency": "label"},
                {"adjacency": "replace", "thresholds": 20, "second_round": 0.0},
                {"second_round": 0.5, "thresholds": 8},
                {"second_round": 0.5, "thresholds": 8, "adjacency": "replace"},
                {"mechanism": "laplace", "thresholds": 2},
                {"mechanism": "gaussian", "delta": DELTA, "thresholds": 2},
                {"mechanism": RESPONSE, "adjacency": "label"},
            ),
            AuditCase(cls.name, {"thresholds": 8}, tight=False),
        )

    @classmethod
    def self_test_cases(cls) -> SelfTestCases:
        """Histograms and releases of two of them, sound and with a mistake each."""
        from tacit.protocols.dpauc.broken import SmallSensitivity, TwoReleases

        kind: Any = cls
        once: Any = {"second_round": 0.0, "scale": EVEN}
        histogram = kind(1.0, 4, **once)
        small = SmallSensitivity(1.0, 4, adjacency="replace", **once)
        twice = TwoReleases(1.0, 4, **once)
        doubled = TwoReleases(1.0, 4, declared=1.0, **once)
        halved, lowered = partial(ScaledNoise, 0.5), partial(ScaledNoise, 0.7)
        return SelfTestCases(
            (
                AuditTrial(COUNTS, "noisy histogram", False, histogram),
                AuditTrial(COUNTS, "its noise halved", True, histogram, halved),
                AuditTrial(COUNTS, "its noise 30 % too small", True, histogram, lowered),
                AuditTrial(COUNTS, "its sensitivity too small", True, small),
                AuditTrial(COMPOSITION, "two releases at twice epsilon", False, twice),
                AuditTrial(COMPOSITION, "their budget counted twice", True, doubled),
                AuditTrial(COMPOSITION, "their noise from one seed", True, twice, RepeatedNoise),
            ),
            (kind(1.0, **once),),
        )

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """The counts of clients with one record."""
        from tacit.protocols.dpauc.attacks import guesses_from_lone_counts

        return (guesses_from_lone_counts,)

    def hostile_query(self, query: Query) -> Query:
        """Published functions under which a low negative moves the number most.

        All positives lie in the middle and all negatives at the top, so that the AUC is 0. A
        negative below the middle has the influence 1, a positive there 0. A look holds nothing that
        changes how much it reveals.
        """
        from tacit.protocols.dpauc.second_round import NEGATIVES, POSITIVES, SIZES

        if SIZES not in query.broadcast:
            return query
        inner = query.broadcast[POSITIVES].shape[-1]
        positives = (np.arange(inner) >= inner // 2).astype(np.float64)
        fields = {POSITIVES: positives, NEGATIVES: np.zeros(inner), SIZES: np.ones(2)}
        return replace(query, broadcast={**query.broadcast, **fields})

    def replicated_query(self, query: Query, replicates: int) -> Query:
        """The same published functions for every replicate."""
        from tacit.protocols.dpauc.second_round import NEGATIVES, POSITIVES, SIZES

        if SIZES not in query.broadcast:
            return query
        fields = {
            name: np.repeat(query.broadcast[name][np.newaxis], replicates, axis=0)
            for name in (POSITIVES, NEGATIVES, SIZES)
        }
        return replace(query, broadcast={**query.broadcast, **fields})

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Every mechanism at every adjacency, and both ways to count costs and to make points."""
        kind: Any = cls
        return {
            "dpauc": kind(1.0, 20, second_round=0.0),
            "dpauc-label": kind(1.0, 20, adjacency="label"),
            "dpauc-replace": kind(1.0, 20, adjacency="replace", second_round=0.0),
            "dpauc-even": kind(1.0, 20, second_round=0.0, scale=EVEN),
            "dpauc-chosen": kind(1.0),
            "dpauc-second": kind(8.0, 20, second_round=0.5),
            "dpauc-second-replace": kind(8.0, 20, adjacency="replace", second_round=0.5),
            "dpauc-laplace": kind(1.0, 20, "laplace"),
            "dpauc-laplace-label": kind(1.0, 20, "laplace", adjacency="label"),
            "dpauc-laplace-replace": kind(1.0, 20, "laplace", adjacency="replace"),
            "dpauc-laplace-paper": kind(1.0, 20, "laplace", accounting="paper", adjacency="label"),
            "dpauc-laplace-unclamped": kind(1.0, 20, "laplace", clamp=False),
            "dpauc-gaussian": kind(1.0, 20, "gaussian", delta=1e-6),
            "dpauc-gaussian-label": kind(1.0, 20, "gaussian", adjacency="label", delta=1e-6),
            "dpauc-response": kind(1.0, 20, RESPONSE, adjacency="label"),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """Every mechanism, with the papers' number of cells or at a larger epsilon."""
        kind: Any = cls
        response = kind(1.0, 100, RESPONSE, adjacency="label", scale=EVEN)
        return {
            "dpauc": ErrorCase(kind(1.0), noticed=True),
            "dpauc-second-replace": ErrorCase(kind(1.0, adjacency="replace", second_round=0.7)),
            "dpauc-one-round": ErrorCase(kind(1.0, 100, second_round=0.0, scale=EVEN)),
            "dpauc-label": ErrorCase(kind(1.0, 100, adjacency="label", scale=EVEN)),
            "dpauc-replace": ErrorCase(
                kind(1.0, 100, adjacency="replace", second_round=0.0, scale=EVEN)
            ),
            "dpauc-laplace": ErrorCase(kind(2.0, 20, "laplace", scale=EVEN), IMITATED_REPEATS),
            "dpauc-laplace-unclamped": ErrorCase(
                kind(2.0, 20, "laplace", clamp=False, scale=EVEN), IMITATED_REPEATS
            ),
            "dpauc-gaussian": ErrorCase(
                kind(2.0, 20, "gaussian", delta=1e-6, scale=EVEN), IMITATED_REPEATS
            ),
            "dpauc-response": ErrorCase(response),
        }

    @property
    def law_traits(self) -> LawTraits:
        """Flipped labels are debiased without noise too; the paper's accounting is loose."""
        flips, paper = self.mechanism == RESPONSE, self.accounting == "paper"
        charged = paper and self.mechanism in ("laplace", "gaussian")
        inexact = "flipped labels are debiased all the same" if flips else ""
        if self.second_round != 0:
            inexact = "a second round cancels errors to first order only"
        return LawTraits(
            inexact=inexact,
            loose="the paper charges every count apart" if charged else "",
        )

    def noiseless_value(self, clients: Clients) -> float:
        """The area of the counts in cells, with what cells hide where the histogram adds it."""
        from tacit.protocols.shared.cell_counts import cell_counts

        protocol: Any = self
        placed = protocol.on_scale(clients)
        positives, records = cell_counts(placed, protocol.edges, clients.labels)
        pooled = positives.sum(-1), (records - positives).sum(-1)
        area = float(cell_area(*pooled))
        return area + float(density_correction(*pooled)) * (self.mechanism == "histogram")
