"""What DPAUC as published declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.data.clients import Clients
from tacit.metrics.cells.score_scale import EVEN
from tacit.metrics.curves import cell_area
from tacit.protocol.declarations.audits import DELTA, AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocols.dpauc.declared import pooled_cells
from tacit.protocols.dpauc.threats import threats_of
from tacit.protocols.published.dpauc.noises import OnCounts, RandomisedResponse

IMITATED_REPEATS = 1200
"""Repetitions where errors are imitated, which takes longer."""

RESPONSE = RandomisedResponse.word


class PublishedDPAUCDeclarations(Declarations):
    """Cases, attacks, threats and laws of ``PublishedDPAUC``."""

    mechanism: Any
    gives_curve = True
    threats = staticmethod(threats_of)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Every mechanism."""
        return cases_of(
            cls.name,
            {"mechanism": "laplace", "thresholds": 2},
            {"mechanism": f"gaussian(delta={DELTA})", "thresholds": 2},
            {"mechanism": RESPONSE, "adjacency": "label"},
        )

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """The counts of clients with one record."""
        from tacit.protocols.published.dpauc.attacks import guesses_from_published_counts

        return (guesses_from_published_counts,)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Every mechanism at its adjacencies, and both ways to count costs and to make points."""
        kind: Any = cls
        paper, plain = "laplace(accounting=paper)", "laplace(points=plain)"
        gaussian = "gaussian(delta=1e-6)"
        return {
            "dpauc-laplace": kind(1.0, 20),
            "dpauc-laplace-label": kind(1.0, 20, adjacency="label"),
            "dpauc-laplace-replace": kind(1.0, 20, adjacency="replace"),
            "dpauc-laplace-paper": kind(1.0, 20, paper, "label"),
            "dpauc-laplace-unclamped": kind(1.0, 20, plain),
            "dpauc-gaussian": kind(1.0, 20, gaussian),
            "dpauc-gaussian-label": kind(1.0, 20, gaussian, "label"),
            "dpauc-response": kind(1.0, 20, RESPONSE, "label"),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """Every mechanism, with the paper's number of cells or at a larger epsilon."""
        kind: Any = cls
        mechanisms = {
            "dpauc-laplace": "laplace",
            "dpauc-laplace-unclamped": "laplace(points=plain)",
            "dpauc-gaussian": "gaussian(delta=1e-6)",
        }
        return {
            name: ErrorCase(kind(2.0, 20, mechanism, scale=EVEN), IMITATED_REPEATS)
            for name, mechanism in mechanisms.items()
        } | {"dpauc-response": ErrorCase(kind(1.0, 100, RESPONSE, "label", EVEN))}

    @property
    def law_traits(self) -> LawTraits:
        """Flipped labels are debiased without noise too; the paper's accounting is loose."""
        flips = isinstance(self.mechanism, RandomisedResponse)
        charged = isinstance(self.mechanism, OnCounts) and self.mechanism.accounting == "paper"
        return LawTraits(
            inexact="flipped labels are debiased all the same" if flips else "",
            loose="the paper charges every count apart" if charged else "",
        )

    def noiseless_value(self, clients: Clients) -> float:
        """The area of the counts between thresholds, by straight lines."""
        protocol: Any = self
        return float(cell_area(*pooled_cells(protocol.on_scale(clients), protocol.edges)))
