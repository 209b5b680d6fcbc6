"""What protocols on hidden counts declare for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tacit.data.clients import Clients
from tacit.metrics.curves import cell_area
from tacit.protocol.declarations.audits import AuditCase, LabelAttack, cases_of
from tacit.protocol.declarations.defaults import Declarations
from tacit.protocol.declarations.laws import ErrorCase, LawTraits
from tacit.protocols.encrypted.private.steps import NEGATIVES, POSITIVES, SIZES
from tacit.protocols.encrypted.threats import by_class_threats_of, threats_of
from tacit.protocols.shared.cell_counts import cell_counts
from tacit.protocols.shared.class_scores import one_against_rest

if TYPE_CHECKING:
    from tacit.protocol.conversation import Protocol, Query


class HiddenDeclarations(Declarations):
    """Cases and laws of figures without noise, of counts that keys hide on the way."""

    draws: ClassVar[int] = 24
    """Number of draws of messages in an audit; each takes milliseconds."""

    @property
    def law_traits(self) -> LawTraits:
        """Ciphertexts and masked values are no sums."""
        return LawTraits(
            indivisible="only the session of a hidden count opens its answer",
            unmeasured_loss="messages differ by their keys, and not by noise",
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
        return AuditCase(cls.name, settings, apart=True, one_by_one=cls.draws, tight=False)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A small session."""
        small = {"thresholds": 9, "most_records": 64}
        return cases_of(cls.name, small, apart=True, one_by_one=cls.draws)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None: messages are hidden."""
        return ()

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """None: figures have a certain range and no standard error."""
        return {}

    def noiseless_value(self, clients: Clients) -> float:
        """The area under the straight lines between the thresholds: pairs of a cell count half."""
        protocol: Any = self
        areas = []
        for each in self.problems(clients):
            positives, records = cell_counts(each, protocol.threshold_scores, each.labels)
            areas.append(float(cell_area(positives.sum(-1), (records - positives).sum(-1))))
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
    """Cases, threats and laws of ``EncryptedAUC``: also of noisy sums."""

    epsilon: float | None
    threats = staticmethod(threats_of)

    @property
    def law_traits(self) -> LawTraits:
        """Masked values are no sums; those with noise are."""
        if self.epsilon is not None:
            return LawTraits(inexact="a second round cancels errors to first order only")
        return super().law_traits

    @classmethod
    def takes_epsilon(cls, settings: Mapping[str, Any]) -> bool:
        """Whether sums have noise."""
        return settings.get("epsilon") is not None

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Clients of one record; of noisy sums one client."""
        if cls.takes_epsilon(settings):
            return AuditCase(cls.name, settings)
        return super().audit_case(settings)

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """A small session, and noisy sums."""
        noisy = {"epsilon": 1.0, "adversary": "semi-honest", "most_records": 64}
        return (*super().audit_cases(), AuditCase(cls.name, noisy))

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

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """The plain variant, and noisy sums; the checked one has tests of its own.

        Noisy sums get an epsilon at which the classes of small data show.
        """
        kind: Any = cls
        noisy = kind(epsilon=30.0, adversary="semi-honest", most_records=64)
        return {"encrypted": kind(9, most_records=64), "encrypted-private": noisy}

    @classmethod
    def error_cases(cls) -> Mapping[str, ErrorCase]:
        """Noisy sums; without noise the figure has a certain range and no standard error."""
        kind: Any = cls
        noisy = kind(epsilon=1.0, adversary="semi-honest", most_records=2**15)
        return {"encrypted-private": ErrorCase(noisy, noticed=True)}


class ClassDeclarations(HiddenDeclarations):
    """Cases, threats and laws of ``EncryptedClassAUC``."""

    draws = 48
    threats = staticmethod(by_class_threats_of)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Two classes, which clients without classes have."""
        kind: Any = cls
        return {"encrypted-classes": kind(thresholds=9, most_records=64)}

    def problems(self, clients: Clients) -> Iterable[Clients]:
        """Each class against the rest."""
        protocol: Any = self
        return one_against_rest(clients, *protocol.classified(clients))
