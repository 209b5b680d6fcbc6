"""GroupedHistogram: figures of private groups, from one histogram over group, class and cell.

What is summed. There is a tree of cells for every group and class. A record is in one group and has
one class and one score: on every level it counts in one node of one tree. Adding or removing it
changes one count of each level by 1, so the sensitivity is 1, however many groups there are;
replacing it, whatever its group, changes at most 2. The levels' parts of epsilon add up
(``protocols.shared.trees.forests``, one block of 2G trees with 1 vote). So epsilon hides a record's
group as it hides its class and score; only the list of groups is public.

The server's result follows from the trees, and the protocol asks for them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.data.categories import Categories, check_names
from tacit.data.clients import Clients
from tacit.data.errors import DataError
from tacit.metrics import trees
from tacit.privacy.sampling import doubles
from tacit.protocol.declarations import audits
from tacit.protocol.declarations.trust import Each, ExactSum, SecureSum, Trust, trust_setting
from tacit.protocol.settings.declaring import setting
from tacit.protocols.shared.site_figures import ClientCells, sites_of
from tacit.protocols.shared.trees.forest_protocol import ForestProtocol, Forests
from tacit.protocols.shared.trees.forests import (
    Block,
    Forest,
    Votes,
    area_estimates,
    area_variance,
    forest_areas,
    smallest_in_errors,
)
from tacit.results.curves.score_axis import ScoreAxis
from tacit.results.estimate import Estimate
from tacit.results.figure import class_too_small, is_class_too_small
from tacit.results.parts.breakdown import Breakdown, Difference, Part, difference
from tacit.results.parts.sites import Sites
from tacit.results.server_result import ServerResult

UNIT = (0.0, 1.0)

TRUE_POSITIVES, FALSE_POSITIVES = "true positive rate", "false positive rate"
PRECISION = "positive predictive value"

CALLED = {
    "AUC": "AUC gap",
    TRUE_POSITIVES: "equal opportunity",
    FALSE_POSITIVES: "false positive gap",
    PRECISION: "predictive parity",
}
"""What a difference of each figure is called."""


@dataclass(frozen=True)
class Cut:
    """A border of cells that divides predicted negatives from positives.

    Parameters
    ----------
    first : the first cell of predicted positives.
    score : the border.
    """

    first: int
    score: float


def result_from_groups(
    groups: tuple[str, ...], records: Forest, cut: Cut, even: bool
) -> ServerResult:
    """The AUC of all records with its errors, and, of a single run, the figures of every group.

    Parameters
    ----------
    groups : their names.
    records : the trees of all groups' positives, then of their negatives.
    cut : where records begin to be predicted positive.
    even : whether scores are their own positions.
    """
    positives, negatives = _by_class(records, len(groups))
    result = _of_all(positives, negatives, even)
    if records.leaves.ndim > 2:
        return result
    return replace(result, breakdown=_breakdown(groups, positives, negatives, cut, even))


def sites_from_groups(count: int, records: Forest, axis: ScoreAxis, even: bool) -> Sites:
    """The figures of every client's records of all groups, from trees of shape (K, 2 count, B)."""
    positives, negatives = _by_class(records, count)
    pooled = _pooled(positives), _pooled(negatives)

    def variance(weights: Floats) -> float:
        return float(pooled[0].noise.variance_of(weights, weights))

    cells = ClientCells(pooled[0].leaves[:, 0], pooled[1].leaves[:, 0], variance)
    return sites_of(_of_all(positives, negatives, even), cells, axis)


def _by_class(records: Forest, count: int) -> tuple[Forest, Forest]:
    """The groups' trees of positives, and those of negatives."""
    return (
        Forest(records.leaves[..., :count, :], records.noise),
        Forest(records.leaves[..., count:, :], records.noise),
    )


def _of_all(positives: Forest, negatives: Forest, even: bool) -> ServerResult:
    """The AUC of all groups' records with its errors, shape (...)."""
    pooled = _pooled(positives), _pooled(negatives)
    pooled_areas = forest_areas(pooled[0], pooled[1], even)
    class_sizes = [forest.totals() for forest in pooled]
    return ServerResult(
        value=pooled_areas.value[..., 0],
        privacy_error=np.sqrt(area_variance(pooled_areas, *pooled)[..., 0]),
        sampling_error=np.sqrt(pooled_areas.sampling_variance[..., 0]),
        positives=class_sizes[0][0][..., 0],
        negatives=class_sizes[1][0][..., 0],
        positives_error=np.sqrt(class_sizes[0][1][..., 0]),
        approximation_error=np.sqrt(pooled_areas.cell_variance[..., 0]),
    )


def _pooled(forest: Forest) -> Forest:
    """One tree of all groups' records, whose noise is the sum of theirs."""
    noise = trees.TreeNoise(forest.noise.variances * forest.leaves.shape[-2])
    return Forest(forest.leaves.sum(axis=-2, keepdims=True), noise)


def _breakdown(
    groups: tuple[str, ...], positives: Forest, negatives: Forest, cut: Cut, even: bool
) -> Breakdown:
    aucs = area_estimates(forest_areas(positives, negatives, even), positives, negatives)
    sizes, errors = smallest_in_errors((positives, negatives))
    parts = []
    for number, name in enumerate(groups):
        leaves = [forest.leaves[number] for forest in (positives, negatives)]
        size, error = float(sizes[number]), float(errors[number])
        totals = float(leaves[0].sum()), float(leaves[1].sum())
        if size <= 0 or is_class_too_small(size, error):
            parts.append(Part(name, *totals, {}, class_too_small(size, error)))
            continue
        figures = {"AUC": aucs[number], **_rates(leaves, positives, cut)}
        parts.append(Part(name, *totals, figures))
    return Breakdown("group", tuple(parts), {}, _differences(parts))


