"""GroupedHistogram: a report, and figures of private groups, from one histogram by group.

What is counted, and why a record's group is hidden as its class and score are:
``protocols.histogram.strata``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from tacit.data.categories import Categories, check_names
from tacit.data.clients import Clients
from tacit.privacy.sampling import doubles
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.trust import Each, ExactSum, SecureSum, Trust, trust_setting
from tacit.protocol.releases import Sums
from tacit.protocol.settings.declaring import setting
from tacit.protocols.histogram import strata
from tacit.protocols.histogram.estimate import result_from_tree
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.protocols.histogram.trees import summed_tree
from tacit.protocols.shared.cells import Strata
from tacit.protocols.shared.trees.tree_budget import Aim
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.parts.breakdown import Breakdown


@dataclass(frozen=True)
class GroupedHistogram(ScoreHistogram):
    """The report of all records, and AUC, rates at a threshold and their differences by group.

    Membership of a group is protected as labels and scores are. A small first look places the cells
    of a tree where the records of all groups score; the rest of epsilon counts it by group.

    Parameters
    ----------
    group_names : the agreed names of the groups; differences are taken from the first.
    trust, epsilon, height, adjacency, scale, aim, thresholds : as ``ScoreHistogram`` has them; no
        ``Local()``. Records are predicted positive from the first of the thresholds on; by default
        from the probability 1/2, or the middle position of other scores.

    Where one group is agreed, clients without groups belong to it.

    Raises
    ------
    ValueError : for a setting outside its range; the message names the bound and the value.

    Examples
    --------
    >>> GroupedHistogram("secure-sum", 1.0, group_names=("women", "men")).guarantee.epsilon
    1.0
    """

    trust: SecureSum | Each | ExactSum | str = trust_setting()
    group_names: tuple[str, ...] = setting(
        default=("all",), help="the agreed names of private groups"
    )

    name = "grouped-histogram"
    categories_setting = "group_names"
    planning_module = ""
    plan_example: ClassVar[Mapping[str, Any] | None] = None

    audit_settings = (
        {"height": 2},
        {"height": 2, "adjacency": "replace"},
        {"height": 2, "trust": Trust.EACH.value},
        {"height": 1, "group_names": ("x", "y")},
        {"height": 1, "group_names": ("x", "y"), "adjacency": "replace"},
    )
    """Both noisy trust models, on small trees of one group: a record is in one tree anyhow. A
    replaced record also changes its group."""

    def __post_init__(self) -> None:
        check_names("group_names", self.group_names, least=1)
        super().__post_init__()

    @property
    def strata_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The groups."""
        return self.group_names

    def strata_of(self, clients: Clients) -> Strata:
        """The groups of the records (``histogram.strata``)."""
        return strata.strata_of(clients, self.group_names)

    @property
    def middle_edge(self) -> float:  # type: ignore[override]
        """The score from which records are predicted positive."""
        if self.thresholds is not None:
            return self.thresholds[0]
        half = self.score_axis.half
        return float(self.score_scale.scores(np.array([0.5]))[0]) if half is None else half

    @property
    def served(self) -> Aim:
        """What the levels of a tree serve: the AUC, and rates at the threshold too for a report."""
        return "auc" if self.aim == "auc" else "groups"

    def breakdown(self, sums: Sums, height: int, axis: ScoreAxis) -> Breakdown:
        """The figures of every group, from its own tree."""
        leaves, noise = summed_tree(sums, height)
        results = [result_from_tree(each, noise, None, axis=axis) for each in leaves]
        return strata.breakdown(self.group_names, results, self.middle_edge)

    @classmethod
    def law_cases(cls) -> Mapping[str, Any]:
        """Sums and clients' own counts, in one round and in placed cells."""
        kind: Any = cls
        return {
            "groups-exact": kind(Trust.EXACT_SUM.value, height=7),
            "groups": kind(Trust.SECURE_SUM.value, 1.0, height=7),
            "groups-replace": kind(Trust.SECURE_SUM.value, 1.0, height=7, adjacency="replace"),
            "groups-each": kind(Trust.EACH.value, 1.0, height=7),
            "groups-looks": kind(Trust.SECURE_SUM.value, 30.0),
        }

    @classmethod
    def error_cases(cls) -> Mapping[str, audits.ErrorCase]:
        """The forms with noise, in one round; those with looks are ``ScoreHistogram``'s."""
        kind: Any = cls
        return {
            "groups": audits.ErrorCase(kind(Trust.SECURE_SUM.value, 1.0, height=7), noticed=True),
            "groups-each": audits.ErrorCase(kind(Trust.EACH.value, 4.0, height=7), repeats=1200),
        }

    def audit_federation(self, records: int, apart: bool) -> Clients:
        """Records of all groups in turn."""
        clients, count = super().audit_federation(records, apart), len(self.group_names)
        if count == 1:
            return clients
        return clients.with_categories(Categories(self.group_names, np.arange(records) % count))

    @classmethod
    def self_test_cases(cls) -> audits.SelfTestCases:
        """Counts of two groups, sound and with too little noise."""
        kind: Any = cls
        groups = kind(epsilon=1.0, height=1, group_names=("x", "y"))
        lowered = partial(doubles.ScaledNoise, 0.7)
        return audits.SelfTestCases(
            (
                audits.AuditTrial(audits.COUNTS, "counts of private groups", False, groups),
                audits.AuditTrial(
                    audits.COUNTS, "the noise of groups 30 % too small", True, groups, lowered
                ),
            )
        )
