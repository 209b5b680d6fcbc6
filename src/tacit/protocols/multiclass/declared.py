"""What MulticlassHistogram declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.privacy.sampling import doubles
from tacit.protocol.conversation import Query
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.defaults import NO_REPORTS
from tacit.protocol.declarations.threats import ThreatModel
from tacit.protocol.declarations.trust import Trust
from tacit.protocol.settings.declaring import setting
from tacit.protocols.multiclass.second_round import OTHER_BELOW, OWN_BELOW, SIZES
from tacit.protocols.shared.counting import CountingProtocol
from tacit.protocols.shared.declared import forest_model

HEIGHT, REPORT_HEIGHT, MAX_HEIGHT = 8, 5, 12
"""Height of the trees by default, that of private reports by default, and the largest."""

PUBLISHED = (
    "Of every class the noisy distributions of its score, in the class and in all others, and both "
    "sizes."
)
"""What a client receives before the second round."""


@dataclass(frozen=True)
class MulticlassDeclarations(CountingProtocol):
    """Cases, threats and laws of ``MulticlassHistogram``, and its setting ``classes``."""

    classes: tuple[str, ...] = setting(
        default=("0", "1"), help="the agreed names of the classes, as their columns are ordered"
    )

    setting_order = ("trust", "adjacency", "epsilon")
    replicated_fields = (OWN_BELOW, OTHER_BELOW, SIZES)
    summed = (
        "how many records of each class, and of all others, lie in every cell of the class's "
        "score; how many of each class have their largest score at their class; with a second "
        "round also the sum of all records' influences on each class's AUC"
    )

    @classmethod
    def audit_cases(cls) -> tuple[audits.AuditCase, ...]:
        """Every trust model, on small trees; three classes, and two where a record is replaced."""
        three = {"height": 2, "classes": ("a", "b", "c")}
        settings: tuple[Mapping[str, Any], ...] = (
            three,
            {"height": 1, "adjacency": "replace"},
            {"height": 2, "trust": Trust.EACH.value},
            {**three, "trust": Trust.LOCAL.value},
        )
        return tuple(map(cls.audit_case, settings))

    law_settings: ClassVar[audits.Configurations] = {
        "multiclass-exact": {"trust": Trust.EXACT_SUM.value, "epsilon": None},
        "multiclass": {},
        "multiclass-replace": {"adjacency": "replace"},
        "multiclass-each": {"trust": Trust.EACH.value},
        "multiclass-local": {"trust": Trust.LOCAL.value, "height": 4},
    }
    """Every trust model."""

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, audits.ErrorCase]:
        """The forms with noise."""
        return {
            "multiclass": audits.ErrorCase(cls(Trust.SECURE_SUM.value, 1.0), noticed=True),
            "multiclass-each": audits.ErrorCase(cls(Trust.EACH.value, 4.0), repeats=1200),
        }

    @property
    def tree_height(self) -> int:
        """The height of every tree."""
        return HEIGHT if self.height is None else self.height

    @classmethod
    def threats(cls, settings: Mapping[str, Any]) -> ThreatModel:
        """Who sees what; before a second round clients receive what the first one says."""
        return forest_model(settings, cls.summed, {Trust.SECURE_SUM: PUBLISHED})

    @property
    def law_traits(self) -> audits.LawTraits:
        """Private reports are about some of a record's votes, and debiased all the same."""
        if not self.lone_records:
            protocol: Any = self
            numbers = "what a second round leaves of errors is known to first order"
            return audits.LawTraits(few_records=numbers if protocol.number_part else "")
        return audits.LawTraits(
            inexact="records report on one level of one block each", unmeasured_loss=NO_REPORTS
        )

    @classmethod
    def self_test_cases(cls: Any) -> audits.SelfTestCases:
        """The numbers of three classes, sound and with too little noise."""
        classes = cls(epsilon=2.0, height=2, classes=("a", "b", "c"))
        lowered = partial(doubles.ScaledNoise, 0.7)
        return audits.SelfTestCases(
            (
                audits.AuditTrial(audits.SUMS, "numbers of classes", False, classes),
                audits.AuditTrial(
                    audits.SUMS, "the noise of classes 30 % too small", True, classes, lowered
                ),
            )
        )

    def audit_federation(self, records: int, apart: bool) -> Clients:
        """Records of all classes in turn, whose scores lie in cells of their own."""
        clients, count = super().audit_federation(records, apart), len(self.classes)
        if count == 2:
            return clients
        even = (np.arange(records * count).reshape(records, count) + 0.5) / (records * count)
        scores = self.score_scale.scores(even)
        made = Categories(self.classes, np.arange(records) % count, scores)
        return clients.with_categories(made)

    def hostile_query(self, query: Query) -> Query:
        """Published functions under which a record of any class moves the others' sums most.

        The own records of every class lie in the last cell but one and all others in the last, so
        that AUCs are 0, and there are far more own records than others. A record that is low in the
        scores of all other classes then has the influence 1 on each, and none on its own.
        """
        if SIZES not in query.broadcast:
            return query
        shape = len(self.classes), (1 << self.tree_height) - 1
        below = np.zeros(shape)
        below[:, -1] = 1.0
        sizes = np.tile([1e6, 1.0], (len(self.classes), 1))
        fields = {OWN_BELOW: below, OTHER_BELOW: np.zeros(shape), SIZES: sizes}
        return replace(query, broadcast={**query.broadcast, **fields})
