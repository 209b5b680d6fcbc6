"""GroupedHistogram: a report, and figures of private groups, which are strata of its counts.

What is counted. Where groups are agreed, a level of a tree has its nodes once for every group. A
record is in one group and has one class and one score: on every level it counts in one node. Adding
or removing it changes one count of each level by 1, so the sensitivity is 1, however many groups
there are; replacing it, whatever its group, changes at most 2. So epsilon hides a record's group as
it hides its class and score; only the list of groups is public.

The table of all records is the sum over groups, whose noise has G times the variance of one
group's. A flat round, which says where cells are placed, is about all records; the tree in the
cells that it places is counted by group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import tacit.protocol as tp
from tacit.counts import tree_budget, tree_results
from tacit.data.categories import Categories, check_names
from tacit.protocol import audits, releases
from tacit.protocols.histogram.protocol import ScoreHistogram
from tacit.protocols.shared import counting
from tacit.protocols.shared.declared import lowered_noise
from tacit.results.curves.curve import UNIT
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.figure import class_too_small, is_class_too_small
from tacit.results.measures.catalogue import rates_at
from tacit.results.parts import Breakdown, Part

TRUE_POSITIVES, FALSE_POSITIVES = "true positive rate", "false positive rate"
PRECISION = "positive predictive value"

CALLED = {
    "AUC": "AUC gap",
    TRUE_POSITIVES: "equal opportunity",
    FALSE_POSITIVES: "false positive gap",
    PRECISION: "predictive parity",
}
"""What a difference of each figure is called."""


def _part(name: str, result: tp.ServerResult, threshold: float) -> Part:
    """One group's AUC and rates; none where a class of its records is too small."""
    totals = float(result.positives), float(result.negatives)
    size, error = min(totals), float(result.positives_error)
    if result.histogram is None or size <= 0 or is_class_too_small(size, error):
        return Part(name, *totals, {}, class_too_small(size, error))
    at = rates_at(result.histogram, threshold)
    specificity = at["specificity"]
    rates = {
        TRUE_POSITIVES: at["sensitivity"],
        FALSE_POSITIVES: replace(specificity, value=1 - specificity.value),
        PRECISION: at["positive_predictive_value"],
    }
    figures = {called: replace(rate, threshold=threshold) for called, rate in rates.items()}
    return Part(name, *totals, {"AUC": result.within(UNIT).estimate(), **figures})


@dataclass(frozen=True)
class GroupedHistogram(ScoreHistogram):
    """The report of all records, and AUC, rates at a threshold and their differences by group.

    Membership of a group is protected as labels and scores are. A small first round places the
    cells of a tree where the records of all groups score; the rest of epsilon counts it by group.

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

    trust: tp.SecureSum | tp.Each | tp.ExactSum | str = tp.trust_setting()
    group_names: tuple[str, ...] = tp.setting(
        default=("all",), help="the agreed names of private groups"
    )

    name = "grouped-histogram"
    categories_setting = "group_names"
    planning_module = ""
    plan_example: ClassVar[Mapping[str, Any] | None] = None
    demonstrated: ClassVar[Mapping[str, Any]] = {}

    audit_settings = (
        {"height": 2},
        {"height": 2, "adjacency": "replace"},
        {"height": 2, "trust": tp.Trust.EACH.value},
        {"height": 1, "group_names": ("x", "y")},
        {"height": 1, "group_names": ("x", "y"), "adjacency": "replace"},
    )
    """Both noisy trust models, on small trees of one group: a record is in one tree anyhow. A
    replaced record also changes its group."""

    def __post_init__(self) -> None:
        check_names("group_names", self.group_names, least=1)
        super().__post_init__()

    @property
    def strata_names(self) -> tuple[str, ...]:
        """The groups."""
        return self.group_names

    def strata_of(self, clients: tp.Clients) -> counting.Strata:
        """The group of every record; where one is agreed, clients without groups belong to it.

        Raises
        ------
        DataError : for clients of other groups than the agreed ones, or of none where there are
            several.
        """
        groups, names, known = self.group_names, clients.category_names, clients.categories
        if not names and len(groups) == 1:
            return counting.ALL_RECORDS
        if not names:
            raise tp.DataError(
                f"{len(groups)} groups are agreed, but the records have none: name their column"
            )
        if names != groups:
            raise tp.DataError(f"groups must be {', '.join(groups)}, got {', '.join(names)}")
        return counting.Strata(len(groups), 0 if known is None else known.of_record)

    @property
    def middle_edge(self) -> float:
        """The score from which records are predicted positive."""
        if self.thresholds is not None:
            return self.thresholds[0]
        half = self.score_axis.half
        return float(self.score_scale.scores(np.array([0.5]))[0]) if half is None else half

    @property
    def served(self) -> tree_budget.Aim:
        """What the levels of a tree serve: the AUC, and rates at the threshold too for a report."""
        return "auc" if self.aim == "auc" else "groups"

    def breakdown(self, sums: releases.Sums, axis: ScoreAxis) -> Breakdown:
        """The figures of every group, from its own tree, and their differences.

        They are every group's less those of the first group that has some.
        """
        leaves, noise = counting.consistent_trees(sums)
        parts = tuple(
            _part(
                name, tree_results.result_from_tree(each, noise, None, axis=axis), self.middle_edge
            )
            for name, each in zip(self.group_names, leaves, strict=True)
        )
        return Breakdown("group", parts).with_differences(CALLED)

    law_settings: ClassVar[audits.Configurations] = {
        "groups-exact": {"trust": tp.Trust.EXACT_SUM.value, "epsilon": None, "height": 7},
        "groups": {"height": 7},
        "groups-replace": {"height": 7, "adjacency": "replace"},
        "groups-each": {"trust": tp.Trust.EACH.value, "height": 7},
        "groups-rounds": {"epsilon": 30.0},
    }
    """Every trust model; the records are of one group."""

    @classmethod
    def error_cases(cls: Any) -> Mapping[str, audits.ErrorCase]:
        """The forms with noise, in one round; those with rounds are ``ScoreHistogram``'s."""
        return {
            "groups": audits.ErrorCase(cls(tp.Trust.SECURE_SUM.value, 1.0, height=7), noticed=True),
            "groups-each": audits.ErrorCase(cls(tp.Trust.EACH.value, 4.0, height=7), repeats=1200),
        }

    def audit_federation(self, records: int, apart: bool) -> tp.Clients:
        """Records of all groups in turn."""
        clients, count = super().audit_federation(records, apart), len(self.group_names)
        if count == 1:
            return clients
        return clients.with_categories(Categories(self.group_names, np.arange(records) % count))

    @classmethod
    def self_test_cases(cls: Any) -> audits.SelfTestCases:
        """Counts of two groups, sound and with too little noise."""
        groups, broken = cls(epsilon=1.0, height=1, group_names=("x", "y")), "the noise of groups"
        sound = "counts of private groups"
        return lowered_noise(audits.COUNTS, sound, f"{broken} 30 % too small", groups)