def _rates(leaves: list[Floats], forest: Forest, cut: Cut) -> dict[str, Estimate]:
    """The rates of a group at the cut.

    A rate ``a / (a + b)`` of two disjoint sums of cells has the derivative ``(1 - r) / (a + b)`` by
    a count of the first and ``-r / (a + b)`` by one of the second.
    """
    reached = (np.arange(leaves[0].size) >= cut.first).astype(np.float64)
    both, weights = np.concatenate(leaves), np.concatenate([reached, 0 * reached])
    of_positives = np.concatenate([np.ones_like(reached), 0 * reached])
    made = {
        TRUE_POSITIVES: (weights, of_positives - weights),
        FALSE_POSITIVES: (
            np.roll(weights, reached.size),
            np.roll(of_positives - weights, reached.size),
        ),
        PRECISION: (weights, np.roll(weights, reached.size)),
    }
    return {
        name: replace(_rate(both, forest, *each), threshold=cut.score)
        for name, each in made.items()
    }


def _rate(both: Floats, forest: Forest, first: Floats, second: Floats) -> Estimate:
    """``a / (a + b)`` for sums of a group's cells with these weights, shape (2B,) each."""
    a, b = float(first @ both), float(second @ both)
    total = a + b
    halves = both.reshape(2, -1)
    size = (first + second).reshape(2, -1)
    error = math.sqrt(float(forest.noise.variance_of(size, halves).sum()))
    if total <= 0 or is_class_too_small(total, error):
        return Estimate(math.nan, math.nan, math.nan)
    rate = a / total
    weights = ((1 - rate) * first - rate * second).reshape(2, -1) / total
    variance = float(forest.noise.variance_of(weights, halves).sum())
    inside = min(max(rate, 0.0), 1.0)
    return Estimate(rate, math.sqrt(variance), math.sqrt(inside * (1 - inside) / total)).within(
        UNIT
    )


def _differences(parts: list[Part]) -> tuple[Difference, ...]:
    """Every group's figures less those of the first group that has some."""
    known = [part for part in parts if part.figures]
    made = []
    for other in known[1:]:
        for figure, called in CALLED.items():
            between = difference(other.figures[figure], known[0].figures[figure])
            made.append(Difference(figure, other.name, known[0].name, between, called))
    return tuple(made)


RECORDS = "records"
"""The block: positives of all groups, then negatives."""


@dataclass(frozen=True)
class GroupedHistogram(ForestProtocol):
    """The AUC, rates at a threshold and their differences, of groups that are protected.

    Parameters
    ----------
    group_names : the agreed names of the groups; differences are taken from the first.
    threshold : the score from which a record is predicted positive; the nearest border of cells is
        taken. None takes the probability 1/2, or the middle position of other scores.
    trust, epsilon, height, adjacency, scale : as ``ForestProtocol`` has them; no ``Local()``.

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
    threshold: float | None = setting(
        default=None, help="scores from here on are predicted positive; 0.5 by default"
    )

    name = "grouped-histogram"
    categories_setting = "group_names"
    trusts = (Trust.SECURE_SUM, Trust.EACH)
    case_name = "groups"
    summed = "how many positives and negatives of every group lie in every cell"

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
        if self.threshold is not None and not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold}")

    def blocks(self) -> tuple[Block, ...]:
        """One block: a record is in one group and class."""
        return (Block(RECORDS, 2 * len(self.group_names), 1, self.tree_parts(1.0, 1)),)

    def grouped(self, clients: Clients) -> Integers:
        """The group of every record, shape (M,).

        Raises
        ------
        DataError : for clients of other groups than the agreed ones, or of none where there are
            several.
        """
        known = clients.categories
        if known is None and len(self.group_names) > 1:
            raise DataError(
                f"{len(self.group_names)} groups are agreed, but the records have none: name their "
                "column"
            )
        if known is None:
            return np.zeros(clients.records, dtype=np.int64)
        if known.names != self.group_names:
            raise DataError(
                f"groups must be {', '.join(self.group_names)}, got {', '.join(known.names)}"
            )
        return known.of_record

    def votes(self, clients: Clients) -> Mapping[str, Votes]:
        """Each record's cell in the tree of its group and class."""
        self.check_scores(clients)
        tree = self.grouped(clients) + np.where(clients.labels == 1, 0, len(self.group_names))
        leaves = (tree << self.tree_height) + self.cells_of(clients.scores)
        return {RECORDS: Votes(np.arange(clients.records), leaves)}

    @property
    def cut(self) -> Cut:
        """The border of cells nearest to the threshold."""
        cells = 1 << self.tree_height
        position = 0.5
        if self.threshold is not None:
            position = float(self.score_scale.positions(np.array([self.threshold]))[0])
        first = int(np.clip(round(position * cells), 1, cells - 1))
        return Cut(first, float(self.score_scale.scores(np.array([first / cells]))[0]))

    def conclusion(self, forests: Forests) -> ServerResult:
        """The AUC of all records, and the figures of every group."""
        return result_from_groups(self.group_names, forests[RECORDS], self.cut, self.is_even)

    def client_figures(self, forests: Forests) -> Sites:
        """The AUC of all groups' records of every client, and its calibration."""
        axis = ScoreAxis(self.score_scale, self.unit)
        return sites_from_groups(len(self.group_names), forests[RECORDS], axis, self.is_even)

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
