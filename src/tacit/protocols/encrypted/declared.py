"""What EncryptedAUC declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.data.clients import Clients
from tacit.protocol.declarations.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocols.encrypted.private.steps import NEGATIVES, POSITIVES, SIZES
from tacit.protocols.encrypted.threats import threats_of

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol, Query

DRAWS = 24
"""Number of draws of ciphertexts in an audit; each takes milliseconds."""


class EncryptedDeclarations(Declarations):
    """Cases, threats and laws of ``EncryptedAUC``."""

    epsilon: float | None
    threats = staticmethod(threats_of)

    @property
    def law_traits(self) -> LawTraits:
        """Ciphertexts and masked values are no sums; those with noise are."""
        if self.epsilon is not None:
            return LawTraits(inexact="a second round cancels errors to first order only")
        return LawTraits(
            indivisible="only the session of a ciphertext opens it",
            unmeasured_loss="ciphertexts differ by their keys, and not by noise",
            min_clients=2,
            batches=(2,),
            tolerance=1e-7,
        )

    @classmethod
    def takes_epsilon(cls, settings: Mapping[str, Any]) -> bool:
        """Whether sums have noise."""
        return settings.get("epsilon") is not None

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Clients of one record, as a session takes two clients; of noisy sums one client."""
        if cls.takes_epsilon(settings):
            return AuditCase(cls.name, settings)
        return AuditCase(cls.name, settings, apart=True, one_by_one=DRAWS, tight=False)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A small session, and noisy sums."""
        exact = cases_of(
            cls.name, {"thresholds": 9, "most_records": 64}, apart=True, one_by_one=DRAWS
        )
        noisy = {"epsilon": 1.0, "colluding": 0.0, "most_records": 64}
        return (*exact, AuditCase(cls.name, noisy))

    def hostile_query(self, query: Query) -> Query:
        """Published functions under which a low negative moves the noisy sum most.

        All positives lie in the middle and all negatives at the top, so that the AUC is 0: a
        negative below the middle has the influence 1.
        """
        if SIZES not in query.broadcast:
            return query
        inner = query.broadcast[POSITIVES].shape[-1]
        positives = (np.arange(inner) >= inner // 2).astype(np.float64)
        fields = {POSITIVES: positives, NEGATIVES: np.zeros(inner), SIZES: np.ones(2)}
        return replace(query, broadcast={**query.broadcast, **fields})

    def replicated_query(self, query: Query, replicates: int) -> Query:
        """The same published functions for every replicate."""
        if SIZES not in query.broadcast:
            return query
        fields = {
            name: np.repeat(query.broadcast[name][np.newaxis], replicates, axis=0)
            for name in (POSITIVES, NEGATIVES, SIZES)
        }
        return replace(query, broadcast={**query.broadcast, **fields})

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None: messages are ciphertexts."""
        return ()

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """The plain variant, and noisy sums; the checked one has tests of its own.

        Noisy sums get an epsilon at which the classes of small data show.
        """
        kind: Any = cls
        noisy = kind(epsilon=30.0, colluding=0.0, most_records=64)
        return {"encrypted": kind(9, most_records=64), "encrypted-private": noisy}

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """Noisy sums; without noise the figure has a certain range and no standard error."""
        kind: Any = cls
        noisy = kind(epsilon=1.0, colluding=0.0, most_records=2**15)
        return {"encrypted-private": ErrorCase(noisy, noticed=True)}

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
