"""What GroupedHistogram declares for audits, reports and laws."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from tacit.data.categories import Categories
from tacit.data.clients import Clients
from tacit.privacy.sampling.doubles import ScaledNoise
from tacit.protocol.declarations.audits import (
    COUNTS,
    AuditCase,
    AuditTrial,
    LabelAttack,
    SelfTestCases,
    cases_of,
)
from tacit.protocol.declarations.trust import Trust
from tacit.protocols.shared.trees.forest_declared import ForestDeclarations


class GroupedDeclarations(ForestDeclarations):
    """Cases, threats and laws of ``GroupedHistogram``."""

    case_name = "groups"
    summed = "how many positives and negatives of every group lie in every cell"

    group_names: tuple[str, ...]

    @classmethod
    def audit_cases(cls) -> tuple[AuditCase, ...]:
        """Every trust model, on small trees of one group: a record is in one tree anyhow.

        A replaced record also changes its group.
        """
        two = {"height": 1, "group_names": ("x", "y")}
        return cases_of(
            cls.name,
            {"height": 2},
            {"height": 2, "adjacency": "replace"},
            {"height": 2, "trust": Trust.EACH.value},
            two,
            {**two, "adjacency": "replace"},
        )

    def audit_federation(self, records: int, apart: bool) -> Clients:
        """Records of all groups in turn."""
        clients, count = super().audit_federation(records, apart), len(self.group_names)
        if count == 1:
            return clients
        return clients.with_categories(Categories(self.group_names, np.arange(records) % count))

    @classmethod
    def self_test_cases(cls) -> SelfTestCases:
        """Counts of two groups, sound and with too little noise."""
        kind: Any = cls
        groups = kind(epsilon=1.0, height=1, group_names=("x", "y"))
        lowered = partial(ScaledNoise, 0.7)
        return SelfTestCases(
            (
                AuditTrial(COUNTS, "counts of private groups", False, groups),
                AuditTrial(COUNTS, "the noise of groups 30 % too small", True, groups, lowered),
            )
        )

    @classmethod
    def audit_case(cls, settings: Mapping[str, Any]) -> AuditCase:
        """Chosen settings may make large trees, in which the worst event is too rare."""
        return AuditCase(cls.name, settings, tight=False)

    def label_attacks(self) -> tuple[LabelAttack, ...]:
        """None of its own: labels are guessed from no curve."""
        return ()
